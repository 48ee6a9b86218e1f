package checks

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/sys/unix"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// Requires checks dependencies; what is missing is one permanent failure that
// names all of it. Commands are the host's, paths lie below the root.
func Requires(root, agentVersion string, r *schema.Requires) error {
	if r == nil {
		return nil
	}
	tree, err := disk.Open(root, disk.Options{})
	if err != nil {
		return failure.Retryable("requires", "", "%w", err)
	}
	defer func() { _ = tree.Close() }()
	var missing []string
	for _, c := range r.Commands {
		if strings.Contains(c, "/") && !path.IsAbs(c) {
			missing = append(missing, fmt.Sprintf("command %q (a name or an absolute path is wanted)", c))
		} else if _, err := exec.LookPath(c); err != nil {
			missing = append(missing, "command "+c)
		}
	}
	for _, p := range r.Paths {
		if !exists(tree, p) {
			missing = append(missing, "path "+p)
		}
	}
	if len(r.Arch) > 0 && !slices.Contains(r.Arch, runtime.GOARCH) {
		missing = append(missing, fmt.Sprintf("architecture %s (this is %s)", strings.Join(r.Arch, " or "), runtime.GOARCH))
	}
	if r.MinAgentVersion != "" {
		if why := tooOld(agentVersion, r.MinAgentVersion); why != "" {
			missing = append(missing, why)
		}
	}
	if r.Kernel != "" {
		if why := kernelTooOld(kernelRelease(), r.Kernel); why != "" {
			missing = append(missing, why)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return failure.Permanent("requires", "", "the device does not have: %s", strings.Join(missing, ", "))
}

func exists(tree *disk.Root, p string) bool {
	host, err := tree.HostPath(p)
	if err != nil {
		return false
	}
	_, err = os.Lstat(filepath.Clean(host))
	return err == nil
}

// tooOld compares agent versions. A build that cannot say which it is has not
// shown that it is new enough.
func tooOld(have, least string) string {
	want, err := semver.NewVersion(least)
	if err != nil {
		return fmt.Sprintf("an agent of version %q (which is no version)", least)
	}
	got, err := semver.NewVersion(have)
	if err != nil {
		return fmt.Sprintf("agent %s or newer (this one calls itself %q)", least, have)
	}
	if got.LessThan(want) {
		return fmt.Sprintf("agent %s or newer (this is %s)", least, have)
	}
	return ""
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// kernelTooOld compares the leading numbers of two releases: what follows
// them ("-31-generic") is the distribution's own and has no order.
func kernelTooOld(have, least string) string {
	want, rest := numbers(least)
	if len(want) == 0 || rest != "" {
		return fmt.Sprintf("a kernel of release %q (which is no release, such as \"5.10\")", least)
	}
	got, _ := numbers(have)
	for len(got) < len(want) {
		got = append(got, 0)
	}
	if slices.Compare(got[:len(want)], want) < 0 {
		return fmt.Sprintf("kernel %s or newer (this is %s)", least, have)
	}
	return ""
}

// numbers splits "5.10.3-x" into 5, 10, 3 and "-x".
func numbers(s string) (n []int, rest string) {
	for {
		i := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		v, err := strconv.Atoi(s[:i])
		if err != nil {
			return n, s
		}
		n, s = append(n, v), s[i:]
		if len(s) < 2 || s[0] != '.' || s[1] < '0' || s[1] > '9' {
			return n, s
		}
		s = s[1:]
	}
}
