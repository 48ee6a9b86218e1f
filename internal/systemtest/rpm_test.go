//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// rpmRoot is a root with a shell, and a systemctl that writes down what it is
// told, on which rpm installs and runs the scripts of a package.
type rpmRoot struct {
	t   *testing.T
	rpm string
	dir string
}

func newRPMRoot(t *testing.T) *rpmRoot {
	needRoot(t, "run the scripts of a package in a root of their own")
	r := &rpmRoot{t: t, rpm: need(t, "rpm", "rpm"), dir: t.TempDir()}
	r.write("/etc/passwd", "root:x:0:0::/:/bin/sh\n", 0o644)
	r.write("/etc/group", "root:x:0:\n", 0o644)
	r.write("/usr/bin/systemctl", "#!/bin/sh\necho \"$@\" >> /told\n", 0o755)
	if err := os.MkdirAll(r.path("/run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := exec.Command("ldd", shell).CombinedOutput()
	if err != nil && !strings.Contains(string(libraries), "not a dynamic executable") {
		t.Fatalf("%v: %s", err, libraries)
	}
	for _, file := range append(strings.Fields(string(libraries)), shell) {
		if !strings.HasPrefix(file, "/") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		to := file
		if file == shell {
			to = "/bin/sh"
		}
		r.write(to, string(data), 0o755)
	}
	return r
}

func (r *rpmRoot) path(p string) string { return filepath.Join(r.dir, p) }

func (r *rpmRoot) write(p, text string, mode os.FileMode) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(p)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	writeFile(r.t, r.path(p), text, mode)
}

// run has rpm do something on the root, and gives what systemctl was told.
func (r *rpmRoot) run(args ...string) (told string) {
	r.t.Helper()
	if err := os.RemoveAll(r.path("/told")); err != nil {
		r.t.Fatal(err)
	}
	// Nothing of the distribution's own packages is there that one could need.
	args = append([]string{"--root", r.dir, "--nodeps"}, args...)
	out, err := exec.CommandContext(r.t.Context(), r.rpm, args...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "scriptlet failed") {
		r.t.Fatalf("rpm %q: %v\n%s", args, err, out)
	}
	data, err := os.ReadFile(r.path("/told"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return string(data)
}

// nextRPM packs the programs of [packed] once more, as a later version.
func nextRPM(t *testing.T, packages string) string {
	t.Helper()
	tools, err := filepath.Glob(filepath.Join(filepath.Dir(packages), "tools", "nfpm-*"))
	if err != nil || len(tools) != 1 {
		t.Fatalf("which of %q packs (%v)", tools, err)
	}
	to := t.TempDir()
	cmd := exec.CommandContext(t.Context(), tools[0], "package", "--config", "packaging/nfpm.yaml", "--packager", "rpm", "--target", to)
	cmd.Dir = filepath.Dir(filepath.Dir(packages))
	cmd.Env = append(os.Environ(), "PACKAGE_DIR="+filepath.Join(packages, runtime.GOARCH), "GOARCH="+runtime.GOARCH, "VERSION=0.0.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return theRPM(t, to)
}

func theRPM(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.rpm"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s has %q (%v)", dir, found, err)
	}
	return found[0]
}

// docsDir is where a package has its pages.
const docsDir = "/usr/share/doc/gitopsd"

// wantDocs looks for every page of the project, with its links to others.
func (r *rpmRoot) wantDocs() {
	r.t.Helper()
	pages := []string{"README.md", "CHANGELOG.md", "LICENSE"}
	module := os.DirFS("../..")
	err := fs.WalkDir(module, "docs", func(p string, e fs.DirEntry, err error) error {
		if err == nil && path.Ext(p) == ".md" {
			pages = append(pages, p)
		}
		return err
	})
	if err != nil || len(pages) < 40 {
		r.t.Fatalf("of the docs there is %q (%v)", pages, err)
	}
	for _, p := range pages {
		want, err := fs.ReadFile(module, p)
		if err != nil {
			r.t.Fatal(err)
		}
		at := r.path(docsDir + "/" + p)
		if is, err := os.ReadFile(at); err != nil || string(is) != string(want) {
			r.t.Errorf("%s of the package is not that of the project (%v)", p, err)
		} else if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o644 {
			r.t.Errorf("%s: %v (%v)", p, info.Mode(), err)
		}
	}
}

// TestSystemRPM takes the rpm through its life: its scripts tell systemd what is
// due and no more, and neither an upgrade nor its removal touches the
// configuration, the state, or what is managed.
func TestSystemRPM(t *testing.T) {
	t.Parallel()
	r := newRPMRoot(t)
	deb, err := packed()
	if err != nil {
		t.Fatal(err)
	}
	first := theRPM(t, filepath.Dir(deb))
	second := nextRPM(t, filepath.Dir(deb))

	const settled = "daemon-reload\ntry-restart gitopsd.service gitopsd-agent.service\n"
	if told := r.run("--install", first); told != settled {
		t.Errorf("to install it tells systemd\n%s", told)
	}
	r.run("--verify", "gitopsd")
	for _, unit := range []string{"gitopsd-agent.service", "gitopsd.service"} {
		want, err := os.ReadFile(filepath.Join("../../packaging", unit))
		if err != nil {
			t.Fatal(err)
		}
		if is, err := os.ReadFile(r.path("/usr/lib/systemd/system/" + unit)); err != nil || string(is) != string(want) {
			t.Errorf("%s is (%v)\n%s", unit, err, is)
		}
	}
	if out, err := exec.CommandContext(t.Context(), r.path("/usr/bin/gitopsd"), "version").CombinedOutput(); err != nil || !strings.Contains(string(out), "gitopsd") {
		t.Errorf("the program says %v\n%s", err, out)
	}
	if info, err := os.Stat(r.path("/etc/gitopsd/credentials")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may look at credentials: %v (%v)", info, err)
	}

	r.wantDocs()

	kept := map[string]string{
		"/etc/gitopsd/agent.yaml": "as written\n", "/etc/gitopsd/agent.d/10-site.yaml": "more\n", "/etc/gitopsd/credentials/token": "secret\n",
		"/etc/systemd/system/gitopsd-agent.service.d/local.conf": "[Service]\n", "/var/lib/gitopsd/current.json": "{}\n", "/etc/edge/version": "one\n",
	}
	for p, text := range kept {
		r.write(p, text, 0o600)
	}
	whole := func(when string) {
		t.Helper()
		for p, want := range kept {
			info, err := os.Stat(r.path(p))
			if err != nil {
				t.Errorf("%s: %v", when, err)
				continue
			}
			if is, err := os.ReadFile(r.path(p)); err != nil || string(is) != want || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s is %v %q (%v)", when, p, info.Mode(), is, err)
			}
		}
	}
	// The new package's script runs before the old one's, which must stop nothing.
	if told := r.run("--upgrade", second); told != settled+"daemon-reload\n" {
		t.Errorf("to upgrade it tells systemd\n%s", told)
	}
	whole("after an upgrade")
	if out, err := exec.CommandContext(t.Context(), r.rpm, "--root", r.dir, "--query", "gitopsd").CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != strings.TrimSuffix(filepath.Base(second), ".rpm") {
		t.Errorf("there is %s (%v)", out, err)
	}

	if told := r.run("--erase", "gitopsd"); told != "disable --now gitopsd.service gitopsd-agent.service\ndaemon-reload\n" {
		t.Errorf("to remove it tells systemd\n%s", told)
	}
	whole("after its removal")
	for _, p := range []string{"/usr/bin/gitopsd", "/usr/lib/systemd/system/gitopsd-agent.service", "/usr/lib/systemd/system/gitopsd.service", docsDir} {
		if _, err := os.Lstat(r.path(p)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after its removal there is %s (%v)", p, err)
		}
	}

	// An image that is being built has no systemd that runs.
	if err := os.RemoveAll(r.path("/run/systemd")); err != nil {
		t.Fatal(err)
	}
	if told := r.run("--install", second) + r.run("--erase", "gitopsd"); told != "" {
		t.Errorf("on an image it tells systemd\n%s", told)
	}
	whole(fmt.Sprintf("after %s on an image", filepath.Base(second)))
}
