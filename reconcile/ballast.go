package reconcile

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

const (
	ballastFile = stateDir + "/ballast"
	// ballastSize holds the records of an ordinary device several times: they
	// have a few KiB, and 8 KiB for each of five failures.
	ballastSize = 128 << 10
	// ballastFree must be free before a part of it is set aside, or the
	// ballast would itself be what fills the disk.
	ballastFree = 32 * ballastSize
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

// loadBallast has room set aside where there is plenty.
func loadBallast(root *disk.Root, free int64) {
	if _, err := root.Lstat(ballastFile); !errors.Is(err, fs.ErrNotExist) || free < ballastFree {
		return
	}
	// not zeros: some file systems would not store those
	b := make([]byte, ballastSize)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)
	}
	_ = root.WriteFile(ballastFile, b, secret) // without it all goes on
}
