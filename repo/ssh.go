package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// sshRemote runs git-upload-pack and git-receive-pack on a server, one
// connection for each conversation: credentials and known hosts are read
// again each time, and closing the connection ends whatever hangs.
type sshRemote struct {
	at    endpoint
	creds Credentials
}

func newSSHRemote(at endpoint, creds Credentials) *sshRemote { return &sshRemote{at: at, creds: creds} }

func (s *sshRemote) close() {}

const (
	sshPort = "22"
	// maxStderr bounds what is kept of what the server's programs print.
	maxStderr = 4 << 10
)

// address is host and port as they are dialled.
func (s *sshRemote) address() string {
	host := s.at.host
	if h, p, err := net.SplitHostPort(host); err == nil {
		return net.JoinHostPort(h, p)
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), sshPort)
}

// errKeyRefused tells a server that answered from credentials that could not
// be read.
var errKeyRefused = errors.New("accepts no key")

// sshCall is one program running on the server.
type sshCall struct {
	in     io.WriteCloser
	out    io.Reader
	stderr *boundedBuffer
	sess   *ssh.Session
	hangUp func()
	writer sync.WaitGroup
}

func (c *sshCall) end() {
	c.hangUp()
	c.writer.Wait()
}

// boundedBuffer keeps the beginning of what is written to it.
type boundedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := maxStderr - b.b.Len(); room > 0 {
		b.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (b *boundedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return sanitize(b.b.String(), 300)
}

// call connects and starts a service. Whatever it does afterwards ends when
// ctx does, because the connection is closed then.
func (s *sshRemote) call(ctx context.Context, service string, v2 bool) (*sshCall, error) {
	client, hangUp, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &sshCall{stderr: &boundedBuffer{}, hangUp: hangUp}
	start := func() error {
		if c.sess, err = client.NewSession(); err != nil {
			return err
		}
		if c.in, err = c.sess.StdinPipe(); err != nil {
			return err
		}
		if c.out, err = c.sess.StdoutPipe(); err != nil {
			return err
		}
		c.sess.Stderr = c.stderr
		if v2 {
			// Many servers do not accept it; then they speak the old protocol.
			_ = c.sess.Setenv("GIT_PROTOCOL", "version=2")
		}
		return c.sess.Start(service + " " + shellQuote(s.at.path))
	}
	if err := start(); err != nil {
		hangUp()
		return nil, timedOut(ctx, fail(kindNetwork, "%w", err))
	}
	return c, nil
}

// explain adds what the server's program printed, which says why it ended.
func (c *sshCall) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return timedOut(ctx, err)
	}
	// Its last words may still be on the way.
	if c.sess != nil && errors.Is(err, io.ErrUnexpectedEOF) {
		_ = c.sess.Wait()
	}
	text := c.stderr.String()
	if text == "" {
		return err
	}
	var e *Error
	if errors.As(err, &e) && e.kind != kindNetwork {
		return err
	}
	kind, hint := kindNetwork, ""
	low := strings.ToLower(text)
	switch {
	case strings.Contains(low, "not found"), strings.Contains(low, "does not appear to be a git repository"), strings.Contains(low, "no such file"):
		kind, hint = kindNotFound, "check the path; hosting services also say this when the key may not see it"
	case strings.Contains(low, "denied"), strings.Contains(low, "permission"), strings.Contains(low, "not allowed"):
		kind, hint = kindAuth, "the key lacks the right"
	}
	out := fail(kind, "%w; the server says: %s", err, text)
	out.Hint = hint
	return out
}

// shellQuote quotes the path as git does for the server's shell.
func shellQuote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

func (s *sshRemote) upload(ctx context.Context, ask question, decide func(*listing) (*fetchRequest, error), sink func(io.Reader) error) error {
	c, err := s.call(ctx, serviceFetch, true)
	if err != nil {
		return err
	}
	defer c.end()
	return c.explain(ctx, c.upload(ask, decide, sink))
}

func (c *sshCall) upload(ask question, decide func(*listing) (*fetchRequest, error), sink func(io.Reader) error) error {
	p := newPktReader(c.out)
	want := ask.choose()
	l, err := readAdvert(p, "", want, ask.byHash)
	if err != nil {
		return err
	}
	caps := l.caps
	if l.v2 && ((len(ask.prefixes) > 0 && !ask.byHash) || ask.head) {
		if _, err := c.in.Write(encodeLsRefs(ask.prefixes, ask.head, caps)); err != nil {
			return err
		}
		if l, err = readLsRefs(p, want); err != nil {
			return err
		}
		l.caps = caps
	}
	req, err := decide(l)
	if err != nil || req == nil {
		// A flush says goodbye in both protocols.
		_, _ = io.WriteString(c.in, "0000")
		return err
	}
	body := encodeFetch0(req, caps)
	if l.v2 {
		body = encodeFetch2(req, caps)
	}
	if err := c.send(body); err != nil {
		return err
	}
	if l.v2 {
		return readFetch2(p, sink)
	}
	return readFetch0(p, req, caps, sink)
}

// send writes beside the reading that follows, because a server that answers
// early would otherwise fill both directions.
func (c *sshCall) send(body []byte) error {
	if len(body) < 16<<10 {
		_, err := c.in.Write(body)
		return err
	}
	c.writer.Go(func() { _, _ = c.in.Write(body) })
	return nil
}

func (s *sshRemote) push(ctx context.Context, makePush func(capabilities) (*pushRequest, error)) (*pushResult, error) {
	c, err := s.call(ctx, servicePush, false)
	if err != nil {
		return nil, err
	}
	defer c.end()
	res, err := c.push(makePush)
	return res, c.explain(ctx, err)
}

func (c *sshCall) push(makePush func(capabilities) (*pushRequest, error)) (*pushResult, error) {
	l, err := readAdvert(newPktReader(c.out), "", func(string) bool { return false }, false)
	if err != nil {
		return nil, err
	}
	p, err := makePush(l.caps)
	if err != nil {
		_, _ = io.WriteString(c.in, "0000")
		return nil, err
	}
	if err := c.send(append(encodePush(p.cmds, l.caps, p.atomic), p.pack...)); err != nil {
		return nil, err
	}
	return readPush(c.out, l.caps)
}

// answers is content with a connection that a server takes: a refused key is
// an answer, a host key that is not the known one is none.
func (s *sshRemote) answers(ctx context.Context) error {
	_, hangUp, err := s.dial(ctx)
	if errors.Is(err, errKeyRefused) {
		return nil
	}
	if err != nil {
		return err
	}
	hangUp()
	return nil
}
