package hooks

import (
	"bytes"
	"cmp"
	"sync"
)

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	max int // bytes; 0 = maxOutput
	buf []byte
	cut bool // something was before it
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, most := len(p), cmp.Or(t.max, maxOutput)
	if n >= most {
		t.cut = t.cut || n > most || len(t.buf) > 0
		t.buf = append(t.buf[:0], p[n-most:]...)
		return n, nil
	}
	if over := len(t.buf) + n - most; over > 0 {
		t.cut = true
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// bytes gives whole lines, where more than one was kept: what must not be told
// of a line is not recognised in a part of it.
func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.buf
	if _, whole, found := bytes.Cut(all, []byte("\n")); t.cut && found && len(whole) > 0 {
		all = whole
	}
	return bytes.Clone(all)
}

// both writes to two tails.
type both struct{ a, b *tail }

func (w *both) Write(p []byte) (int, error) {
	_, _ = w.a.Write(p) // a tail takes everything
	return w.b.Write(p)
}
