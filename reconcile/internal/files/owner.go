package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// maxAccounts bounds a passwd or group file, in bytes: beyond it something
// else than accounts stands there.
const maxAccounts = 16 << 20

// accountFolders is where accounts stand, first match first; an image-based
// system keeps its own below /usr/lib.
var accountFolders = []string{"/etc", "/usr/lib"}

// errOwner is for owners that cannot be given here: another try changes
// nothing.
type errOwner struct{ msg string }

func (e errOwner) Error() string        { return e.msg }
func (e errOwner) Is(target error) bool { return target == fs.ErrInvalid }

// ids looks up users and groups in the root's own files, which it reads once
// per spec.
type ids struct {
	root   *disk.Root
	loaded map[string]map[string]int // file name → account → id
}

func (l *ids) reset() { l.loaded = nil }

// user gives the id of an owner; "" is the agent's own user.
func (l *ids) user(name string) (int, error) {
	own := os.Geteuid()
	if name == "" {
		return own, nil
	}
	id, err := l.lookup("passwd", "user", name)
	if err != nil {
		return 0, err
	}
	if own != 0 && id != own {
		return 0, errOwner{fmt.Sprintf("only root can give a file to user %s (%d); the agent runs as %d", name, id, own)}
	}
	return id, nil
}

// group gives the id of a group; "" is the agent's own group.
func (l *ids) group(name string) (int, error) {
	own := os.Getegid()
	if name == "" {
		return own, nil
	}
	id, err := l.lookup("group", "group", name)
	if err != nil {
		return 0, err
	}
	if os.Geteuid() != 0 && id != own {
		if groups, err := os.Getgroups(); err != nil || !slices.Contains(groups, id) {
			return 0, errOwner{fmt.Sprintf("only root can give a file to group %s (%d), which the agent is not in", name, id)}
		}
	}
	return id, nil
}

// lookup prefers a name over a number, as chown(1) does.
func (l *ids) lookup(file, what, name string) (int, error) {
	accounts, err := l.load(file)
	if err != nil {
		return 0, err
	}
	if id, ok := accounts[name]; ok {
		return id, nil
	}
	// The largest id means "leave it" to chown(2).
	if n, err := strconv.ParseUint(name, 10, 32); err == nil && n != 1<<32-1 {
		return int(n), nil
	}
	return 0, errOwner{fmt.Sprintf("%s %q is not in /etc/%s of the device", what, name, file)}
}

func (l *ids) load(file string) (map[string]int, error) {
	if accounts, ok := l.loaded[file]; ok {
		return accounts, nil
	}
	accounts := map[string]int{}
	for _, dir := range accountFolders {
		data, err := l.root.ReadFile(dir+"/"+file, maxAccounts)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			fields := strings.Split(strings.TrimRight(line, "\n"), ":")
			if len(fields) < 3 || fields[0] == "" {
				continue
			}
			n, err := strconv.ParseUint(fields[2], 10, 32)
			if _, known := accounts[fields[0]]; err == nil && !known {
				accounts[fields[0]] = int(n)
			}
		}
	}
	if l.loaded == nil {
		l.loaded = map[string]map[string]int{}
	}
	l.loaded[file] = accounts
	return accounts, nil
}

// closed says that a mode keeps the agent out of its own file or folder. Root is
// kept out of none.
func closed(mode fs.FileMode, dir bool) bool {
	needed := fs.FileMode(0o400)
	if dir {
		needed = 0o500
	}
	return os.Geteuid() != 0 && mode&needed != needed
}

// readBack refuses what the agent could neither compare nor take back later.
func (w *want) readBack() error {
	if closed(w.meta.Mode, w.dir) {
		return w.permanent("mode %s would keep the agent out, which is not root here", octal(w.meta.Mode))
	}
	return nil
}

// ownIDs are the user and group that own what a spec gives to nobody.
func ownIDs() (uid, gid int) { return os.Geteuid(), os.Getegid() }
