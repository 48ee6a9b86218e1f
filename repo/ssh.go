package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
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

// dial connects and authenticates; hangUp closes all of it and must be called.
func (s *sshRemote) dial(ctx context.Context) (client *ssh.Client, hangUp func(), err error) {
	address := s.address()
	files, err := s.creds.knownHosts()
	if err != nil {
		return nil, nil, err
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, nil, fail(kindHostKey, "known hosts cannot be read: %w", err).hint("correct %s", strings.Join(files, ", "))
	}
	methods, release, err := s.creds.sshMethods(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	var hostKey *Error
	verify := db.HostKeyCallback()
	cfg := &ssh.ClientConfig{
		User:              s.creds.user(s.at),
		Auth:              methods,
		HostKeyAlgorithms: db.HostKeyAlgorithms(address),
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			if err := verify(host, addr, key); err != nil {
				hostKey = hostKeyError(err, address, key, files)
				return hostKey
			}
			return nil
		},
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, timedOut(ctx, fail(kindOf(err), "%w", err))
	}
	// The handshake and everything after it know no context: closing the
	// connection is what ends them.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	hang := func() {
		stop()
		conn.Close()
	}
	c, chans, reqs, err := ssh.NewClientConn(conn, address, cfg)
	if err != nil {
		hang()
		switch {
		case hostKey != nil:
			return nil, nil, hostKey
		case ctx.Err() != nil:
			return nil, nil, timedOut(ctx, err)
		case strings.Contains(err.Error(), "unable to authenticate"):
			return nil, nil, fail(kindAuth, "the server %s %w of the user %s", address, errKeyRefused, sanitize(cfg.User, 50)).
				hint("add the public key there, or name another sshKeyFile")
		case strings.Contains(err.Error(), "no common algorithm for host key"):
			return nil, nil, fail(kindHostKey, "the server %s has no host key of the kinds that are known of it", address).
				hint("compare its keys with %s and add the right one", strings.Join(files, ", "))
		}
		return nil, nil, fail(kindNetwork, "ssh to %s: %w", address, err)
	}
	client = ssh.NewClient(c, chans, reqs)
	return client, func() { client.Close(); hang() }, nil
}

// hostKeyError says which server shows what, and where to correct it.
func hostKeyError(err error, address string, key ssh.PublicKey, files []string) *Error {
	where := strings.Join(files, ", ")
	if where == "" {
		where = "known_hosts"
	}
	shown := fmt.Sprintf("%s %s", key.Type(), ssh.FingerprintSHA256(key))
	switch {
	case knownhosts.IsHostKeyChanged(err):
		return fail(kindHostKey, "the host key of %s has changed: it shows %s", address, shown).
			hint("if the server really has a new key, replace its line in %s; otherwise somebody stands in between", where)
	case knownhosts.IsHostUnknown(err):
		return fail(kindHostKey, "the host key of %s is not known: it shows %s", address, shown).
			hint("compare the fingerprint and add it: ssh-keyscan %s >> %s", scanArguments(address), where)
	}
	return fail(kindHostKey, "the host key of %s (%s) is not accepted: %w", address, shown, err).hint("see %s", where)
}

func scanArguments(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == sshPort {
		return host
	}
	return "-p " + port + " " + host
}

// knownHosts gives the files that exist; a named one has to.
func (c Credentials) knownHosts() ([]string, error) {
	if c.KnownHostsFile != "" {
		if _, err := readSecret(c.KnownHostsFile, "known hosts"); err != nil {
			return nil, err
		}
		return []string{c.KnownHostsFile}, nil
	}
	var candidates []string
	if home, err := os.UserHomeDir(); err == nil {
		candidates = append(candidates, filepath.Join(home, ".ssh", "known_hosts"))
	}
	candidates = append(candidates, "/etc/ssh/ssh_known_hosts")
	var files []string
	for _, f := range candidates {
		if _, err := os.Stat(f); err == nil {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, fail(kindHostKey, "no known_hosts file is there").
			hint("compare the server's key and write it to %s, or set knownHostsFile", candidates[0])
	}
	return files, nil
}

// sshMethods gives the ways to authenticate: the key file, else the agent.
func (c Credentials) sshMethods(ctx context.Context) ([]ssh.AuthMethod, func(), error) {
	nothing := func() {}
	if c.SSHKeyFile != "" {
		pem, err := readSecret(c.SSHKeyFile, "ssh key")
		if err != nil {
			return nil, nil, err
		}
		var signer ssh.Signer
		if c.SSHKeyPassphraseFile != "" {
			phrase, perr := readSecretLine(c.SSHKeyPassphraseFile, "passphrase of the ssh key")
			if perr != nil {
				return nil, nil, perr
			}
			signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(phrase))
		} else {
			signer, err = ssh.ParsePrivateKey(pem)
		}
		var missing *ssh.PassphraseMissingError
		if errors.As(err, &missing) {
			return nil, nil, fail(kindAuth, "the ssh key %s needs a passphrase", c.SSHKeyFile).hint("set sshKeyPassphraseFile")
		}
		if err != nil {
			return nil, nil, fail(kindAuth, "the ssh key %s cannot be read: %w", c.SSHKeyFile, err)
		}
		return []ssh.AuthMethod{ssh.PublicKeys(signer)}, nothing, nil
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, nil, fail(kindAuth, "there is no ssh key").hint("set sshKeyFile, or run an ssh agent (SSH_AUTH_SOCK)")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil, fail(kindAuth, "the ssh agent does not answer: %w", err).hint("set sshKeyFile, or start the agent")
	}
	// An agent may wait for a person: it, too, has only until the deadline.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	release := func() { stop(); conn.Close() }
	return []ssh.AuthMethod{ssh.PublicKeysCallback(agent.NewClient(conn).Signers)}, release, nil
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
	l, err := readAdvert(p, want, ask.byHash)
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
	l, err := readAdvert(newPktReader(c.out), func(string) bool { return false }, false)
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
