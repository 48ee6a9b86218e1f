//go:build linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

const (
	osName = "edge"
	base   = "base" // branch of the shared tree
	// imagesRepo is where a machine finds images, as it sees it.
	imagesRepo = "/sysroot/images"
)

// NewOSTree makes a machine that boots what ostree has deployed, with the real
// tools inside; the test's side plays the boot loader. It has no deployment
// yet: make an image, and deploy it. Its configuration of ostree has a remote
// named edge, with all images.
func NewOSTree(t testing.TB) *Machine {
	t.Helper()
	m := fresh(t)
	if _, err := exec.LookPath("ostree"); err != nil {
		t.Fatal("a machine of images needs ostree: install ostree")
	}
	lower, err := tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	repo, err := baseImage(t.Context(), lower)
	if err != nil {
		t.Fatal(err)
	}
	m.sysroot = filepath.Join(m.dir, "sysroot")
	for _, dir := range []string{m.sysroot, filepath.Join(m.dir, "containers")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// ostree freezes the file system of /boot for a moment when it changes what
	// boots. That must not be the host's: the power may go before the thaw.
	boot := filepath.Join(m.sysroot, "boot")
	if err := os.Mkdir(boot, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", boot, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatalf("mount /boot: %v", err)
	}
	m.cleanup(func() error { return unix.Unmount(boot, unix.MNT_DETACH) })
	m.cleanup(func() error { return errors.Join(mutable(m.sysroot)...) })
	m.cleanup(func() error { m.PowerCut(); return nil })
	local, images := filepath.Join(m.sysroot, "ostree/repo"), m.images()
	for _, args := range [][]string{
		{"admin", "init-fs", m.sysroot},
		{"admin", "os-init", "--sysroot=" + m.sysroot, osName},
		{"config", "--repo=" + local, "set", "sysroot.bootloader", "none"},
		{"config", "--repo=" + local, "set", "core.fsync", "false"},
		{"remote", "add", "--repo=" + local, "--no-gpg-verify", osName, "file://" + imagesRepo},
		{"init", "--repo=" + images, "--mode=bare"},
		{"config", "--repo=" + images, "set", "core.fsync", "false"},
		{"pull-local", "--repo=" + images, repo, base},
	} {
		if _, err := ostree(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *Machine) images() string { return filepath.Join(m.sysroot, filepath.Base(imagesRepo)) }

// Image makes an image of the shared tree with what lies in a folder on top,
// as a branch of the machine's remote, and gives its commit.
func (m *Machine) Image(branch, dir string) string {
	m.t.Helper()
	out, err := ostree(m.t.Context(), "commit", "--repo="+m.images(), "--branch="+branch, "--tree=ref="+base, "--tree=dir="+dir)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// Deploy puts an image on a machine that is off.
func (m *Machine) Deploy(commit string) {
	m.t.Helper()
	for _, args := range [][]string{
		{"pull-local", "--repo=" + filepath.Join(m.sysroot, "ostree/repo"), "--remote=" + osName, m.images(), commit},
		{"admin", "deploy", "--sysroot=" + m.sysroot, "--os=" + osName, commit},
	} {
		if _, err := ostree(m.t.Context(), args...); err != nil {
			m.t.Fatal(err)
		}
	}
	m.configure()
}

// Refuse has the boot loader not boot an image: it goes on to the next entry,
// as one does that counts tries.
func (m *Machine) Refuse(commit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = commit
}

// next is the deployment that the boot loader boots: that of the entry with
// the highest version.
func (m *Machine) next() (string, error) {
	entries, err := filepath.Glob(filepath.Join(m.sysroot, "boot/loader/entries/*.conf"))
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	refused := m.refused
	m.mu.Unlock()
	best, found := -1, ""
	for _, e := range entries {
		data, err := os.ReadFile(e)
		if err != nil {
			return "", err
		}
		version, at := -1, ""
		for line := range strings.Lines(string(data)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch key {
			case "version":
				if version, err = strconv.Atoi(value); err != nil {
					return "", fmt.Errorf("%s: %w", e, err)
				}
			case "options":
				for _, o := range strings.Fields(value) {
					if v, ok := strings.CutPrefix(o, "ostree="); ok {
						at = v
					}
				}
			}
		}
		dir, err := filepath.EvalSymlinks(filepath.Join(m.sysroot, at))
		if err != nil {
			return "", err
		}
		if version > best && (refused == "" || !strings.HasPrefix(filepath.Base(dir), refused)) {
			best, found = version, dir
		}
	}
	if found == "" {
		return "", fmt.Errorf("no boot entry below %s", m.sysroot)
	}
	return found, nil
}

// deployed says what of the machine lies where, for its next boot: as the
// initial ramdisk of a real one mounts it.
func (m *Machine) deployed() ([]string, error) {
	next, err := m.next()
	if err != nil {
		return nil, err
	}
	mark := filepath.Join(m.dir, "booted")
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		return nil, err
	}
	return []string{
		"--directory=" + next,
		"--bind-ro=" + filepath.Join(next, "usr") + ":/usr",
		"--bind=" + m.sysroot + ":/sysroot",
		"--bind=" + filepath.Join(m.sysroot, "boot") + ":/boot",
		"--bind=" + m.varDir() + ":/var",
		"--bind-ro=" + mark + ":/run/ostree-booted",
	}, nil
}

func (m *Machine) varDir() string { return filepath.Join(m.sysroot, "ostree/deploy", osName, "var") }

// deployedPath is a file of the deployment that boots next, or of /var.
func (m *Machine) deployedPath(file string) string {
	if in, ok := strings.CutPrefix(filepath.Clean(file), "/var/"); ok {
		return filepath.Join(m.varDir(), in)
	}
	next, err := m.next()
	if err != nil {
		return filepath.Join(m.sysroot, "no-deployment", file)
	}
	return filepath.Join(next, file)
}

// mutable lets deployments be removed.
func mutable(sysroot string) []error {
	all, err := filepath.Glob(filepath.Join(sysroot, "ostree/deploy", osName, "deploy/*"))
	errs := []error{err}
	for _, d := range all {
		if info, err := os.Stat(d); err == nil && info.IsDir() {
			errs = append(errs, exec.Command("chattr", "-i", d).Run())
		}
	}
	return errs
}

// baseImage is a repository with the shared tree as an image, made once.
func baseImage(ctx context.Context, tree string) (string, error) {
	made := tree + ".ostree"
	lock := flock.New(made + ".lock")
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer lock.Unlock()
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		return made, err
	}
	half, root := made+".part", made+".root"
	for _, dir := range []string{half, root} {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	defer os.RemoveAll(root)
	// The links are to the tree's own files: only folders are changed.
	const arrange = `set -e
cp -al "$1" "$2"
cd "$2"
for d in dev proc sys run tmp var boot mnt media; do rm -rf "$d"; mkdir "$d"; done
chmod 1777 tmp
mv etc usr/etc
mkdir -p sysroot usr/lib/modules/6.1
ln -s sysroot/ostree ostree
echo kernel > usr/lib/modules/6.1/vmlinuz
echo initrd > usr/lib/modules/6.1/initramfs.img`
	if out, err := exec.CommandContext(ctx, "sh", "-c", arrange, "sh", tree, root).CombinedOutput(); err != nil {
		return "", fmt.Errorf("arrange the tree for ostree: %w\n%s", err, out)
	}
	for _, args := range [][]string{
		{"init", "--repo=" + half, "--mode=bare"},
		{"config", "--repo=" + half, "set", "core.fsync", "false"},
		{"commit", "--repo=" + half, "--branch=" + base, "--tree=dir=" + root},
	} {
		if _, err := ostree(ctx, args...); err != nil {
			return "", err
		}
	}
	return made, os.Rename(half, made)
}

func ostree(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "ostree", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ostree %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
