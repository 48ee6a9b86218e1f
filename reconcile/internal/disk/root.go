package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	// ErrSymlink is the error of a write to a path that is a symlink.
	ErrSymlink = errors.New("a symlink stands there, and symlinks are neither followed nor replaced")
	// ErrTooLarge is the error of reading a file over the limit.
	ErrTooLarge = errors.New("larger than the limit")
	// ErrNotRegular is the error of reading or writing what is no file:
	// a device or a pipe might block for ever.
	ErrNotRegular = errors.New("not a regular file")
)

// maxLinks is how many symlinks one path may go through, as in the kernel.
const maxLinks = 40

// Options of a Root.
type Options struct {
	// Step is asked before every operation that changes the disk ("create",
	// "write", "sync", "chmod", "chown", "setxattr", "rename", "remove",
	// "mkdir", "syncdir"); an error becomes the operation's. Tests crash and fail with
	// it. nil = nothing is asked.
	Step func(op, path string) error
	// ReadStep is the same for what reads: "read" of a file's content, "lstat"
	// and "list".
	ReadStep func(op, path string) error
}

// Root is a file tree that no path and no symlink leaves. Paths are absolute
// as the device sees them ("/etc/x").
type Root struct {
	dir  string
	root *os.Root
	top  *os.File // the same folder, for [Root.straight]
	step func(op, path string) error
	look func(op, path string) error

	mu    sync.Mutex
	doubt map[string]bool // resolved paths, see [Root.Doubtful]
}

// Open opens the tree below the folder dir.
func Open(dir string, o Options) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", abs, bare(err))
	}
	top, err := openStraight(abs)
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("open root %s: %w", abs, err)
	}
	r := &Root{dir: abs, root: root, top: top, step: o.Step, look: o.ReadStep, doubt: map[string]bool{}}
	for _, step := range []*func(op, path string) error{&r.step, &r.look} {
		if *step == nil {
			*step = func(string, string) error { return nil }
		}
	}
	return r, nil
}

// Dir is the folder that is the root, absolute as the host sees it.
func (r *Root) Dir() string { return r.dir }

// Close releases the root.
func (r *Root) Close() error { return errors.Join(r.root.Close(), r.top.Close()) }

// HostPath is where the host finds a path of the device, symlinks followed.
// The path need not exist.
func (r *Root) HostPath(p string) (string, error) {
	real, err := r.Follow(p)
	if err != nil {
		return "", err
	}
	return filepath.Join(r.dir, filepath.FromSlash(real)), nil
}

// Resolve gives the path without symlinks among its parents; the last element
// is left as it is. What does not exist is taken as written.
func (r *Root) Resolve(p string) (string, error) { return r.walk(p, false) }

// Follow gives the path without any symlink, the last element's included.
func (r *Root) Follow(p string) (string, error) { return r.walk(p, true) }

// walk follows symlinks as the device would with the root as "/".
func (r *Root) walk(p string, followLast bool) (string, error) {
	if !strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
		return "", fmt.Errorf("%q: %w: an absolute path is wanted", p, fs.ErrInvalid)
	}
	clean := path.Clean(p)
	if r.straight(clean, followLast) {
		return clean, nil
	}
	return r.follow(clean, followLast)
}

// follow is walk of a clean path, element by element.
func (r *Root) follow(p string, followLast bool) (string, error) {
	rest := split(p)
	cur, links := "/", 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			cur = path.Dir(cur)
			continue
		}
		next := path.Join(cur, name)
		if len(rest) == 0 && !followLast {
			return next, nil
		}
		info, err := r.root.Lstat(rel(next))
		if errors.Is(err, fs.ErrNotExist) {
			return path.Join(next, strings.Join(rest, "/")), nil
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", p, bare(err))
		}
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			if links++; links > maxLinks {
				return "", fmt.Errorf("%s: %w", p, syscall.ELOOP)
			}
			target, err := r.root.Readlink(rel(next))
			if err != nil {
				return "", fmt.Errorf("%s: %w", p, bare(err))
			}
			if strings.HasPrefix(target, "/") {
				cur = "/"
			}
			rest = append(split(target), rest...)
		case len(rest) > 0 && !info.IsDir():
			return "", fmt.Errorf("%s: %s: %w", p, next, syscall.ENOTDIR)
		default:
			cur = next
		}
	}
	return cur, nil
}

// split gives the elements of a path, without empty ones and ".".
func split(p string) []string {
	var out []string
	for _, e := range strings.Split(p, "/") {
		if e != "" && e != "." {
			out = append(out, e)
		}
	}
	return out
}

// rel is a resolved path as os.Root wants it.
func rel(p string) string {
	if p == "/" {
		return "."
	}
	return strings.TrimPrefix(p, "/")
}

// bare takes the path, which os.Root gives without its slash, off an error.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}

// Lstat tells what is at the path; a symlink there is told as one.
func (r *Root) Lstat(p string) (fs.FileInfo, error) {
	real, err := r.Resolve(p)
	if err != nil {
		return nil, err
	}
	if err := r.look("lstat", real); err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	info, err := r.root.Lstat(rel(real))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, bare(err))
	}
	return info, nil
}

// Readlink gives what a symlink at the path says, unresolved.
func (r *Root) Readlink(p string) (string, error) {
	real, err := r.Resolve(p)
	if err != nil {
		return "", err
	}
	to, err := r.root.Readlink(rel(real))
	if err != nil {
		return "", fmt.Errorf("%s: %w", p, bare(err))
	}
	return to, nil
}

// ReadFile reads a regular file, through symlinks inside the root, of at most
// limit bytes (0 = any).
func (r *Root) ReadFile(p string, limit int64) ([]byte, error) {
	f, info, err := r.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if limit > 0 && info.Size() > limit {
		return nil, fmt.Errorf("read %s: %d bytes: %w of %d", p, info.Size(), ErrTooLarge, limit)
	}
	var src io.Reader = f
	if limit > 0 {
		src = io.LimitReader(f, limit+1)
	}
	data, err := io.ReadAll(src)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p, bare(err))
	}
	if limit > 0 && int64(len(data)) > limit {
		return nil, fmt.Errorf("read %s: %w of %d", p, ErrTooLarge, limit)
	}
	return data, nil
}

const (
	// readTries and readPause are for a disk that resets itself or wakes up.
	readTries = 3
	readPause = time.Second
)

// ReadState is [Root.ReadFile] for what much depends on: an input or output
// error counts only when it stays for a moment.
func (r *Root) ReadState(p string, limit int64) ([]byte, error) {
	for try := 1; ; try++ {
		data, err := r.ReadFile(p, limit)
		if !errors.Is(err, syscall.EIO) || try == readTries {
			return data, err
		}
		time.Sleep(readPause)
	}
}

// Short says that an operation failed for want of something that the process
// or the machine has too little of: it tells nothing of what is on the disk.
func Short(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// open opens a regular file for reading and never blocks: what is no file is
// refused before, and again after, in case it was exchanged.
func (r *Root) open(p string) (*os.File, fs.FileInfo, error) {
	real, err := r.walk(p, true)
	if err != nil {
		return nil, nil, err
	}
	if err := r.look("read", real); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", p, err)
	}
	info, err := r.root.Lstat(rel(real))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", p, bare(err))
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("read %s: %w", p, ErrNotRegular)
	}
	f, err := r.root.OpenFile(rel(real), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", p, bare(err))
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("read %s: %w", p, bare(err))
	}
	return f, info, nil
}

// List gives what is in a folder, sorted by name.
func (r *Root) List(p string) ([]fs.DirEntry, error) {
	real, err := r.walk(p, true)
	if err != nil {
		return nil, err
	}
	if err := r.look("list", real); err != nil {
		return nil, fmt.Errorf("list %s: %w", p, err)
	}
	entries, err := fs.ReadDir(r.root.FS(), rel(real))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", p, bare(err))
	}
	return entries, nil
}

// Sum gives the sha256 of a regular file in hex, reading it piece by piece.
func (r *Root) Sum(p string) (string, error) {
	f, _, err := r.open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", p, bare(err))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
