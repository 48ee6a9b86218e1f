//go:build system

package demo

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSystemDemoAsNobody: what is promised of the demonstration, enforced by
// the kernel: a user without any rights, and no network, not even loopback.
func TestSystemDemoAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("GITOPSD_NO_SKIP") != "" {
			t.Fatal("root is needed here, to become somebody else")
		}
		t.Skip("only root can become somebody else")
	}
	const nobody = 65534 // by convention of every distribution
	exe := build(t)
	withoutGit(t)
	tmp := t.TempDir()
	home := filepath.Join(tmp, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	// Every folder on the way must let nobody pass.
	for _, dir := range []string{filepath.Dir(exe), tmp, os.Getenv("PATH")} {
		for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command(exe, "demo")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
		Cloneflags: syscall.CLONE_NEWNET,
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "blast radius of v1.2.0: 1 of 12 devices") {
		t.Errorf("the summary is missing:\n%s", out.String())
	}
}
