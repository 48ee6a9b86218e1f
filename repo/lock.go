package repo

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// lockWait is how long another writer's lock is waited for; git's own
	// writers hold one for milliseconds.
	lockWait = 3 * time.Second
	// lockStale is the age from which a lock file of somebody else is taken
	// for left behind. It is never removed here: only a person can know that
	// its owner is gone.
	lockStale = time.Minute
	lockPoll  = 20 * time.Millisecond
	// marksFolder holds the marks of locks, beside refs and objects; git does
	// not look into it.
	marksFolder = "gitopsd-locks"
)

// lockFile is a lock as git makes it (lockfile.h): a file of a name that only
// one process can make. A process may be killed while it holds one, and git's
// own lock looks the same. Ours is therefore recognizable: it is a second name
// of a file below marksFolder, its mark, on which this process holds flock(2).
// A lock with a mark and without flock belongs to a process that ended, and is
// taken over; one without a mark is somebody else's, and stays.
type lockFile struct {
	*os.File
	path string
	mark string // "" where the file system or its rights allow none
}

// release gives the lock back.
func (k *lockFile) release() {
	_ = os.Remove(k.path)
	k.close()
}

// become makes what was written the content of the file that was locked.
func (k *lockFile) become(path string) error {
	err := os.Rename(k.path, path)
	if err != nil {
		_ = os.Remove(k.path)
	}
	k.close()
	return err
}

// close drops the mark while flock is still held, so that nobody takes it for
// left behind.
func (k *lockFile) close() {
	if k.mark != "" {
		_ = os.Remove(k.mark)
	}
	_ = k.Close()
}

// lock makes the lock file of a ref, or of packed-refs. A fresh one of somebody
// else is waited for; an old one is for a person to judge.
func (l localRefs) lock(ctx context.Context, name string, makeFolder func() error) (*lockFile, error) {
	k := &lockFile{path: filepath.Join(l.dir, filepath.FromSlash(name)+".lock")}
	l.mark(k, name)
	if err := l.take(ctx, k, name, makeFolder); err != nil {
		if k.mark != "" {
			k.close()
		}
		return nil, err
	}
	l.dropMarks(name)
	return k, nil
}

// mark makes the file that is to become the lock, and holds it. Where that
// cannot be, the lock is made as git makes it.
func (l localRefs) mark(k *lockFile, name string) {
	folder := filepath.Join(l.dir, marksFolder)
	if !locksAreShared(l.dir) || l.makeFolders(folder) != nil {
		return
	}
	path := filepath.Join(folder, markName(name)+rand.Text())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return
	}
	if !holdFile(f) {
		f.Close()
		_ = os.Remove(path)
		return
	}
	k.File, k.mark = f, path
}

// markName is how the marks of one ref begin; a ref's name may be too long for
// the name of a file.
func markName(name string) string {
	sum := sha1.Sum([]byte(name))
	return hex.EncodeToString(sum[:]) + "."
}

// make makes the lock file; fs.ErrExist says that there is one.
func (k *lockFile) make() error {
	if k.mark != "" {
		err := os.Link(k.mark, k.path)
		for _, other := range []error{nil, fs.ErrExist, fs.ErrNotExist, syscall.ENOTDIR} {
			if errors.Is(err, other) {
				return err
			}
		}
		// No second names here, or not for this user.
		k.close()
		k.mark = ""
	}
	f, err := os.OpenFile(k.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		k.File = f
	}
	return err
}

// folderTries is how often the folder of a lock is made: git removes folders
// that are empty.
const folderTries = 100

func (l localRefs) take(ctx context.Context, k *lockFile, name string, makeFolder func() error) error {
	wait := time.NewTimer(lockWait)
	defer wait.Stop()
	for tries := 0; ; tries++ {
		err := k.make()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist) && tries < folderTries:
			if err := makeFolder(); err != nil {
				return err
			}
			continue
		case !errors.Is(err, fs.ErrExist):
			return err
		}
		theirs, err := l.takeOver(k.path, name)
		if err != nil {
			return err
		}
		if theirs.gone {
			continue
		}
		if theirs.age > lockStale {
			return theirs.locked(k.path)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
			return theirs.locked(k.path)
		case <-time.After(lockPoll):
		}
	}
}

// foreignLock is a lock that stands in the way.
type foreignLock struct {
	gone bool // it does not any more
	ours bool // a process of this program holds it
	age  time.Duration
}

func (o foreignLock) locked(path string) error {
	age := o.age.Round(time.Second)
	switch {
	case o.ours:
		return fail(kindLocked, "another gitopsd has held the lock file %s for %s", path, age).
			hint("it is tried again; look what that process waits for")
	case o.age > lockStale:
		return fail(kindLocked, "the lock file %s is %s old", path, age).
			hint("if no git process works there any more, remove it")
	}
	return fail(kindLocked, "another process has held the lock file %s for %s", path, age).
		hint("it is tried again; if no git process works there any more, remove it")
}

// takeOver looks at a lock that stands in the way, and removes it if it is one
// of this program's whose process has ended.
func (l localRefs) takeOver(path, name string) (foreignLock, error) {
	// Not to be caught by a pipe or a link of that name.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return foreignLock{gone: true}, nil
	}
	if err != nil {
		// What cannot be opened cannot be judged.
		fi, err := os.Lstat(path)
		if err != nil {
			return foreignLock{gone: errors.Is(err, fs.ErrNotExist)}, nil
		}
		return foreignLock{age: time.Since(fi.ModTime())}, nil
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return foreignLock{}, err
	}
	o := foreignLock{age: time.Since(fi.ModTime())}
	mark := l.markOf(name, fi)
	if mark == "" {
		return o, nil
	}
	if !holdFile(f) {
		o.ours = true
		return o, nil
	}
	// Only whoever holds the file may remove its names, and that is us: what
	// stands there now stays until we have decided.
	if now, err := os.Lstat(path); err != nil || !os.SameFile(now, fi) {
		return foreignLock{gone: true}, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return foreignLock{}, err
	}
	_ = os.Remove(mark)
	return foreignLock{gone: true}, nil
}

// markOf is the mark of a lock, "" when it has none.
func (l localRefs) markOf(name string, lock fs.FileInfo) string {
	for _, m := range l.marks(name) {
		if fi, err := os.Lstat(m); err == nil && os.SameFile(fi, lock) {
			return m
		}
	}
	return ""
}

// marks are those of one ref: of who holds it, who waits, and who ended.
func (l localRefs) marks(name string) []string {
	folder := filepath.Join(l.dir, marksFolder)
	entries, _ := os.ReadDir(folder)
	var list []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), markName(name)) {
			list = append(list, filepath.Join(folder, e.Name()))
		}
	}
	return list
}

// dropMarks removes what a process left that was killed before it had its lock
// or after the lock had become the ref. Young ones may be in the making.
func (l localRefs) dropMarks(name string) {
	for _, m := range l.marks(name) {
		fi, err := os.Lstat(m)
		if err != nil || !fi.Mode().IsRegular() || time.Since(fi.ModTime()) < lockStale {
			continue
		}
		f, err := os.OpenFile(m, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if holdFile(f) {
			_ = os.Remove(m)
		}
		f.Close()
	}
}

// holdFile takes flock(2) on a file without waiting; it ends with the process.
func holdFile(f *os.File) bool {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err == nil
		}
	}
}
