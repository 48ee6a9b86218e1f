package webhook

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
	"weak"
)

const (
	// maxBody is what GitHub caps a payload at, in bytes.
	maxBody = 25 << 20

	// smallBody is above nearly every delivery, in bytes, and maxSmall of them
	// may be read at once: 4 MiB.
	smallBody = 128 << 10
	maxSmall  = 32

	// maxLarge bounds how many of them may be larger at once: who is not known
	// yet must not be able to fill the memory. largeWait is how long another one
	// waits for its turn; GitHub waits ten seconds for an answer.
	maxLarge  = 2
	largeWait = 5 * time.Second
)

// bodies bounds the memory for bodies of requests, which are kept whole until
// it is known who sent them.
type bodies struct {
	small chan struct{}
	large chan weak.Pointer[room] // of the one used before, as long as nobody else needed its memory
	wait  time.Duration           // for a turn among the large ones
}

// room is for one large body, and the byte by which it is too long.
type room [maxBody + 1]byte

func newBodies() *bodies {
	b := &bodies{small: make(chan struct{}, maxSmall), large: make(chan weak.Pointer[room], maxLarge), wait: largeWait}
	for range maxLarge {
		b.large <- weak.Pointer[room]{}
	}
	return b
}

func tooLargeAnswer() answer {
	return answer{http.StatusRequestEntityTooLarge, "the body is too large"}
}

// read reads a body of at most limit bytes. done gives its room back, and is to
// be called in any case, when nothing refers to the body any more.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, done func(), wrong answer) {
	busy := answer{http.StatusServiceUnavailable, "too many requests at once"}
	select {
	case b.small <- struct{}{}:
	default:
		return nil, func() {}, busy
	}
	done = func() { <-b.small }
	from := http.MaxBytesReader(w, r.Body, limit)
	body, err := io.ReadAll(io.LimitReader(from, smallBody+1))
	if err == nil && len(body) > smallBody {
		var before weak.Pointer[room]
		select {
		case before = <-b.large:
		case <-time.After(b.wait):
			return nil, done, busy
		}
		all := before.Value()
		if all == nil {
			all = new(room)
		}
		done = func() { b.large <- weak.Make(all); <-b.small }
		n := copy(all[:], body)
		for err == nil && n < len(all) {
			var more int
			more, err = from.Read(all[n:])
			n += more
		}
		body = all[:n]
	}
	var over *http.MaxBytesError
	switch {
	case err == nil, err == io.EOF: //nolint:errorlint // io.Reader gives it as it is; an unexpected one is an error
		return body, done, answer{}
	case errors.As(err, &over):
		return nil, done, tooLargeAnswer()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, done, answer{http.StatusRequestTimeout, "the body did not come in time"}
	}
	return nil, done, answer{http.StatusBadRequest, "the body did not come whole"}
}
