package files

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// Live is a file of the device as a spec would have to write it.
type Live struct {
	Path         string
	Data         []byte
	Mode         string // octal; "" = what a spec has without one
	Owner, Group string // "" = the agent's own
	Shown        bool   // everybody on the device may read it
}

// Mentions says whether the text of the file has a name of another file as a
// word.
func (l *Live) Mentions(name string) bool {
	return slices.Contains(strings.FieldsFunc(string(l.Data), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._@-", r)
	}), name)
}

// ReadLive reads a file of at most limit bytes for a spec. What no spec may
// have, and what is no regular file, is an error.
func (c *Controller) ReadLive(p string, limit int64) (*Live, error) {
	c.followProtected()
	w := &want{spec: p}
	if err := c.fill(w, "", fileMode, "", ""); err != nil {
		return nil, err
	}
	info, err := c.root.Lstat(w.real)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; name its files", p)
	case isLink(info):
		return nil, fmt.Errorf("%s is a symlink; name the file that it leads to", p)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", p)
	}
	l := &Live{Path: p, Shown: info.Mode().Perm()&0o004 != 0}
	if l.Data, err = c.root.ReadFile(w.real, limit); err != nil {
		return nil, err
	}
	m := disk.MetaOf(info)
	if m.Mode != fileMode {
		l.Mode = octal(m.Mode)
	}
	c.ids.reset()
	if l.Owner, err = c.ids.nameOf("passwd", m.UID, w.meta.UID); err != nil {
		return nil, err
	}
	l.Group, err = c.ids.nameOf("group", m.GID, w.meta.GID)
	return l, err
}

// nameOf is how a spec names an account; "" for the agent's own. One that the
// device has no name for is named by its number.
func (l *ids) nameOf(file string, id, own int) (string, error) {
	if id == own {
		return "", nil
	}
	accounts, err := l.load(file)
	if err != nil {
		return "", err
	}
	name := ""
	for n, i := range accounts {
		if i == id && (name == "" || n < name) {
			name = n
		}
	}
	if name == "" {
		name = strconv.Itoa(id)
	}
	return name, nil
}
