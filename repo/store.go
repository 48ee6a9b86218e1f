package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
)

// store is the daemon's own copy of what it has fetched: a bare repository
// that holds the history of some branches and the newest tree of others. All
// of it can be fetched again, so damage is answered by starting over.
type store struct {
	dir     string
	objs    *objects
	cleared []string // what a crash had left, and is gone

	mu     sync.Mutex
	kept   map[string]oid // the store's own refs, by keptName
	recent []oid          // the tips of late, which may still be read
}

// recentTips is how many earlier tips survive a merge of packs.
const recentTips = 4

// The store's refs say what is complete: everything that a commit below
// refs/full/ reaches is here, and the tree of one below refs/tip/.
const (
	fullPrefix = "refs/full/"
	tipPrefix  = "refs/tip/"
)

func keptName(ref string, history bool) string {
	name := strings.TrimPrefix(ref, "refs/")
	if history {
		return fullPrefix + name
	}
	return tipPrefix + name
}

// Packs carry what they belong to beside them: packs of histories only grow,
// those of tips are thinned out when they are merged.
const (
	markFull = ".full"
	markTip  = ".tip"
)

// openStore opens the store in dir and makes it when it is not there. What a
// crash left half done is removed. damaged says that it was not usable and
// begins empty.
func openStore(ctx context.Context, dir string) (s *store, damaged error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	s = &store{dir: dir, objs: newObjects(dir, false), kept: map[string]oid{}}
	if !looksLikeRepo(dir) {
		return s, nil, s.reset()
	}
	s.sweep()
	if damaged = s.load(ctx); damaged != nil {
		return s, damaged, s.reset()
	}
	return s, nil, nil
}

// reset empties the store.
func (s *store) reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objs.reopen()
	// The refs go first: without them nothing counts as complete.
	for _, name := range []string{"packed-refs", "shallow", "objects", "refs", "HEAD"} {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	s.kept = map[string]oid{}
	return initBare(s.dir, "refs/heads/main")
}

// sweep removes what a crash left: unfinished files, locks (the daemon's own
// lock says that nobody else works here) and packs without their index.
func (s *store) sweep() {
	folder := filepath.Join(s.dir, "objects", "pack")
	entries, _ := os.ReadDir(folder)
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	// What cannot be walked or removed shows when it is used.
	_ = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && leftOver(e.Name(), filepath.Dir(path) == folder, names) && os.Remove(path) == nil {
			s.cleared = append(s.cleared, path)
		}
		return nil
	})
}

// leftOver tells whether a file of the store is no more than the rest of
// something that was not finished, by gitopsd or by git.
func leftOver(name string, inPacks bool, packs map[string]bool) bool {
	if strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_") || name == "packed-refs.new" {
		return true
	}
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	switch filepath.Ext(name) {
	case ".pack":
		return inPacks && !packs[stem+".idx"]
	case ".idx", markFull, markTip:
		return inPacks && !packs[stem+".pack"]
	}
	return false
}

// load reads the refs and looks whether their commits and root trees are there.
func (s *store) load(ctx context.Context) error {
	kept, err := localRefs{dir: s.dir}.packed(func(string) bool { return true })
	if err != nil {
		return err
	}
	if fi, err := os.Stat(filepath.Join(s.dir, "objects", "pack")); err != nil || !fi.IsDir() {
		return fmt.Errorf("it has no folder for packs")
	}
	for name, id := range kept {
		typ, data, err := s.objs.read(ctx, id, 0)
		if err == nil && typ == typeCommit {
			var c *commit
			if c, err = parseCommit(data); err == nil {
				typ, _, err = s.objs.read(ctx, c.tree, 0)
				if err == nil && typ != typeTree {
					err = fail(kindCorrupt, "%s is no tree", c.tree)
				}
			}
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.kept = kept
	return nil
}

func (s *store) get(ref string, history bool) oid {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[keptName(ref, history)]
}

// isTip tells whether the store claims to have a commit.
func (s *store) isTip(id oid) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kept := range s.kept {
		if kept == id {
			return true
		}
	}
	return false
}

// tips gives the commits that are kept with their history, or without.
func (s *store) tips(history bool) []oid {
	prefix := tipPrefix
	if history {
		prefix = fullPrefix
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[oid]bool{}
	var list []oid
	for name, id := range s.kept {
		if strings.HasPrefix(name, prefix) && !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	sort.Slice(list, func(i, j int) bool { return bytes.Compare(list[i][:], list[j][:]) < 0 })
	return list
}

// keep records that a commit is complete, and for which ref.
func (s *store) keep(ref string, history bool, id oid) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := keptName(ref, history)
	if s.kept[name] == id {
		return nil
	}
	next := map[string]oid{name: id}
	for n, h := range s.kept {
		if n != name {
			next[n] = h
		}
	}
	names := make([]string, 0, len(next))
	shallow := map[oid]bool{}
	for n := range next {
		names = append(names, n)
	}
	sort.Strings(names)
	var refs, cut bytes.Buffer
	refs.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for _, n := range names {
		fmt.Fprintf(&refs, "%s %s\n", next[n], n)
		if strings.HasPrefix(n, tipPrefix) && !shallow[next[n]] {
			shallow[next[n]] = true
			fmt.Fprintf(&cut, "%s\n", next[n])
		}
	}
	// The shallow file is for people who look at the store with git.
	if err := replaceFile(filepath.Join(s.dir, "shallow"), cut.Bytes()); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(s.dir, "packed-refs"), refs.Bytes()); err != nil {
		return err
	}
	s.kept = next
	if !history {
		if s.recent = append(s.recent, id); len(s.recent) > recentTips {
			s.recent = s.recent[1:]
		}
	}
	return nil
}

// replaceFile writes a whole file or leaves the old one.
func replaceFile(path string, data []byte) error {
	f, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	if err := putInPlace(f, data, 0, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// errDamaged says that the store lacks what it claims to have.
var errDamaged = errors.New("the copy of the repository is damaged")

// receive takes a pack from a server into the store, of at most so many bytes.
func (s *store) receive(ctx context.Context, r io.Reader, history bool, limit int64) error {
	folder := filepath.Join(s.dir, "objects", "pack")
	f, err := createTemp(folder)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var lacking error
	limits := storeLimits
	limits.packBytes = limit
	p, err := readPack(r, f, limits, func(id oid) (objectType, []byte, error) {
		typ, data, err := s.objs.read(ctx, id, 0)
		if err != nil {
			lacking = err
		}
		return typ, data, err
	})
	if hasKind(err, kindCorrupt) && lacking != nil {
		return fail(kindCorrupt, "%w: %w", errDamaged, lacking)
	}
	if err != nil {
		return err
	}
	if len(p.entries) == 0 {
		return nil
	}
	return s.install(folder, f, p, history)
}

// storeLimits bound what a fetch may bring into the store: far above any
// fleet, far below what fills a disk or an address space by one object.
var storeLimits = packLimits{packBytes: 8 << 30, objects: 20 << 20, objectSize: 1 << 30}

// add writes objects that this program made.
func (s *store) add(objs []outObject, history bool) error {
	if len(objs) == 0 {
		return nil
	}
	folder := filepath.Join(s.dir, "objects", "pack")
	f, err := createTemp(folder)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	p, err := writePack(f, objs)
	if err != nil {
		return err
	}
	return s.install(folder, f, p, history)
}

// install gives a pack its name and its mark. The mark comes last: a pack
// without one is kept as if it were of a history.
func (s *store) install(folder string, f *os.File, p *packData, history bool) error {
	base, err := installPack(folder, f, p)
	if err != nil {
		return err
	}
	mark := markTip
	if history {
		mark = markFull
	}
	if err := os.WriteFile(base+mark, nil, 0o444); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	s.objs.reopen()
	return nil
}

// keptRef is one thing that the store keeps complete.
type keptRef struct {
	ref     string
	id      oid
	history bool
}

// all gives everything that is kept, sorted.
func (s *store) all() []keptRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]keptRef, 0, len(s.kept))
	for name, id := range s.kept {
		if ref, ok := strings.CutPrefix(name, fullPrefix); ok {
			list = append(list, keptRef{"refs/" + ref, id, true})
		} else if ref, ok := strings.CutPrefix(name, tipPrefix); ok {
			list = append(list, keptRef{"refs/" + ref, id, false})
		}
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].ref != list[j].ref {
			return list[i].ref < list[j].ref
		}
		return list[i].history
	})
	return list
}
