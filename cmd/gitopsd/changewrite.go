package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

// lockLimit is how long another gitopsd that changes the same file is waited
// for; it holds the lock for milliseconds.
const (
	lockLimit = 5 * time.Second
	lockEvery = 10 * time.Millisecond
)

// writeChanges carries changes of a folder out, the first one last: it is the
// document that the others belong to, and without it they are nothing. A
// document is replaced whole or not at all, and what was made is taken away
// again where another one cannot be.
func writeChanges(ctx context.Context, dir string, changes []fileChange) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("cannot write to %s: %w", dir, err)
	}
	defer root.Close()
	var made []string
	for _, c := range slices.Concat(changes[1:], changes[:1]) {
		if c.before != nil {
			err = replace(ctx, dir, root, c)
		} else {
			err = create(root, c, &made)
		}
		if err != nil {
			for i := len(made) - 1; i >= 0; i-- {
				err = errors.Join(err, root.Remove(made[i]))
			}
			return fmt.Errorf("cannot write %s: %w", c.path, err)
		}
	}
	return nil
}

// errChanged is for a file that is not what it was when the change was made.
var errChanged = errors.New("it has changed meanwhile")

func changedMeanwhile() error {
	return withHint(errChanged, "nothing was written; run the command again")
}

// replace puts a new content into the place of a file, if it still has the old
// one: another gitopsd, or an editor, may have been there.
func replace(ctx context.Context, dir string, root *os.Root, c fileChange) error {
	folder, err := openFolder(root, path.Dir(c.path))
	if err != nil {
		return err
	}
	defer folder.Close()
	name := path.Base(c.path)
	if _, err := regular(folder, name); err != nil {
		return err
	}
	// The lock is on the file itself, so that nothing is left behind. Whoever
	// comes second has the lock of a file that is not there any more.
	lock := flock.New(filepath.Join(dir, filepath.FromSlash(c.path)), flock.SetFlag(os.O_RDONLY))
	limited, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	locked, err := lock.TryLockContext(limited, lockEvery)
	if err != nil || !locked {
		return withHint(fmt.Errorf("another program holds a lock on it: %w", err), "try again")
	}
	defer func() { _ = lock.Close() }()
	info, err := regular(folder, name)
	if err != nil {
		return err
	}
	if ours, err := lock.Stat(); err != nil || !os.SameFile(ours, info) {
		return changedMeanwhile()
	}
	if err := tidyUp(folder, name); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(name, renameio.WithRoot(folder), renameio.WithStaticPermissions(info.Mode().Perm()))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(c.after); err != nil {
		return err
	}
	now, err := folder.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, c.before) {
		return changedMeanwhile()
	}
	return f.CloseAtomicallyReplace()
}

// tidyUp takes away what a program that was killed in the middle of a
// replacement has left beside a file: it is called as the file, between a dot
// and a number. Whoever has the lock of the file is the only one that writes
// such a file.
func tidyUp(folder *os.Root, name string) error {
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), "."+name)
		if !ours || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if err := folder.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// openFolder opens a folder of the repository without following a symlink.
func openFolder(root *os.Root, name string) (*os.Root, error) {
	folder, err := root.OpenRoot(".")
	if err != nil || name == "." {
		return folder, err
	}
	for part := range strings.SplitSeq(name, "/") {
		info, err := folder.Lstat(part)
		if err == nil && !info.IsDir() {
			err = withHint(fmt.Errorf("%s is no folder", part), "symlinks are not followed")
		}
		if err != nil {
			return nil, errors.Join(err, folder.Close())
		}
		next, err := folder.OpenRoot(part)
		if err = errors.Join(err, folder.Close()); err != nil {
			return nil, err
		}
		folder = next
	}
	return folder, nil
}

// regular wants a plain file.
func regular(folder *os.Root, name string) (fs.FileInfo, error) {
	info, err := folder.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is no regular file, and is not followed")
	}
	return info, err
}

// create writes a file where there is none, and notes what it has made.
func create(root *os.Root, c fileChange, made *[]string) (err error) {
	parts := strings.Split(path.Dir(c.path), "/")
	for i := range parts {
		folder := path.Join(parts[:i+1]...)
		switch err := root.Mkdir(folder, 0o755); {
		case err == nil:
			*made = append(*made, folder)
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	folder, err := openFolder(root, path.Dir(c.path))
	if err != nil {
		return err
	}
	defer folder.Close()
	mode := fs.FileMode(0o644)
	var from io.Reader = bytes.NewReader(c.after)
	if c.copyOf != nil {
		source, err := openFolder(root, path.Dir(c.copyOf.Path))
		if err != nil {
			return err
		}
		defer source.Close()
		info, err := regular(source, path.Base(c.copyOf.Path))
		if err != nil {
			return err
		}
		f, err := source.Open(path.Base(c.copyOf.Path))
		if err != nil {
			return err
		}
		defer f.Close()
		mode, from = info.Mode().Perm(), f
	}
	// O_EXCL: also a file that appeared a moment ago is not overwritten.
	f, err := folder.OpenFile(path.Base(c.path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return withHint(errors.New("there is a file already"), "it is never overwritten: take it away first, if nobody needs it")
	}
	if err != nil {
		return err
	}
	*made = append(*made, c.path)
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}
