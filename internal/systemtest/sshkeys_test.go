//go:build system

package systemtest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func runTool(t testing.TB, b *bench, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = b.dir, b.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestSystemSSHKeys: keys of each kind, refused ones, and ones with a
// passphrase.
func TestSystemSSHKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBench(t)
	f := newFleet(b, b.dir)
	f.write("a", "a")
	f.push("a")
	s := newSSHD(b)
	s.start()
	url := s.url + f.bare
	creds := s.creds()
	poll := func() error {
		_, err := s.open(url, creds, generous).Refs(ctx, "refs/heads/")
		return err
	}
	accepted := []string{"client"}
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		for _, phrase := range []string{"", "a phrase with blanks"} {
			name := "user_" + kind
			if phrase != "" {
				name += "_locked"
			}
			creds = s.creds()
			creds.SSHKeyFile = s.keygen(name, kind, phrase)
			if phrase != "" {
				err := poll()
				wantKind(t, name+" without its passphrase", err, "auth")
				if err == nil || !strings.Contains(err.Error(), "sshKeyPassphraseFile") {
					t.Errorf("no remedy: %v", err)
				}
				creds.SSHKeyPassphraseFile = s.file(name + ".phrase")
				writeFile(t, creds.SSHKeyPassphraseFile, "another\n", 0o600)
				err = poll()
				wantKind(t, name+" with a wrong passphrase", err, "auth")
				if err != nil && strings.Contains(err.Error(), "another") {
					t.Errorf("the error tells the passphrase: %v", err)
				}
				writeFile(t, creds.SSHKeyPassphraseFile, phrase+"\n", 0o600)
			}
			err := poll()
			wantKind(t, name+", which the server does not know", err, "auth")
			if err == nil || !strings.Contains(err.Error(), "accepts no key") || !strings.Contains(err.Error(), "add the public key") {
				t.Errorf("no remedy: %v", err)
			}
			if err := s.openDevice(url, creds, generous).Answers(ctx); err != nil {
				t.Errorf("a refused key is an answer, but: %v", err)
			}
			accepted = append(accepted, name)
			s.authorize(accepted...)
			if err := poll(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}

	// A key that is replaced on both sides while a program has it in use.
	creds = s.creds()
	creds.SSHKeyFile = s.keygen("in_use", "ed25519", "")
	s.authorize("in_use")
	d := s.openDevice(url, creds, generous)
	look := func() error {
		_, _, err := d.Read(ctx, sourceRef, "", 1<<20)
		return err
	}
	if err := look(); err != nil {
		t.Fatal(err)
	}
	next, err := os.ReadFile(s.keygen("next", "ed25519", ""))
	if err != nil {
		t.Fatal(err)
	}
	s.authorize("next")
	wantKind(t, "a key that is not accepted any more", look(), "auth")
	writeFile(t, creds.SSHKeyFile, string(next), 0o600)
	if err := look(); err != nil {
		t.Errorf("after its key was replaced: %v", err)
	}
	s.authorize(accepted...)

	// The program: the right exit code, words, and no secret in them.
	creds = s.creds()
	key := s.keygen("stranger", "ed25519", "")
	for _, command := range [][]string{
		{"serve", "--once", "--state", b.path("state")},
		{"agent", "--once", "--device", "d1", "--root", b.dir},
	} {
		args := append(command, "--repo", url, "--ssh-key-file", key, "--known-hosts-file", creds.KnownHostsFile)
		code, out := b.run(args...)
		if code != 1 || !strings.Contains(out, "accepts no key") {
			t.Errorf("%s with a refused key ends with %d and says\n%s", command[0], code, out)
		}
		args = append(command, "--repo", url, "--ssh-key-file", s.file("user_rsa_locked"), "--known-hosts-file", creds.KnownHostsFile)
		code, out = b.run(args...)
		if code != 1 || !strings.Contains(out, "passphrase") {
			t.Errorf("%s with a locked key ends with %d and says\n%s", command[0], code, out)
		}
	}
}

// TestSystemSSHAgent: without a key file, whatever a real ssh-agent holds.
func TestSystemSSHAgent(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	agent := need(t, "ssh-agent", "openssh-client")
	need(t, "ssh-add", "openssh-client")
	f := newFleet(b, b.dir)
	f.policy("edge", "v1.0.0", 1, 0)
	f.release("edge", "v1.0.0", "files: {/etc/edge/release: {content: \"v1.0.0\\n\"}}\n")
	f.device("d1", "edge")
	f.push("edge: v1.0.0")
	s := newSSHD(b)
	s.start()
	url := s.url + f.bare
	creds := s.creds()
	creds.SSHKeyFile = ""
	// A socket's path has to be short.
	short, err := os.MkdirTemp("", "gitopsd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	socket := short + "/s"
	t.Setenv("SSH_AUTH_SOCK", socket)
	b.env = append(b.env, "SSH_AUTH_SOCK="+socket)
	r := s.open(url, creds, generous)
	poll := func() error {
		_, err := r.Refs(ctx, "refs/heads/")
		return err
	}
	wantKind(t, "an ssh agent that does not run", poll(), "auth")

	p, err := b.launch("ssh-agent", agent, "-D", "-a", socket)
	if err != nil {
		t.Fatal(err)
	}
	b.wait("the ssh agent", func() error {
		_, err := os.Stat(socket)
		return err
	})
	err = poll()
	wantKind(t, "an ssh agent without keys", err, "auth")
	runTool(t, b, "ssh-add", "-q", s.keygen("stranger", "ecdsa", ""))
	wantKind(t, "an ssh agent with a key that is refused", poll(), "auth")
	runTool(t, b, "ssh-add", "-q", s.file("client"))
	if err := poll(); err != nil {
		t.Fatalf("with the key in the agent: %v", err)
	}
	// The program, too: each connection asks the agent anew.
	flags := []string{"--repo", url, "--known-hosts-file", creds.KnownHostsFile}
	f.start("serve", serveArgs(b.path("state"), flags...)...)
	f.agent("d1", flags...)
	f.is("d1", "Current", "v1.0.0")
	wantFile(t, b.path("roots", "d1", "etc/edge/release"), "v1.0.0\n")

	// An agent that waits, as for a person's finger: only until the deadline.
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stalls(t, b, "an ssh agent that waits", func(timeout time.Duration) error {
		_, err := s.open(url, creds, timeout).Refs(ctx, "refs/heads/")
		return err
	})
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := poll(); err != nil {
		t.Errorf("after the agent has answered: %v", err)
	}
}
