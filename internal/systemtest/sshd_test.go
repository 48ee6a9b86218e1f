//go:build system

package systemtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gitopsd/gitopsd/repo"
)

// sshd is OpenSSH's server on a loopback port, with git-shell for all that it
// accepts, as a git server without a hosting service is run.
type sshd struct {
	b     *bench
	addr  string // 127.0.0.1:port
	url   string // ssh://user@127.0.0.1:port
	dir   string // keys and configuration
	keys  []string
	proc  *process
	force string // the forced command
	v2    bool   // lets clients ask for the newer protocol
}

// gitShell is what runs instead of whatever a client asks for.
const gitShell = `git-shell -c "$SSH_ORIGINAL_COMMAND"`

func newSSHD(b *bench) *sshd {
	b.Helper()
	need(b, "sshd", "openssh-server")
	need(b, "git-shell", "git")
	need(b, "ssh-keygen", "openssh-client")
	me, err := user.Current()
	if err != nil {
		b.Fatal(err)
	}
	if me.Uid == "0" {
		// Where sshd leaves its privileges behind; init makes it at boot.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			b.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &sshd{b: b, addr: l.Addr().String(), dir: b.path("sshd"), force: gitShell, v2: true}
	l.Close()
	s.url = "ssh://" + me.Username + "@" + s.addr
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		s.keygen("host_"+kind, kind, "")
	}
	s.keygen("client", "ed25519", "")
	s.authorize("client")
	s.keys = []string{"host_ed25519"}
	s.trust("host_ed25519")
	return s
}

// keygen makes a key pair and gives the file of its private half.
func (s *sshd) keygen(name, kind, passphrase string) string {
	s.b.Helper()
	args := []string{"-q", "-t", kind, "-N", passphrase, "-C", name, "-f", s.file(name)}
	if kind == "rsa" {
		args = append(args, "-b", "2048")
	}
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		s.b.Fatalf("ssh-keygen %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return s.file(name)
}

func (s *sshd) file(name string) string { return filepath.Join(s.dir, name) }

func (s *sshd) public(name string) string {
	s.b.Helper()
	data, err := os.ReadFile(s.file(name) + ".pub")
	if err != nil {
		s.b.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// authorize makes these the keys that the server accepts.
func (s *sshd) authorize(names ...string) {
	s.b.Helper()
	var lines []string
	for _, n := range names {
		lines = append(lines, s.public(n))
	}
	writeFile(s.b, s.file("authorized_keys"), strings.Join(lines, "\n")+"\n", 0o600)
}

// trust makes these the host keys that clients know of the server.
func (s *sshd) trust(names ...string) {
	s.b.Helper()
	writeFile(s.b, s.file("known_hosts"), s.knownLines(s.addr, names...), 0o600)
}

func (s *sshd) knownLines(addr string, names ...string) string {
	s.b.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		s.b.Fatal(err)
	}
	var lines strings.Builder
	for _, n := range names {
		fmt.Fprintf(&lines, "[%s]:%s %s\n", host, port, s.public(n))
	}
	return lines.String()
}

func (s *sshd) fingerprint(name string) string {
	s.b.Helper()
	out, err := exec.Command("ssh-keygen", "-l", "-f", s.file(name)+".pub").Output()
	if err != nil {
		s.b.Fatal(err)
	}
	return strings.Fields(string(out))[1]
}

func (s *sshd) creds() repo.Credentials {
	return repo.Credentials{SSHKeyFile: s.file("client"), KnownHostsFile: s.file("known_hosts")}
}

// flags are the same for the program.
func (s *sshd) flags() []string {
	return []string{"--ssh-key-file", s.file("client"), "--known-hosts-file", s.file("known_hosts")}
}

// start starts the server, or starts it again with what was changed.
func (s *sshd) start() {
	s.b.Helper()
	s.stop()
	host, port, _ := net.SplitHostPort(s.addr)
	lines := []string{
		"ListenAddress " + host, "Port " + port, "PidFile none", "UsePAM no", "StrictModes no",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes",
		"AuthorizedKeysFile " + s.file("authorized_keys"), "ForceCommand " + s.force,
		"AllowTcpForwarding no", "X11Forwarding no", "PermitTTY no", "LogLevel VERBOSE",
		"MaxStartups 200", "MaxSessions 200", "LoginGraceTime 60",
	}
	if s.v2 {
		lines = append(lines, "AcceptEnv GIT_PROTOCOL")
	}
	for _, k := range s.keys {
		lines = append(lines, "HostKey "+s.file(k))
	}
	program := need(s.b, "sshd", "openssh-server")
	// Newer servers shut out addresses from which keys were refused.
	config := s.file("sshd_config")
	writeFile(s.b, config, strings.Join(append(lines, "PerSourcePenalties no"), "\n")+"\n", 0o600)
	if exec.Command(program, "-t", "-f", config).Run() != nil {
		writeFile(s.b, config, strings.Join(lines, "\n")+"\n", 0o600)
	}
	p, err := s.b.launch("sshd", program, "-D", "-e", "-f", config)
	if err != nil {
		s.b.Fatal(err)
	}
	s.proc = p
	s.b.wait("sshd", func() error {
		if !p.running() {
			s.b.Fatalf("sshd has ended: %v\n%s", p.err, p.tail(20))
		}
		c, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// stop ends the server with its sessions: they are of its process group.
func (s *sshd) stop() {
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
}

// freeze stops the listening server where it stands, and thaw lets it go on.
func (s *sshd) freeze() { s.signal(syscall.SIGSTOP) }
func (s *sshd) thaw()   { s.signal(syscall.SIGCONT) }

func (s *sshd) signal(sig syscall.Signal) {
	s.b.Helper()
	if err := syscall.Kill(s.proc.cmd.Process.Pid, sig); err != nil {
		s.b.Fatal(err)
	}
}

// open opens a repository on the server as the daemon does.
func (s *sshd) open(url string, creds repo.Credentials, timeout time.Duration) *repo.Repo {
	s.b.Helper()
	store, err := os.MkdirTemp(s.b.dir, "store-")
	if err != nil {
		s.b.Fatal(err)
	}
	r, err := repo.Open(repo.Config{URL: url, Credentials: creds, Store: store, Timeout: timeout})
	if err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(func() { r.Close() })
	return r
}

// openDevice opens it as an agent does.
func (s *sshd) openDevice(url string, creds repo.Credentials, timeout time.Duration) *repo.Device {
	s.b.Helper()
	d, err := repo.OpenDevice(repo.Config{URL: url, Credentials: creds, Timeout: timeout})
	if err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(func() { d.Close() })
	return d
}
