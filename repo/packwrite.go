package repo

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sort"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// packLevel is the zlib level of what this program writes: documents of some
// hundred bytes gain next to nothing from a higher one.
const packLevel = zlib.BestSpeed

// outObject is an object to be sent or stored. With a base it may go as a
// delta, where the other side is known to have the base.
type outObject struct {
	id       oid
	typ      objectType
	data     []byte
	base     oid
	baseData []byte
}

// entryHeader is type and inflated size of an entry.
func entryHeader(typ objectType, size int64) []byte {
	c := byte(typ)<<4 | byte(size&15)
	var b []byte
	for size >>= 4; size > 0; size >>= 7 {
		b = append(b, c|0x80)
		c = byte(size & 127)
	}
	return append(b, c)
}

// entryWriter encodes objects as they stand in a pack. One deflater for all of
// them: its tables are larger than most objects.
type entryWriter struct {
	buf bytes.Buffer
	zw  *zlib.Writer
}

// encode gives one object, valid until the next; base is what a ref delta
// builds upon, nil for a whole object.
func (w *entryWriter) encode(typ objectType, base *oid, data []byte) ([]byte, error) {
	w.buf.Reset()
	w.buf.Write(entryHeader(typ, int64(len(data))))
	if base != nil {
		w.buf.Write(base[:])
	}
	if w.zw == nil {
		var err error
		if w.zw, err = zlib.NewWriterLevel(&w.buf, packLevel); err != nil {
			return nil, err
		}
	} else {
		w.zw.Reset(&w.buf)
	}
	if _, err := w.zw.Write(data); err != nil {
		return nil, err
	}
	if err := w.zw.Close(); err != nil {
		return nil, err
	}
	return w.buf.Bytes(), nil
}

// writePack writes a pack of the objects and gives where each came to lie.
// Those with a base go as deltas when that is less than half.
func writePack(w io.Writer, objs []outObject) (*packData, error) {
	sum := sha1.New()
	out := io.MultiWriter(w, sum)
	head := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	binary.BigEndian.PutUint32(head[8:], uint32(len(objs)))
	if _, err := out.Write(head); err != nil {
		return nil, err
	}
	p := &packData{entries: make([]packEntry, 0, len(objs))}
	pos := int64(len(head))
	var enc entryWriter
	for i := range objs {
		o := &objs[i]
		typ, data, base := o.typ, o.data, (*oid)(nil)
		if o.baseData != nil {
			if d := packfile.DiffDelta(o.baseData, o.data); len(d) < len(data)/2 {
				typ, data, base = typeRefDelta, d, &o.base
			}
		}
		b, err := enc.encode(typ, base, data)
		if err != nil {
			return nil, err
		}
		if _, err := out.Write(b); err != nil {
			return nil, err
		}
		p.entries = append(p.entries, packEntry{
			offset: pos, end: pos + int64(len(b)), crc: crc32.ChecksumIEEE(b), kind: typ, typ: o.typ, id: o.id,
		})
		pos += int64(len(b))
	}
	sum.Sum(p.sum[:0])
	p.size = pos + int64(len(p.sum))
	_, err := w.Write(p.sum[:])
	return p, err
}

// encodeIndex writes the index of a pack, version 2: gitformat-pack(5).
// Entries of one name are listed once each, as git does.
func encodeIndex(entries []packEntry, packSum oid) []byte {
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		return bytes.Compare(entries[order[a]].id[:], entries[order[b]].id[:]) < 0
	})
	var b bytes.Buffer
	b.Grow(1100 + 28*len(entries))
	b.WriteString("\xfftOc\x00\x00\x00\x02")
	var n [8]byte
	at := 0
	for first := 0; first < 256; first++ {
		for at < len(order) && int(entries[order[at]].id[0]) == first {
			at++
		}
		binary.BigEndian.PutUint32(n[:4], uint32(at))
		b.Write(n[:4])
	}
	for _, i := range order {
		b.Write(entries[i].id[:])
	}
	for _, i := range order {
		binary.BigEndian.PutUint32(n[:4], entries[i].crc)
		b.Write(n[:4])
	}
	var far []int64
	for _, i := range order {
		v := uint32(entries[i].offset)
		if entries[i].offset > 0x7fffffff {
			v = 0x80000000 | uint32(len(far))
			far = append(far, entries[i].offset)
		}
		binary.BigEndian.PutUint32(n[:4], v)
		b.Write(n[:4])
	}
	for _, off := range far {
		binary.BigEndian.PutUint64(n[:], uint64(off))
		b.Write(n[:])
	}
	b.Write(packSum[:])
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	return b.Bytes()
}
