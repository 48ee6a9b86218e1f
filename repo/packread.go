package repo

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"sort"

	"github.com/pjbgf/sha1cd"
)

// The pack format: gitformat-pack(5). A pack from a server is read once as a
// stream, kept, and its deltas are then resolved; every object is named by
// what it holds, so nothing is taken on the server's word.

// packLimits bound what a server can make this side do; 0 = no bound.
type packLimits struct {
	packBytes  int64 // of the pack as it comes
	objects    int64
	objectSize int64 // of one object, inflated, in bytes
	totalSize  int64 // of all objects, deltas and their results included
}

// errPackLimit marks a pack that is larger than the caller wants it.
var errPackLimit = errors.New("larger than allowed")

// packFile is where the bytes of a pack go.
type packFile interface {
	io.Writer
	io.ReaderAt
	io.WriterAt
}

// memoryPack is a packFile for small packs.
type memoryPack struct{ data []byte }

func (m *memoryPack) Write(p []byte) (int, error) {
	m.data = append(m.data, p...)
	return len(p), nil
}

func (m *memoryPack) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(p, m.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memoryPack) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(m.data)) {
		return 0, io.ErrShortWrite
	}
	return copy(m.data[off:], p), nil
}

// packEntry is one object of a pack.
type packEntry struct {
	offset int64 // of its header
	body   int64 // of its compressed bytes
	end    int64
	size   int64 // inflated: of the delta, where it is one
	crc    uint32
	kind   objectType // as stored
	base   oid        // of a ref delta
	baseAt int64      // of an offset delta

	typ objectType // of the object itself, 0 until resolved
	id  oid
}

// packData is a pack whose objects are all known.
type packData struct {
	file    packFile
	entries []packEntry // in the order of the pack
	sum     oid         // its checksum
	size    int64       // with the checksum
	byID    map[oid]int
	byPos   map[int64]int
	limits  packLimits
}

// readPack reads a pack from a stream into file. base gives the objects that
// a thin pack builds upon; they are added at its end, which makes it whole.
func readPack(r io.Reader, file packFile, limits packLimits, base func(oid) (objectType, []byte, error)) (*packData, error) {
	s := &packScanner{r: bufio.NewReaderSize(r, 32<<10), out: file, sum: sha1.New(), limit: limits.packBytes}
	p := &packData{file: file, limits: limits, byID: map[oid]int{}, byPos: map[int64]int{}}
	if err := p.scan(s); err != nil {
		if errors.Is(err, errPackLimit) {
			return nil, err
		}
		return nil, cutShort(err)
	}
	if err := p.resolve(base); err != nil {
		return nil, err
	}
	return p, nil
}

// packScanner reads byte by byte where it has to, so that the inflater never
// takes more than its object, and keeps all that it has read.
type packScanner struct {
	r     *bufio.Reader
	out   io.Writer
	sum   hash.Hash
	crc   uint32
	pos   int64
	limit int64
	buf   []byte
}

func (s *packScanner) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err != nil {
		return 0, err
	}
	s.buf = append(s.buf, b)
	s.pos++
	if len(s.buf) >= 16<<10 {
		return b, s.flush()
	}
	return b, nil
}

func (s *packScanner) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.buf = append(s.buf, p[:n]...)
	s.pos += int64(n)
	if len(s.buf) >= 16<<10 {
		if ferr := s.flush(); ferr != nil {
			return n, ferr
		}
	}
	return n, err
}

// flush hands on what was read: to the file, the pack's sum and the entry's.
func (s *packScanner) flush() error {
	if s.limit > 0 && s.pos > s.limit {
		return fail(kindRefused, "the pack is over %d bytes: %w", s.limit, errPackLimit)
	}
	s.sum.Write(s.buf)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, s.buf)
	_, err := s.out.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

func corrupt(format string, args ...any) error {
	return fail(kindCorrupt, "the pack is damaged: "+format, args...)
}

// scan is the first pass: where each object lies, and the names of those that
// are no deltas.
func (p *packData) scan(s *packScanner) error {
	var head [12]byte
	if _, err := io.ReadFull(s, head[:]); err != nil {
		return err
	}
	if string(head[:4]) != "PACK" {
		return fail(kindNetwork, "the answer is not git's: no pack where one should begin")
	}
	if v := binary.BigEndian.Uint32(head[4:]); v != 2 && v != 3 {
		return corrupt("version %d", v)
	}
	count := int64(binary.BigEndian.Uint32(head[8:]))
	if p.limits.objects > 0 && count > p.limits.objects {
		return fail(kindRefused, "the pack holds %d objects: %w", count, errPackLimit)
	}
	var zr io.ReadCloser
	var total int64
	for i := int64(0); i < count; i++ {
		if err := s.flush(); err != nil {
			return err
		}
		s.crc = 0
		e := packEntry{offset: s.pos}
		if err := readEntryHeader(s, &e); err != nil {
			return err
		}
		if p.limits.objectSize > 0 && e.size > p.limits.objectSize {
			return fail(kindRefused, "an object of %d bytes: %w", e.size, errPackLimit)
		}
		if total += e.size; p.limits.totalSize > 0 && total > p.limits.totalSize {
			return fail(kindRefused, "objects of more than %d bytes: %w", p.limits.totalSize, errPackLimit)
		}
		if e.kind == typeOfsDelta {
			if _, ok := p.byPos[e.baseAt]; !ok {
				return corrupt("a delta without its base")
			}
		}
		e.body = s.pos
		var err error
		if zr == nil {
			zr, err = zlib.NewReader(s)
		} else {
			err = zr.(zlib.Resetter).Reset(s, nil)
		}
		if err != nil {
			return inflateError(err)
		}
		h := io.Writer(io.Discard)
		var sum hash.Hash
		if e.kind < typeOfsDelta {
			sum = sha1cd.New()
			startObject(sum, e.kind, e.size)
			h = sum
		}
		n, err := io.Copy(h, io.LimitReader(zr, e.size+1))
		if err != nil {
			return inflateError(err)
		}
		if n != e.size {
			return corrupt("an object of %d bytes that should have %d", n, e.size)
		}
		if sum != nil {
			e.typ = e.kind
			sum.Sum(e.id[:0])
			p.byID[e.id] = len(p.entries)
		}
		if err := s.flush(); err != nil {
			return err
		}
		e.end, e.crc = s.pos, s.crc
		p.byPos[e.offset] = len(p.entries)
		p.entries = append(p.entries, e)
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.sum.Sum(p.sum[:0])
	p.size = s.pos + int64(len(p.sum))
	var trailer oid
	if _, err := io.ReadFull(s, trailer[:]); err != nil {
		return err
	}
	if trailer != p.sum {
		return corrupt("its checksum does not fit")
	}
	return s.flush()
}

// inflateError keeps errors of the stream and of limits apart from those of
// the compressed data.
func inflateError(err error) error {
	if errors.Is(err, zlib.ErrHeader) || errors.Is(err, zlib.ErrChecksum) || errors.Is(err, zlib.ErrDictionary) {
		return corrupt("%w", err)
	}
	return err
}

// readEntryHeader reads type, size and base of the object that begins here.
func readEntryHeader(s io.ByteReader, e *packEntry) error {
	c, err := s.ReadByte()
	if err != nil {
		return err
	}
	e.kind = objectType(c >> 4 & 7)
	e.size = int64(c & 15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = s.ReadByte(); err != nil {
			return err
		}
		if shift > 53 {
			return corrupt("an object of absurd size")
		}
		e.size |= int64(c&0x7f) << shift
	}
	switch e.kind {
	case typeCommit, typeTree, typeBlob, typeTag:
	case typeOfsDelta:
		var off int64
		for i := 0; ; i++ {
			if c, err = s.ReadByte(); err != nil {
				return err
			}
			if i > 7 {
				return corrupt("a delta with an absurd base")
			}
			off = off<<7 | int64(c&0x7f)
			if c&0x80 == 0 {
				break
			}
			off++
		}
		if e.baseAt = e.offset - off; off <= 0 || e.baseAt < 12 {
			return corrupt("a delta whose base lies outside")
		}
	case typeRefDelta:
		for i := range e.base {
			if e.base[i], err = s.ReadByte(); err != nil {
				return err
			}
		}
	default:
		return corrupt("an object of type %d", e.kind)
	}
	return nil
}

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
	b, err := encodeEntry(typ, nil, data)
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

// applyDelta builds an object from its base; a result over limit bytes
// (0 = any) is refused before anything is allocated for it.
func applyDelta(base, delta []byte, limit int64) ([]byte, error) {
	from, delta, ok := deltaSize(delta)
	if !ok || from != int64(len(base)) {
		return nil, corrupt("a delta for another base")
	}
	size, delta, ok := deltaSize(delta)
	if !ok {
		return nil, corrupt("a delta that ends too early")
	}
	if limit > 0 && size > limit {
		return nil, fail(kindRefused, "an object of %d bytes: %w", size, errPackLimit)
	}
	// The size is only the server's word: growing by use keeps a lie cheap.
	out := make([]byte, 0, min(size, 1<<20))
	for len(delta) > 0 {
		c := delta[0]
		delta = delta[1:]
		if c == 0 {
			return nil, corrupt("an unknown instruction in a delta")
		}
		if c&0x80 == 0 {
			n := int(c)
			if n > len(delta) || int64(len(out)+n) > size {
				return nil, corrupt("a delta that ends too early")
			}
			out = append(out, delta[:n]...)
			delta = delta[n:]
			continue
		}
		var off, n int64
		for i := 0; i < 7; i++ {
			if c>>i&1 == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, corrupt("a delta that ends too early")
			}
			if i < 4 {
				off |= int64(delta[0]) << (8 * i)
			} else {
				n |= int64(delta[0]) << (8 * (i - 4))
			}
			delta = delta[1:]
		}
		if n == 0 {
			n = 0x10000
		}
		if off+n > int64(len(base)) || int64(len(out))+n > size {
			return nil, corrupt("a delta that copies from outside its base")
		}
		out = append(out, base[off:off+n]...)
	}
	if int64(len(out)) != size {
		return nil, corrupt("a delta with a result of another size")
	}
	return out, nil
}

func deltaSize(b []byte) (n int64, rest []byte, ok bool) {
	for i := 0; i < len(b) && i < 8; i++ {
		n |= int64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}
