package repo

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sort"
)

// inflate gives the stored bytes of an entry.
func (p *packData) inflate(e *packEntry) ([]byte, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(p.file, e.body, e.end-e.body), 4<<10)
	zr, err := zlib.NewReader(r)
	if err != nil {
		return nil, corrupt("%w", err)
	}
	defer zr.Close()
	var b bytes.Buffer
	if n, err := io.Copy(&b, io.LimitReader(zr, e.size+1)); err != nil || n != e.size {
		return nil, corrupt("an object changed while it was read")
	}
	return b.Bytes(), nil
}

// resolve is the second pass: it applies the deltas, each base before what is
// built on it, and names their results.
func (p *packData) resolve(base func(oid) (objectType, []byte, error)) error {
	byBase := map[oid][]int{}  // ref deltas
	byPos := map[int64][]int{} // offset deltas
	waiting, total := 0, int64(0)
	for i := range p.entries {
		switch e := &p.entries[i]; e.kind {
		case typeRefDelta:
			byBase[e.base] = append(byBase[e.base], i)
			waiting++
		case typeOfsDelta:
			byPos[e.baseAt] = append(byPos[e.baseAt], i)
			waiting++
		}
	}
	if waiting == 0 {
		return nil
	}
	type job struct {
		entry int
		typ   objectType
		base  []byte
	}
	var stack []job
	push := func(id oid, at int64, typ objectType, data []byte) {
		for _, i := range byBase[id] {
			stack = append(stack, job{i, typ, data})
		}
		delete(byBase, id)
		for _, i := range byPos[at] {
			stack = append(stack, job{i, typ, data})
		}
		delete(byPos, at)
	}
	run := func() error {
		for len(stack) > 0 {
			j := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			e := &p.entries[j.entry]
			if e.typ != 0 {
				continue
			}
			delta, err := p.inflate(e)
			if err != nil {
				return err
			}
			room := int64(0)
			if p.limits.totalSize > 0 {
				if room = p.limits.totalSize - total; room < 1 {
					room = 1
				}
			}
			if p.limits.objectSize > 0 && (room == 0 || p.limits.objectSize < room) {
				room = p.limits.objectSize
			}
			data, err := applyDelta(j.base, delta, room)
			if err != nil {
				return err
			}
			total += int64(len(data))
			e.typ, e.id = j.typ, hashForeign(j.typ, data)
			if _, dup := p.byID[e.id]; !dup {
				p.byID[e.id] = j.entry
			}
			waiting--
			push(e.id, e.offset, e.typ, data)
		}
		return nil
	}
	for i := range p.entries {
		e := &p.entries[i]
		if e.typ == 0 || e.kind >= typeOfsDelta || (len(byBase[e.id]) == 0 && len(byPos[e.offset]) == 0) {
			continue
		}
		data, err := p.inflate(e)
		if err != nil {
			return err
		}
		push(e.id, e.offset, e.typ, data)
		if err := run(); err != nil {
			return err
		}
	}
	if waiting > 0 {
		outside := make([]oid, 0, len(byBase))
		for id := range byBase {
			outside = append(outside, id)
		}
		sort.Slice(outside, func(i, j int) bool { return bytes.Compare(outside[i][:], outside[j][:]) < 0 })
		for _, id := range outside {
			if len(byBase[id]) == 0 || base == nil {
				continue
			}
			typ, data, err := base(id)
			if err != nil {
				// It may be the result of a delta that is still to come.
				continue
			}
			at, err := p.add(id, typ, data)
			if err != nil {
				return err
			}
			push(id, at, typ, data)
			if err := run(); err != nil {
				return err
			}
		}
	}
	if waiting > 0 {
		return corrupt("%d deltas without their base", waiting)
	}
	return p.seal()
}

// add puts a whole object at the end, over the checksum.
func (p *packData) add(id oid, typ objectType, data []byte) (int64, error) {
	at := p.size - int64(len(p.sum))
	var enc entryWriter
	b, err := enc.encode(typ, nil, data)
	if err != nil {
		return 0, err
	}
	if err := p.writeAt(b, at); err != nil {
		return 0, err
	}
	e := packEntry{offset: at, end: at + int64(len(b)), size: int64(len(data)), kind: typ, typ: typ, id: id, crc: crc32.ChecksumIEEE(b)}
	e.body = at + int64(len(entryHeader(typ, e.size)))
	p.byID[id], p.byPos[at] = len(p.entries), len(p.entries)
	p.entries = append(p.entries, e)
	p.size += int64(len(b))
	p.sum = zero
	return at, nil
}

// writeAt writes over the end of the file, which memoryPack cannot grow by
// itself.
func (p *packData) writeAt(b []byte, at int64) error {
	if m, ok := p.file.(*memoryPack); ok {
		m.data = append(m.data[:at], b...)
		return nil
	}
	_, err := p.file.WriteAt(b, at)
	return err
}

// seal writes number and checksum again after objects were added.
func (p *packData) seal() error {
	if !p.sum.IsZero() {
		return nil
	}
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(p.entries)))
	if _, err := p.file.WriteAt(n[:], 8); err != nil {
		return err
	}
	h := sha1.New()
	end := p.size - int64(len(p.sum))
	if _, err := io.Copy(h, io.NewSectionReader(p.file, 0, end)); err != nil {
		return err
	}
	h.Sum(p.sum[:0])
	return p.writeAt(p.sum[:], end)
}

// object gives an object of the pack; the length of delta chains is bounded
// by the number of entries, and each base lies before or was resolved first.
func (p *packData) object(id oid) (objectType, []byte, error) {
	i, ok := p.byID[id]
	if !ok {
		return 0, nil, errMissing
	}
	var chain []*packEntry
	e := &p.entries[i]
	for e.kind >= typeOfsDelta {
		chain = append(chain, e)
		if len(chain) > len(p.entries) {
			return 0, nil, corrupt("deltas that build on each other")
		}
		next, ok := p.byPos[e.baseAt]
		if e.kind == typeRefDelta {
			next, ok = p.byID[e.base]
		}
		if !ok {
			return 0, nil, corrupt("a delta without its base")
		}
		e = &p.entries[next]
	}
	data, err := p.inflate(e)
	if err != nil {
		return 0, nil, err
	}
	for j := len(chain) - 1; j >= 0; j-- {
		delta, err := p.inflate(chain[j])
		if err != nil {
			return 0, nil, err
		}
		if data, err = applyDelta(data, delta, p.limits.objectSize); err != nil {
			return 0, nil, err
		}
	}
	return p.entries[i].typ, data, nil
}
