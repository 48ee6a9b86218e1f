package agentsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Modes of the socket.
const (
	modeOwner = 0o600
	modeGroup = 0o660
	modeDir   = 0o755 // what makes the device busy lies there too
)

// longestName is what fits into an address of a unix socket on every system,
// in bytes, its end included.
const longestName = 104

// inFolder calls with a name of the socket that is short enough for an address:
// where the real one is not, one that leads through an open folder.
func inFolder(root string, do func(name string) error) error {
	name := Path(root)
	if len(name) < longestName {
		return do(name)
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(name)))
}

func listen(root string) (*net.UnixListener, error) {
	base, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	// No link may lead out of the root.
	if err := base.MkdirAll(filepath.Dir(filepath.FromSlash(socketFile)), modeDir); err != nil {
		return nil, err
	}
	if err := base.Remove(filepath.FromSlash(socketFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var l *net.UnixListener
	err = inFolder(root, func(name string) error {
		// Nobody else may open it before it has its mode.
		mask := syscall.Umask(0o777 &^ modeOwner)
		defer syscall.Umask(mask)
		var err error
		if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}); err == nil {
			l.SetUnlinkOnClose(false) // the name may not lead there any more
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// unlink removes the socket of a server that ends.
func unlink(root string) error {
	base, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer base.Close()
	return base.Remove(filepath.FromSlash(socketFile))
}

// giveGroup lets a group open the socket, too.
func giveGroup(root, group string) error {
	base, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer base.Close()
	gid, err := strconv.Atoi(group)
	if err != nil {
		g, err := user.LookupGroup(group)
		if err != nil {
			return err
		}
		if gid, err = strconv.Atoi(g.Gid); err != nil {
			return err
		}
	}
	if err := base.Lchown(filepath.FromSlash(socketFile), -1, gid); err != nil {
		return err
	}
	return base.Chmod(filepath.FromSlash(socketFile), modeGroup)
}
