package reconcile

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

const (
	ballastFile = stateDir + "/ballast"
	// ballastSize holds every state file of an ordinary device once more,
	// beside the file that is replaced.
	ballastSize = 256 << 10
)

// writeState writes a state file, at the expense of the ballast when the disk
// is full: what went wrong must be recorded and reported above all then. The
// ballast comes back with a later write that finds room.
func writeState(root *disk.Root, p string, data []byte) error {
	err := root.WriteFile(p, data, secret)
	if errors.Is(err, syscall.ENOSPC) && root.Remove(ballastFile) == nil {
		return root.WriteFile(p, data, secret)
	}
	return err
}

// loadBallast has room set aside, as far as there is any: twice its size must
// be free, or it would itself be what fills the disk.
func loadBallast(root *disk.Root, free int64) {
	if _, err := root.Lstat(ballastFile); !errors.Is(err, fs.ErrNotExist) || free < 2*ballastSize {
		return
	}
	// not zeros: some file systems would not store those
	b := make([]byte, ballastSize)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)
	}
	_ = root.WriteFile(ballastFile, b, secret) // without it all goes on
}
