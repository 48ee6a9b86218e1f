//go:build linux

package machine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gofrs/flock"
)

const (
	// suite is the first Debian whose podman has quadlets.
	suite = "trixie"
	// packages is what a device has before anything manages it. The services
	// among them start only when a test asks.
	packages = "systemd,systemd-sysv,dbus,procps,iproute2,podman,podman-compose,crun,netavark,aardvark-dns,nftables,catatonit,ostree,ostree-boot,rauc,rauc-service,squashfs-tools,git,ca-certificates,passt,curl"
)

// tree is the folder of the root file system that all machines share.
func tree(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	// Another choice of packages is another tree.
	made := filepath.Join(cache, "gitopsd-test", fmt.Sprintf("%s-%x", suite, sha256.Sum256([]byte(packages)))[:len(suite)+9])
	if err := os.MkdirAll(filepath.Dir(made), 0o755); err != nil {
		return "", err
	}
	lock := flock.New(made + ".lock") // the tests of several packages run side by side
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer lock.Unlock()
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		return made, err
	}
	mirror, err := mirror()
	if err != nil {
		return "", err
	}
	half := made + ".part"
	if err := os.RemoveAll(half); err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, "mmdebstrap", "--mode=root", "--variant=apt", "--format=directory",
		"--include="+packages, suite, half, mirror)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make a Debian tree: %w\n%s", err, out)
	}
	return made, os.Rename(half, made)
}

var mirrorLine = regexp.MustCompile(`(?m)^(?:URIs:|deb(?: \[[^]]*\])?)\s+(\S+)`)

// mirror is where this host gets its own packages.
func mirror() (string, error) {
	files, err := filepath.Glob("/etc/apt/sources.list.d/*.sources")
	if err != nil {
		return "", err
	}
	for _, file := range append(files, "/etc/apt/sources.list") {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, m := range mirrorLine.FindAllSubmatch(data, -1) {
			if uri := string(m[1]); !strings.Contains(uri, "security") {
				return uri, nil
			}
		}
	}
	return "", errors.New("find the package mirror of this host: no source in /etc/apt")
}
