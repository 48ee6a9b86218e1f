package repo

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// maxPacks is from how many packs of one sort on they are merged into one.
// Every fetch and every publication adds a pack, and every read asks each
// pack in turn.
const maxPacks = 25

// tidy bounds the number of packs in the store and leaves out what only older
// tips reached. It is only thrift: trouble is logged.
func (r *Repo) tidy(ctx context.Context) {
	for _, history := range []bool{true, false} {
		if err := r.store.tidy(ctx, history, r.get); err != nil && ctx.Err() == nil {
			r.log.Warn("packs could not be merged", "store", r.store.dir, "cause", err)
		}
	}
}

func (s *store) tidy(ctx context.Context, history bool, get source) error {
	stems, err := s.packs(history)
	if err != nil || len(stems) <= maxPacks {
		return err
	}
	keep := func(oid) bool { return true }
	if !history {
		alive, err := s.alive(ctx, get)
		if err != nil {
			return err
		}
		keep = func(id oid) bool { return alive[id] }
	}
	return s.merge(stems, history, keep)
}

// packs gives the packs of histories, or of tips, without their endings.
func (s *store) packs(history bool) ([]string, error) {
	folder := filepath.Join(s.dir, "objects", "pack")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	var stems []string
	for name := range names {
		stem, ok := strings.CutSuffix(name, ".pack")
		if !ok || !names[stem+".idx"] {
			continue
		}
		tip := names[stem+markTip] && !names[stem+markFull]
		if tip != history {
			stems = append(stems, filepath.Join(folder, stem))
		}
	}
	sort.Strings(stems)
	return stems, nil
}

// alive is everything that the present tips reach, and the few before them
// that somebody may still be reading.
func (s *store) alive(ctx context.Context, get source) (map[oid]bool, error) {
	s.mu.Lock()
	recent := append([]oid(nil), s.recent...)
	s.mu.Unlock()
	alive := map[oid]bool{}
	var mark func(id oid, depth int) error
	mark = func(id oid, depth int) error {
		if alive[id] {
			return nil
		}
		if depth > maxDepth {
			return fail(kindRefused, "folders nested deeper than %d", maxDepth)
		}
		alive[id] = true
		data, err := get(ctx, id, typeTree)
		if err != nil {
			return err
		}
		entries, err := parseTree(data)
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch e.mode {
			case modeGitlink:
			case modeTree:
				if err := mark(e.id, depth+1); err != nil {
					return err
				}
			default:
				alive[e.id] = true
			}
		}
		return nil
	}
	present := s.tips(false)
	for i, id := range append(present, recent...) {
		if i >= len(present) && !s.objs.has(id) {
			continue
		}
		data, err := get(ctx, id, typeCommit)
		if err != nil {
			return nil, err
		}
		c, err := parseCommit(data)
		if err != nil {
			return nil, err
		}
		alive[id] = true
		if err := mark(c.tree, 0); err != nil {
			return nil, err
		}
	}
	return alive, nil
}

// diskPack is a pack of the store, its entries in the order of the file.
type diskPack struct {
	f       *os.File
	entries []packEntry
	byID    map[oid]int
	byPos   map[int64]int
	take    []bool
}

// openPack reads where the objects of a pack are, from its index.
func openPack(stem string) (*diskPack, error) {
	idx, err := os.ReadFile(stem + ".idx")
	if err != nil {
		return nil, err
	}
	bad := fmt.Errorf("%s.idx cannot be read", stem)
	const table = 8 + 256*4
	if len(idx) < table+40 || string(idx[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return nil, bad
	}
	n := int(binary.BigEndian.Uint32(idx[table-4:]))
	names, small := table, table+n*24
	if n < 0 || len(idx) < small+n*4+40 {
		return nil, bad
	}
	far := idx[small+n*4 : len(idx)-40]
	f, err := os.Open(stem + ".pack")
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	p := &diskPack{f: f, entries: make([]packEntry, n), byID: make(map[oid]int, n), byPos: make(map[int64]int, n), take: make([]bool, n)}
	for i := range p.entries {
		copy(p.entries[i].id[:], idx[names+i*20:])
		off := int64(binary.BigEndian.Uint32(idx[small+i*4:]))
		if off&0x80000000 != 0 {
			at := int(off&0x7fffffff) * 8
			if at+8 > len(far) {
				f.Close()
				return nil, bad
			}
			off = int64(binary.BigEndian.Uint64(far[at:]))
		}
		p.entries[i].offset = off
	}
	sort.Slice(p.entries, func(i, j int) bool { return p.entries[i].offset < p.entries[j].offset })
	for i := range p.entries {
		e := &p.entries[i]
		e.end = fi.Size() - 20
		if i+1 < n {
			e.end = p.entries[i+1].offset
		}
		if err := p.header(e); err != nil {
			f.Close()
			return nil, fmt.Errorf("%s.pack: %w", stem, err)
		}
		p.byID[e.id], p.byPos[e.offset] = i, i
	}
	return p, nil
}

// header reads what an entry is and what it builds on.
func (p *diskPack) header(e *packEntry) error {
	r := &byteCounter{r: io.NewSectionReader(p.f, e.offset, e.end-e.offset)}
	if err := readEntryHeader(r, e); err != nil {
		return cutShort(err)
	}
	e.body = e.offset + r.n
	return nil
}

// byteCounter reads the few bytes of a header one by one.
type byteCounter struct {
	r   io.ReaderAt
	n   int64
	buf [32]byte
	has int
}

func (b *byteCounter) ReadByte() (byte, error) {
	if b.has == 0 {
		n, err := b.r.ReadAt(b.buf[:], 0)
		if n == 0 {
			return 0, err
		}
		b.has = n
	}
	if b.n >= int64(b.has) {
		return 0, io.EOF
	}
	b.n++
	return b.buf[b.n-1], nil
}

// base gives the entry that a delta builds on, in the same pack.
func (p *diskPack) base(e *packEntry) (int, error) {
	i, ok := p.byPos[e.baseAt]
	if e.kind == typeRefDelta {
		i, ok = p.byID[e.base]
	}
	if !ok {
		return 0, corrupt("a delta without its base")
	}
	return i, nil
}

// choose marks what is to be taken: what is kept and not taken from an
// earlier pack, and the bases that it builds on. Since a base is either taken
// from the same pack or from an earlier one, the deltas of the merged pack
// cannot build on each other in a circle.
func (p *diskPack) choose(keep func(oid) bool, taken map[oid]bool) error {
	var todo []int
	for i, e := range p.entries {
		if keep(e.id) && !taken[e.id] && p.byID[e.id] == i {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		e := &p.entries[i]
		if p.take[i] || taken[e.id] {
			continue
		}
		p.take[i] = true
		if e.kind < typeOfsDelta {
			continue
		}
		b, err := p.base(e)
		if err != nil {
			return err
		}
		// The base may stand in the pack twice; the one that is named counts.
		todo = append(todo, p.byID[p.entries[b].id])
	}
	for i, ok := range p.take {
		if ok {
			taken[p.entries[i].id] = true
		}
	}
	return nil
}

// merge writes one pack of what is kept of several. The old ones go only when
// the new one is complete on disk.
func (s *store) merge(stems []string, history bool, keep func(oid) bool) error {
	var packs []*diskPack
	defer func() {
		for _, p := range packs {
			p.f.Close()
		}
	}()
	taken := map[oid]bool{}
	for _, stem := range stems {
		p, err := openPack(stem)
		if err != nil {
			return err
		}
		packs = append(packs, p)
		if err := p.choose(keep, taken); err != nil {
			return err
		}
	}
	folder := filepath.Join(s.dir, "objects", "pack")
	f, err := createTemp(folder)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	merged, err := copyEntries(f, packs, len(taken))
	if err != nil {
		return err
	}
	if err := s.install(folder, f, merged, history); err != nil {
		return err
	}
	fresh := filepath.Join(folder, "pack-"+merged.sum.String())
	return s.objs.exclusive(func() error {
		var errs []error
		for _, stem := range stems {
			if stem == fresh {
				continue
			}
			for _, end := range []string{".pack", ".idx", markFull, markTip} {
				if err := os.Remove(stem + end); err != nil && !errors.Is(err, os.ErrNotExist) {
					errs = append(errs, err)
				}
			}
		}
		return errors.Join(errs...)
	})
}

// copyEntries copies the compressed objects as they are; deltas name their
// base by hash from then on, because distances change.
func copyEntries(w io.Writer, packs []*diskPack, count int) (*packData, error) {
	sum := sha1.New()
	out := io.MultiWriter(w, sum)
	head := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	binary.BigEndian.PutUint32(head[8:], uint32(count))
	if _, err := out.Write(head); err != nil {
		return nil, err
	}
	merged := &packData{entries: make([]packEntry, 0, count)}
	pos := int64(len(head))
	for _, p := range packs {
		for i := range p.entries {
			if !p.take[i] {
				continue
			}
			e := &p.entries[i]
			from, prefix := e.offset, []byte(nil)
			if e.kind == typeOfsDelta {
				b, err := p.base(e)
				if err != nil {
					return nil, err
				}
				from, prefix = e.body, append(entryHeader(typeRefDelta, e.size), p.entries[b].id[:]...)
			}
			raw := make([]byte, e.end-from)
			if _, err := p.f.ReadAt(raw, from); err != nil {
				return nil, cutShort(err)
			}
			raw = append(prefix, raw...)
			if _, err := out.Write(raw); err != nil {
				return nil, err
			}
			merged.entries = append(merged.entries, packEntry{id: e.id, offset: pos, end: pos + int64(len(raw)), crc: crc32.ChecksumIEEE(raw)})
			pos += int64(len(raw))
		}
	}
	if len(merged.entries) != count {
		return nil, fmt.Errorf("%d objects instead of %d", len(merged.entries), count)
	}
	sum.Sum(merged.sum[:0])
	merged.size = pos + int64(len(merged.sum))
	_, err := w.Write(merged.sum[:])
	return merged, err
}
