package reconcile

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// programEnd is an update that brings the agent's program, and what it must
// come to, wherever the power goes.
type programEnd struct {
	name string
	from string // v1.0.0 is that of the package
	bad  bool   // the new one does not reach control
	err  error  // in place of a crash, of one operation
	all  bool   // of all from there, until the device starts anew
	new  bool   // only of those that make something new: there are no inodes
}

var programEnds = []programEnd{
	{name: "good", from: "v1.0.0"},
	{name: "the next one", from: "v1.4.0"},
	{name: "no good", from: "v1.0.0", bad: true},
	{name: "the next one is no good", from: "v1.4.0", bad: true},
	{name: "no space once", from: "v1.4.0", err: syscall.ENOSPC},
	{name: "no space", from: "v1.0.0", err: syscall.ENOSPC, all: true},
	{name: "no space, and no good", from: "v1.4.0", bad: true, err: syscall.ENOSPC, all: true},
	{name: "no inodes", from: "v1.4.0", err: syscall.ENOSPC, all: true, new: true},
	{name: "no inodes, and no good", from: "v1.4.0", bad: true, err: syscall.ENOSPC, all: true, new: true},
	{name: "a bad disk once", from: "v1.4.0", err: syscall.EIO},
	{name: "a bad disk once, and no good", from: "v1.4.0", bad: true, err: syscall.EIO},
	{name: "a bad disk", from: "v1.0.0", err: syscall.EIO, all: true},
	{name: "a bad disk, and no good", from: "v1.0.0", bad: true, err: syscall.EIO, all: true},
	{name: "read-only", from: "v1.4.0", err: syscall.EROFS, all: true},
	{name: "read-only, and no good", from: "v1.0.0", bad: true, err: syscall.EROFS, all: true},
}

// meet has trouble at one operation, that of the launcher included. It gives
// false where there are not so many.
func (e programEnd) meet(t *testing.T, n int) bool {
	t.Helper()
	p := onPackage(t)
	attempt, release := int64(2), "v1.0.0"
	if e.from != p.packaged {
		p.assignProgram(attempt, "v1.0.1", e.from)
		p.rests()
		attempt, release = attempt+1, "v1.0.1"
	}
	p.mute["v1.5.0"] = e.bad
	p.assignProgram(attempt, "v1.1.0", "v1.5.0")
	c := &crasher{at: n, err: e.err, once: e.err != nil}
	p.step = c.step
	if e.all {
		p.step = func(op, path string) error {
			if e.new && op != "create" && op != "mkdir" {
				return nil
			}
			if err := c.step(op, path); err != nil || c.crashed {
				return e.err
			}
			return nil
		}
	}
	if e.err == nil {
		p.control.dead = func() bool { return c.crashed }
	}
	p.boot()
	p.step, p.control.dead = nil, nil
	if !c.crashed {
		if n < 10 {
			t.Fatalf("only %d operations: nothing was tested", n)
		}
		return false
	}
	p.rests()
	if e.bad {
		p.is(release, e.from)
		p.outcome(attempt, schema.OutcomeFailed, "no answer within")
	} else {
		p.is("v1.1.0", "v1.5.0")
		p.outcome(attempt, schema.OutcomeOK)
	}
	if t.Failed() {
		t.Fatalf("%s: trouble at operation %d: %s; started %s", e.name, n, c.where, strings.Join(p.started, " "))
	}
	return true
}

// programStride is how many operations a fast test leaves out; it is prime to
// those of a written file.
const programStride = 97

// A report that could not be numbered, since the disk failed just then, says
// nothing of the program that was to send it.
func TestDiskFailsOnceWhileAProgramProvesItself(t *testing.T) {
	p, failed := onPackage(t), false
	p.assignProgram(2, "v1.1.0", "v1.5.0")
	p.step = func(op, path string) error {
		if !failed && op == "rename" && path == installFile && slices.Contains(p.started, "v1.5.0") {
			failed = true
			return syscall.EIO
		}
		return nil
	}
	p.rests()
	if p.is("v1.1.0", "v1.5.0"); !failed {
		t.Error("no number was reserved by the new program")
	}
	p.outcome(2, schema.OutcomeOK)
}

func TestTroubleWhileAProgramTakesOver(t *testing.T) {
	for i, e := range programEnds {
		for n := 1 + 4*i; e.meet(t, n); n += programStride {
		}
	}
}
