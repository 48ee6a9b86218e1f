package disktest

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
)

// troubles are what disks do to an operation. What is removed frees room;
// without inodes only new files are refused, and what goes gives none back.
var troubles = map[string]func(op string) error{
	"no space": func(op string) error {
		if op == "remove" {
			return nil
		}
		return syscall.ENOSPC
	},
	"no inodes": func(op string) error {
		if op == "create" || op == "mkdir" {
			return syscall.ENOSPC
		}
		return nil
	},
	"read-only": func(string) error { return syscall.EROFS },
	"EIO":       func(string) error { return syscall.EIO },
}

// Disk is one that fails from one operation on, or at one only. The zero value
// never does.
type Disk struct {
	// Over ends the trouble.
	Over bool

	fault   func(op string) error
	at      int // the operation at which it begins, counted from 1
	lasting bool
	count   int
	hit     string // the first operation that failed
}

// Step is told of an operation before it is done, and gives the error that it is
// to end with.
func (d *Disk) Step(op, path string) error {
	if d.count++; d.Over || d.fault == nil || d.count < d.at || !d.lasting && d.count > d.at {
		return nil
	}
	err := d.fault(op)
	if err != nil && d.hit == "" {
		d.hit = op + " " + path
	}
	return err
}

// Begun says whether there were as many operations as it takes for the trouble
// to begin.
func (d *Disk) Begun() bool { return d.count >= d.at }

// Each has every kind of trouble be met, lasting and once, at the operations that
// which says for the i-th of them, for as long as there are more. At every other
// one the device is cut off as well.
func Each(t *testing.T, which func(i int) (first, stride int), meet func(t *testing.T, d *Disk, cut bool)) {
	i := 0
	for _, kind := range slices.Sorted(maps.Keys(troubles)) {
		for _, lasting := range []bool{false, true} {
			n, stride := which(i)
			i++
			t.Run(fmt.Sprintf("%s, lasting=%t", kind, lasting), func(t *testing.T) {
				for ; ; n += stride {
					d, cut := &Disk{fault: troubles[kind], at: n, lasting: lasting}, n%2 == 0
					meet(t, d, cut)
					if t.Failed() {
						t.Fatalf("trouble at operation %d: %s; cut off: %t", n, d.hit, cut)
					}
					if !d.Begun() {
						t.Logf("%d operations", d.count)
						return
					}
				}
			})
		}
	}
}
