package repo

import (
	"bufio"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"

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

// ErrTooLarge marks what comes from a server and is larger than it may be.
var ErrTooLarge = errors.New("larger than allowed")

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
		if errors.Is(err, ErrTooLarge) {
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
		return fail(kindRefused, "the pack is over %d bytes: %w", s.limit, ErrTooLarge)
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
		return fail(kindRefused, "the pack holds %d objects: %w", count, ErrTooLarge)
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
			return fail(kindRefused, "an object of %d bytes: %w", e.size, ErrTooLarge)
		}
		if total += e.size; p.limits.totalSize > 0 && total > p.limits.totalSize {
			return fail(kindRefused, "objects of more than %d bytes: %w", p.limits.totalSize, ErrTooLarge)
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
		h := io.Discard
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
