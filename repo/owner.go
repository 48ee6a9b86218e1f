package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ownerHint says whose a file is that this program may not touch, mostly
// because it once ran as another user. It is "" where that is not the trouble.
func ownerHint(err error) string {
	path := ""
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case !errors.Is(err, fs.ErrPermission):
	case errors.As(err, &p):
		path = p.Path
	case errors.As(err, &l):
		path = l.New
	}
	// What cannot be looked at is as the folder that it is in.
	for ; path != "" && path != "/" && path != "."; path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			break
		}
		return fmt.Sprintf("%s belongs to the user %d, this program runs as the user %d: run it as that user, or chown what is there", path, stat.Uid, os.Geteuid())
	}
	return ""
}
