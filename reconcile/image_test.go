package reconcile

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// image is a device as it was once made ready. Hundreds of crashes begin from
// the same state, and to copy it costs a tenth of coming to it.
type image struct {
	once     sync.Once
	entries  []imageEntry
	gen      int64
	delivery schema.Delivery
	reports  []schema.Report
	moves    int // revisions of the delivery ref
}

type imageEntry struct {
	path string
	mode fs.FileMode
	data []byte
}

var v1Image, osImage image

// device gives a fresh device like the one that ready makes.
func (i *image) device(t *testing.T, ready func(t *testing.T) *device) *device {
	t.Helper()
	i.once.Do(func() { i.take(t, ready(t)) })
	d := newDevice(t)
	d.gen, d.control.delivery, d.control.revisions, d.control.reports = i.gen, i.delivery, i.moves, slices.Clone(i.reports)
	for _, e := range i.entries {
		if err := e.put(d.host(e.path)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (i *image) take(t *testing.T, d *device) {
	t.Helper()
	i.gen, i.delivery, i.moves, i.reports = d.gen, d.control.delivery, d.control.revisions, d.control.reports
	err := filepath.WalkDir(d.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == d.root {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		one := imageEntry{path: p[len(d.root):], mode: info.Mode()}
		if info.Mode().IsRegular() {
			one.data, err = os.ReadFile(p)
		}
		i.entries = append(i.entries, one)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// put leaves a folder alone that every device has.
func (e imageEntry) put(host string) error {
	if e.mode.IsDir() {
		if err := os.Mkdir(host, e.mode.Perm()); err != nil && !os.IsExist(err) {
			return err
		}
		return nil
	}
	return os.WriteFile(host, e.data, e.mode.Perm())
}
