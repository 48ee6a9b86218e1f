package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// objects reads the objects of a repository folder through go-git's storage.
// That storage must not be used by two goroutines at once, not even to read,
// and never notices packs that came or went: hence the lock and reopen.
type objects struct {
	dir string
	// shared: others write here too, so a miss may only mean stale indexes.
	shared bool

	mu     sync.Mutex
	st     *filesystem.Storage
	opened time.Time // of objects/pack, when it was opened
}

// objectCache bounds what go-git keeps of inflated objects; delta bases gain
// from it, everything else is read once.
const objectCache = 16 * cache.MiByte

func newObjects(dir string, shared bool) *objects { return &objects{dir: dir, shared: shared} }

// packsFS hides packs whose index is not there yet: git writes them in this
// order, and go-git fails on every object while one stands alone.
type packsFS struct{ billy.Filesystem }

func (f packsFS) ReadDir(path string) ([]os.FileInfo, error) {
	list, err := f.Filesystem.ReadDir(path)
	if err != nil || filepath.Base(path) != "pack" {
		return list, err
	}
	indexed := map[string]bool{}
	for _, fi := range list {
		if name, ok := strings.CutSuffix(fi.Name(), ".idx"); ok {
			indexed[name] = true
		}
	}
	kept := list[:0]
	for _, fi := range list {
		if name, ok := strings.CutSuffix(fi.Name(), ".pack"); !ok || indexed[name] {
			kept = append(kept, fi)
		}
	}
	return kept, nil
}

func (o *objects) storage() *filesystem.Storage {
	if o.st == nil {
		o.opened = o.packTime()
		o.st = filesystem.NewStorageWithOptions(packsFS{osfs.New(o.dir)}, cache.NewObjectLRU(objectCache),
			filesystem.Options{KeepDescriptors: true, AlternatesFS: osfs.New("/")})
	}
	return o.st
}

func (o *objects) packTime() time.Time {
	fi, err := os.Stat(filepath.Join(o.dir, "objects", "pack"))
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

// reopen forgets what is known of the packs.
func (o *objects) reopen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeLocked()
}

// exclusive runs fn while nobody reads, and forgets what is known of the packs.
func (o *objects) exclusive(fn func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeLocked()
	return fn()
}

func (o *objects) closeLocked() {
	if o.st != nil {
		_ = o.st.Close()
		o.st = nil
	}
}

// rereads is how often a failed read of a shared repository is tried again
// with fresh indexes: a repack by others needs one, a second one may follow.
const rereads = 3

// read gives an object, verified against its name. limit (bytes, 0 = any)
// only concerns blobs.
func (o *objects) read(ctx context.Context, id oid, limit int64) (objectType, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for try := 0; ; try++ {
		typ, data, err := o.readOnce(id, limit)
		if err == nil || !o.shared || try == rereads || hasKind(err, kindRefused) {
			return typ, data, err
		}
		if errors.Is(err, errMissing) && o.opened.Equal(o.packTime()) {
			return 0, nil, err
		}
		o.closeLocked()
	}
}

func (o *objects) readOnce(id oid, limit int64) (typ objectType, data []byte, err error) {
	// go-git may panic on damaged files; what is damaged is a result here.
	defer func() {
		if r := recover(); r != nil {
			typ, data, err = 0, nil, fail(kindCorrupt, "object %s cannot be read: %v", id, r)
		}
	}()
	st := o.storage()
	if limit > 0 {
		size, err := st.EncodedObjectSize(id)
		if err != nil {
			return 0, nil, readError(id, err)
		}
		if size > limit {
			return 0, nil, tooLarge(id, size, limit)
		}
	}
	obj, err := st.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return 0, nil, readError(id, err)
	}
	r, err := obj.Reader()
	if err != nil {
		return 0, nil, readError(id, err)
	}
	defer r.Close()
	data = make([]byte, 0, min(max(obj.Size(), 0), 1<<24)+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, nil, readError(id, err)
		}
	}
	switch obj.Type() {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		typ = objectType(obj.Type())
	default:
		return 0, nil, fail(kindCorrupt, "object %s is of no known type", id)
	}
	if hashObject(typ, data) != id {
		return 0, nil, fail(kindCorrupt, "object %s does not hold what its name says", id)
	}
	return typ, data, nil
}

func readError(id oid, err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return fmt.Errorf("%s: %w", id, errMissing)
	}
	return fail(kindCorrupt, "object %s cannot be read: %w", id, err)
}

func tooLarge(id oid, size, limit int64) error {
	return fail(kindRefused, "blob %s has %d bytes, more than the allowed %d", id, size, limit)
}

// has tells whether an object is there, without reading it.
func (o *objects) has(id oid) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.storage().HasEncodedObject(id) == nil {
		return true
	}
	if !o.shared || o.opened.Equal(o.packTime()) {
		return false
	}
	o.closeLocked()
	return o.storage().HasEncodedObject(id) == nil
}
