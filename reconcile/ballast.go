package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

const (
	ballastFile = stateDir + "/ballast" // ballast.1, ballast.2, …
	// ballastPieces is also how many inodes are set aside: a record that is
	// new takes one, a record that is replaced takes one for a moment, and a
	// payload may come in between.
	ballastPieces = 8
	// ballastSize is that of one piece in bytes. All of them hold the records
	// of an ordinary device several times: they have a few KiB, and 8 KiB for
	// each of five failures.
	ballastSize = 16 << 10
	// ballastFree must be free before a part of it is set aside, or the
	// ballast would itself be what fills the disk.
	ballastFree = 32 * ballastPieces * ballastSize
)

func ballastPiece(n int) string { return fmt.Sprintf("%s.%d", ballastFile, n) }

// writeState writes a state file, at the expense of the ballast when the disk
// is full: what went wrong must be recorded and reported above all then. Piece
// by piece, because whatever else is written takes what is set free, too. The
// ballast comes back with a later write that finds room.
func writeState(root *disk.Root, p string, data []byte) error {
	err := root.WriteFile(p, data, secret)
	for n := 1; n <= ballastPieces && errors.Is(err, syscall.ENOSPC); n++ {
		if _, there := root.Lstat(ballastPiece(n)); there == nil && root.Remove(ballastPiece(n)) == nil {
			err = root.WriteFile(p, data, secret)
		}
	}
	return err
}

// loadBallast has room set aside where there is plenty.
func loadBallast(root *disk.Root, free int64) {
	if free < ballastFree {
		return
	}
	// not zeros: some file systems would not store those
	b := make([]byte, ballastSize)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)
	}
	for n := 1; n <= ballastPieces; n++ {
		if _, err := root.Lstat(ballastPiece(n)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if root.WriteFile(ballastPiece(n), b, secret) != nil {
			return // without it all goes on
		}
	}
}
