package gitserver

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// SSH is an ssh server on loopback that runs git-upload-pack and
// git-receive-pack on the repositories below a folder.
type SSH struct {
	Addr       string // 127.0.0.1:port
	URL        string // ssh://git@127.0.0.1:port; repository x.git is URL + "/x.git"
	KeyFile    string // the private key that it accepts
	KnownHosts string // a known_hosts file that names its first host key

	dir   string
	key   ssh.PublicKey // of the client
	mu    sync.Mutex
	host  ssh.Signer
	more  []ssh.Signer // further host keys, of other types
	hang  bool
	gitV2 bool
	conns map[net.Conn]bool
}

// NewSSH serves the repositories below dir until the test ends.
func NewSSH(t testing.TB, dir string) *SSH {
	t.Helper()
	s := &SSH{dir: dir, conns: map[net.Conn]bool{}}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	keys := t.TempDir()
	s.KeyFile = filepath.Join(keys, "id")
	if err := os.WriteFile(s.KeyFile, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s.key = signer.PublicKey()
	s.NewHostKey(t)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Addr = l.Addr().String()
	s.URL = "ssh://git@" + s.Addr
	s.KnownHosts = filepath.Join(keys, "known_hosts")
	if err := os.WriteFile(s.KnownHosts, []byte(s.KnownHostsLine()), 0o600); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		running.Wait()
	})
	return s
}

// NewHostKey gives the server another host key, as a reinstallation does.
func (s *SSH) NewHostKey(t testing.TB) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = signer
}

// AlsoECDSA gives the server a host key of a second type and returns the line
// of a known_hosts file for it.
func (s *SSH) AlsoECDSA(t testing.TB) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = append(s.more, signer)
	return s.knownHostsLine(signer)
}

// KnownHostsLine names the present host key.
func (s *SSH) KnownHostsLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.knownHostsLine(s.host)
}

func (s *SSH) knownHostsLine(key ssh.Signer) string {
	host, port, _ := net.SplitHostPort(s.Addr)
	return fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(key.PublicKey()))
}

// Fingerprint is that of the present host key.
func (s *SSH) Fingerprint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ssh.FingerprintSHA256(s.host.PublicKey())
}

// Hang makes the server take connections and never say a word.
func (s *SSH) Hang(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = on
}

// AcceptV2 hands GIT_PROTOCOL on to git, as `AcceptEnv GIT_PROTOCOL` in
// sshd_config does.
func (s *SSH) AcceptV2(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gitV2 = on
}

func (s *SSH) serve(conn net.Conn) {
	s.mu.Lock()
	s.conns[conn] = true
	keys, hang := append([]ssh.Signer{s.host}, s.more...), s.hang
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
		conn.Close()
	}()
	if hang {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(s.key.Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return nil, nil
	}}
	for _, key := range keys {
		cfg.AddHostKey(key)
	}
	_, chans, reqs, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(reqs)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for nc := range chans {
		if nc.ChannelType() != "session" {
			_ = nc.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		ch, requests, err := nc.Accept()
		if err != nil {
			return
		}
		sessions.Go(func() { s.session(ch, requests) })
	}
}

func (s *SSH) session(ch ssh.Channel, requests <-chan *ssh.Request) {
	defer ch.Close()
	env := Environ()
	for req := range requests {
		switch req.Type {
		case "env":
			var kv struct{ Name, Value string }
			s.mu.Lock()
			ok := s.gitV2 && ssh.Unmarshal(req.Payload, &kv) == nil && kv.Name == "GIT_PROTOCOL"
			s.mu.Unlock()
			if ok {
				env = append(env, kv.Name+"="+kv.Value)
			}
			if req.WantReply {
				_ = req.Reply(ok, nil)
			}
		case "exec":
			var line struct{ Command string }
			if ssh.Unmarshal(req.Payload, &line) != nil {
				_ = req.Reply(false, nil)
				return
			}
			_ = req.Reply(true, nil)
			status := struct{ Status uint32 }{s.run(ch, line.Command, env)}
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(status))
			return
		default:
			if req.WantReply {
				_ = req.Reply(false, nil)
			}
		}
	}
}

// run does what git-shell does: one of two programs on one path, which is
// taken from below the folder.
func (s *SSH) run(ch ssh.Channel, command string, env []string) uint32 {
	program, arg, _ := strings.Cut(command, " ")
	if program != "git-upload-pack" && program != "git-receive-pack" {
		fmt.Fprintf(ch.Stderr(), "fatal: unrecognized command %q\n", command)
		return 128
	}
	path := filepath.Join(s.dir, filepath.Clean("/"+strings.Trim(arg, "'")))
	cmd := exec.Command("git", strings.TrimPrefix(program, "git-"), path)
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(in, ch)
		in.Close()
	}()
	if err := cmd.Wait(); err != nil {
		return 1
	}
	return 0
}
