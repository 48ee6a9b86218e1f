package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// openStraight opens the folder of the root for [Root.straight].
func openStraight(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// straight says that a clean path leads through folders only, and with last
// that what it names is no symlink either: it is where it is written then. The
// kernel looks at all of it at once, where going from folder to folder takes a
// few system calls for each and those before it. A kernel that cannot (before
// Linux 5.6, or behind a filter) says what is always true: perhaps not.
func (r *Root) straight(p string, last bool) bool {
	parents := r.noLinks(path.Dir(p), unix.O_DIRECTORY)
	if parents != nil || !last {
		return parents == nil
	}
	err := r.noLinks(p, 0)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

func (r *Root) noLinks(p string, flags uint64) error {
	fd, err := unix.Openat2(int(r.top.Fd()), rel(p), &unix.OpenHow{
		Flags: flags | unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
