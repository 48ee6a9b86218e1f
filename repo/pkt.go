package repo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The pkt-line format: gitprotocol-common(5).

const (
	pktFlush       = -1 // 0000
	pktDelim       = -2 // 0001
	pktResponseEnd = -3 // 0002

	// maxPkt is the largest pkt-line with its four digits, in bytes (git's
	// LARGE_PACKET_MAX).
	maxPkt = 65520
)

type pktReader struct {
	r    *bufio.Reader
	buf  [maxPkt]byte
	last int // length of the packet in buf
}

func newPktReader(r io.Reader) *pktReader {
	return &pktReader{r: bufio.NewReaderSize(r, 8<<10)}
}

// next gives one line, valid until the next call; n is its length, or one of
// the special packets. An end of input where a packet could begin is io.EOF.
func (p *pktReader) next() (line []byte, n int, err error) {
	var head [4]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = cutShort(err)
		}
		return nil, 0, err
	}
	size := 0
	for _, c := range head {
		d := unhex(c)
		if d < 0 {
			return nil, 0, fail(kindNetwork, "the answer is not git's: a packet begins with %q", head[:]).
				hint("something else than a git server answers at this address")
		}
		size = size<<4 | d
	}
	switch size {
	case 0:
		return nil, pktFlush, nil
	case 1:
		return nil, pktDelim, nil
	case 2:
		return nil, pktResponseEnd, nil
	case 3:
		return nil, 0, fail(kindNetwork, "the answer is not git's: a packet of length 3")
	}
	size -= 4
	if size > maxPkt-4 {
		return nil, 0, fail(kindNetwork, "the answer is not git's: a packet of %d bytes", size)
	}
	if _, err := io.ReadFull(p.r, p.buf[:size]); err != nil {
		return nil, 0, cutShort(err)
	}
	p.last = size
	return p.buf[:size], size, nil
}

// text is next for lines of text: without the line feed, and with the
// server's own error reports turned into errors.
func (p *pktReader) text() (line []byte, n int, err error) {
	line, n, err = p.next()
	if err != nil || n < 0 {
		return nil, n, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	if msg, ok := bytes.CutPrefix(line, []byte("ERR ")); ok {
		return nil, 0, serverError(string(msg))
	}
	return line, len(line), nil
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fail(kindNetwork, "the answer ends too early: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// serverError is what the server itself says of its trouble.
func serverError(msg string) error {
	msg = sanitize(msg, 500)
	switch {
	case strings.Contains(msg, "not our ref"):
		return fail(kindNotFound, "the server says: %s", msg)
	case strings.Contains(msg, "repository corruption"):
		return fail(kindCorrupt, "the server says: %s", msg).hint("`git fsck` in that repository says more")
	}
	return fail(kindRefused, "the server says: %s", msg)
}

func pktLine(b *bytes.Buffer, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	fmt.Fprintf(b, "%04x%s", len(s)+4, s)
}

// sideband reads band 1 of a multiplexed stream and keeps what band 2 says;
// it ends at the flush packet.
type sideband struct {
	p    *pktReader
	rest []byte
	done bool
	// notes is what the server tells people (band 2), bounded.
	notes []byte
}

// maxNotes bounds the text of a server that is kept, in bytes.
const maxNotes = 8 << 10

func (s *sideband) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.done {
			return 0, io.EOF
		}
		line, n, err := s.p.next()
		if err != nil {
			return 0, cutShort(err)
		}
		if err := s.take(line, n); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// take handles one packet, which stays valid until the next is read.
func (s *sideband) take(line []byte, n int) error {
	switch {
	case n == pktFlush || n == pktResponseEnd:
		s.done = true
	case n <= 0:
		// A delimiter or a keep-alive without content.
	case line[0] == 1:
		s.rest = line[1:]
	case line[0] == 2:
		if len(s.notes) < maxNotes {
			s.notes = append(s.notes, line[1:]...)
		}
	case line[0] == 3:
		return serverError(string(line[1:]))
	default:
		if msg, ok := bytes.CutPrefix(line, []byte("ERR ")); ok {
			return serverError(string(msg))
		}
		return fail(kindNetwork, "the answer is not git's: unknown band %d", line[0])
	}
	return nil
}
