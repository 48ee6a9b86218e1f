package schema

import (
	"crypto/sha1" //nolint:gosec // content ids of git, which no protection rests on
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"sync"
	"syscall"
)

// ErrTooLarge is the error of [Source.Read] for a blob over the limit.
var ErrTooLarge = errors.New("larger than the limit")

// EntryMode is what kind of thing a path is.
type EntryMode int

// Modes of an [Entry].
const (
	ModeRegular EntryMode = iota
	ModeExecutable
	ModeSymlink
	ModeSubmodule
)

// Entry is one path of a revision.
type Entry struct {
	Path string // slash-separated, from the root
	Mode EntryMode
	ID   string // content id (git blob hash); equal ids have equal content
	Size int64  // bytes; -1 where unknown before reading
}

// Source gives the files of one revision. Read may be called for any entry
// that Entries gave; limit is in bytes, a larger blob gives an error that
// satisfies errors.Is(err, ErrTooLarge).
type Source interface {
	Entries() ([]Entry, error) // sorted by path
	Read(e Entry, limit int64) ([]byte, error)
}

// DirSource reads a working tree, without following symlinks and without .git.
// Content ids are those of git, so small files are read once, by Entries, and
// kept until the source goes.
func DirSource(dir string) (Source, error) {
	s, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// DirNames is a DirSource that reads no file before it is asked for it, and so
// does not know their sizes; in place of content ids it has their paths. It is
// for a single Load, with ProblemsOnly: what changes between two listings is
// not seen. Any number of goroutines may read it at once.
func DirNames(dir string) (Source, error) {
	s, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	s.namesOnly = true
	return s, nil
}

func openDir(dir string) (*dirSource, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("fleet repository %s: %w", dir, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("fleet repository %s is not a folder", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("fleet repository %s: %w", dir, err)
	}
	return &dirSource{root: root, kept: map[string][]byte{}}, nil
}

// What a dirSource keeps of what it read for the content ids, in bytes: whole
// documents, but not a folder of images that nobody may ask for.
const (
	keptFile  = 64 << 10
	keptTotal = 64 << 20
)

type dirSource struct {
	root      *os.Root
	namesOnly bool
	kept      map[string][]byte
	total     int64

	mu   sync.Mutex
	last *openFolder // that was read from
}

// openFolder is a folder that several goroutines read files of. Finding one
// file by its whole path opens each folder above it; files are read in the
// order of their paths, so that the next one mostly lies beside the last.
type openFolder struct {
	path string
	root *os.Root
	uses int
}

// folder opens a folder, or gives the one that is open. It is to be left.
func (s *dirSource) folder(dir string) (*openFolder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.path != dir {
		root, err := s.root.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		if s.last != nil {
			s.last.close()
		}
		s.last = &openFolder{path: dir, root: root, uses: 1} // the use is to be the last one
	}
	s.last.uses++
	return s.last, nil
}

func (s *dirSource) leave(f *openFolder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.close()
}

func (f *openFolder) close() {
	if f.uses--; f.uses == 0 {
		_ = f.root.Close() // nothing was written
	}
}

// open opens a file.
func (s *dirSource) open(p string) (*os.File, error) {
	f, err := s.folder(path.Dir(p))
	if err != nil {
		return nil, err
	}
	defer s.leave(f)
	// Without blocking, so that the runtime does not ask first whether it can
	// wait for a file, which is four more system calls; and what was put there
	// meanwhile and is no file cannot keep anybody waiting.
	return f.root.OpenFile(path.Base(p), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (s *dirSource) Entries() ([]Entry, error) {
	s.kept, s.total = map[string][]byte{}, 0
	var entries []Entry
	err := fs.WalkDir(s.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return s.submodule(p, &entries)
		}
		e, ok, err := s.entry(p, d)
		if ok {
			entries = append(entries, e)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.root.Name(), err)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Path < entries[j].Path })
	return entries, nil
}

// submodule notes a nested repository as git would store it: one entry, with
// nothing of its content.
func (s *dirSource) submodule(p string, entries *[]Entry) error {
	if p == "." {
		return nil
	}
	if _, err := s.root.Lstat(path.Join(p, ".git")); err != nil {
		return nil //nolint:nilerr // no .git: an ordinary folder
	}
	*entries = append(*entries, Entry{Path: p, Mode: ModeSubmodule, Size: -1})
	return fs.SkipDir
}

func (s *dirSource) entry(p string, d fs.DirEntry) (Entry, bool, error) {
	if path.Base(p) == ".git" { // a file in a linked worktree
		return Entry{}, false, nil
	}
	if d.Type()&fs.ModeSymlink != 0 {
		return Entry{Path: p, Mode: ModeSymlink, Size: -1}, true, nil
	}
	if !d.Type().IsRegular() {
		return Entry{}, false, nil // a socket or a device: git does not store it either
	}
	if s.namesOnly {
		return Entry{Path: p, ID: p, Size: -1}, true, nil
	}
	f, err := s.root.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, false, nil // gone since it was listed, as what editors write beside a file
	}
	if err != nil {
		return Entry{}, false, fmt.Errorf("read %s: %w", p, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Entry{}, false, fmt.Errorf("read %s: %w", p, err)
	}
	e := Entry{Path: p, Size: info.Size()}
	if info.Mode()&0o111 != 0 {
		e.Mode = ModeExecutable
	}
	if e.Size > maxPayload {
		return e, true, nil // nobody can use it, so nobody has to wait for its id
	}
	h := newBlobHash(e.Size)
	if e.Size <= keptFile && s.total+e.Size <= keptTotal {
		data, err := io.ReadAll(io.LimitReader(f, e.Size))
		if err != nil {
			return Entry{}, false, fmt.Errorf("read %s: %w", p, err)
		}
		h.Write(data)
		s.kept[p] = data
		s.total += e.Size
	} else if _, err := io.Copy(h, io.LimitReader(f, e.Size)); err != nil {
		return Entry{}, false, fmt.Errorf("read %s: %w", p, err)
	}
	e.ID = hex.EncodeToString(h.Sum(nil))
	return e, true, nil
}

func (s *dirSource) Read(e Entry, limit int64) ([]byte, error) {
	if e.Mode != ModeRegular && e.Mode != ModeExecutable {
		return nil, fmt.Errorf("read %s: not a regular file", e.Path)
	}
	if e.Size > limit {
		return nil, fmt.Errorf("read %s: %w of %d bytes", e.Path, ErrTooLarge, limit)
	}
	if data, ok := s.kept[e.Path]; ok {
		return data, nil
	}
	f, err := s.open(e.Path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", e.Path, err)
	}
	defer f.Close()
	data, err := readAll(f, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", e.Path, err)
	}
	return data, nil
}

// readAll reads a file of at most so many bytes, into memory of its size.
func readAll(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)
	}
	// One byte more than it has, so that one which grew meanwhile is seen.
	data := make([]byte, info.Size()+1)
	switch n, err := io.ReadFull(f, data); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return data[:n], nil
	case err != nil:
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, limit))
	if data = append(data, rest...); err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)
	}
	return data, err
}

// newBlobHash begins the id that git gives to content of this size.
func newBlobHash(size int64) hash.Hash {
	h := sha1.New() //nolint:gosec // an id, not a protection
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}
