package checks

import (
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// reserve is kept free beside what an update writes, in bytes: the
	// agent's own state and a report must still fit afterwards.
	reserve = 1 << 20
	// reserveFiles is the same in inodes: every change needs a temporary file
	// and a copy of what was there.
	reserveFiles = 64
)

// stateFolder is where the agent's own files and the copies of originals lie.
const stateFolder = "/var/lib/gitopsd"

// Disk checks free space: too little is retryable. need is what the update
// itself will write, in bytes.
func Disk(root string, d *schema.DiskResource, need int64) error {
	tree, err := disk.Open(root, disk.Options{})
	if err != nil {
		return failure.Retryable("resources", "disk", "%w", err)
	}
	defer func() { _ = tree.Close() }()
	var errs []error
	if d != nil && d.MinFree != "" {
		least, err := schema.ParseQuantity(d.MinFree)
		if err != nil {
			return failure.Permanent("resources", "disk", "minFree: %w", err)
		}
		p := d.Path
		if p == "" {
			p = "/"
		}
		if !strings.HasPrefix(p, "/") {
			return failure.Permanent("resources", "disk", "path %q is not absolute", p)
		}
		errs = append(errs, room(tree, p, least, 0, "wanted free by the spec"))
	}
	for _, p := range []string{"/", stateFolder} {
		errs = append(errs, room(tree, p, saturated(need, reserve), reserveFiles, "needed for the update"))
	}
	return failure.Join(errs...)
}

func saturated(a, b int64) int64 {
	if a < 0 {
		a = 0
	}
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func room(tree *disk.Root, p string, bytes int64, files uint64, why string) error {
	st, err := statfs(tree, p)
	if err != nil {
		return failure.Retryable("resources", "disk", "%s: %w", p, err)
	}
	if free := available(st); free < bytes {
		return failure.Retryable("resources", "disk", "%s has %d bytes free, %d are %s", p, free, bytes, why)
	}
	// Some file systems have no fixed number of inodes and say 0.
	if files > 0 && st.Files > 0 && st.Ffree < files {
		return failure.Retryable("resources", "disk", "%s has %d inodes free, %d are %s", p, st.Ffree, files, why)
	}
	return nil
}

// statfs asks the file system that holds a path, or would hold it.
func statfs(tree *disk.Root, p string) (*unix.Statfs_t, error) {
	host, err := tree.HostPath(p)
	if err != nil {
		return nil, err
	}
	for host != tree.Dir() {
		if _, err := os.Lstat(host); err == nil {
			break
		}
		host = filepath.Dir(host)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(host, &st); err != nil {
		return nil, err
	}
	return &st, nil
}

func available(st *unix.Statfs_t) int64 {
	size := uint64(max(st.Bsize, 1))
	if st.Bavail > math.MaxInt64/size {
		return math.MaxInt64
	}
	return int64(st.Bavail * size)
}

// Free gives the bytes free on the file system of root, 0 where it cannot be
// asked.
func Free(root string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return 0
	}
	return available(&st)
}
