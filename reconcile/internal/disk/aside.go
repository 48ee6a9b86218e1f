package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// AsideMark is in the name of what was set aside, behind its own name and
// before the time.
const AsideMark = ".unreadable-"

// asides bounds how many names are tried for what is set aside within one
// second; a folder that cannot even be looked at is not looked at for ever.
const asides = 100

// longestAside bounds how much of a name, in bytes, what is set aside keeps, so
// that there is room for the mark.
const longestAside = 200

// SetAside moves what cannot be read out of the way, with its date: it is never
// deleted, and a person may find in it what nobody knows otherwise. to is its
// new name, "" where nothing stood there.
func (r *Root) SetAside(p string, now time.Time) (to string, err error) {
	return r.SetAsideIn(path.Dir(p), p, now)
}

// SetAsideIn is [Root.SetAside] into a folder, which must exist.
func (r *Root) SetAsideIn(dir, p string, now time.Time) (to string, err error) {
	name := path.Base(p)
	if len(name) > longestAside {
		name = strings.ToValidUTF8(name[:longestAside], "")
	}
	dated := path.Join(dir, name+AsideMark+now.UTC().Format("20060102T150405Z"))
	to = dated
	for n := 2; n < asides; n++ {
		if _, err := r.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = fmt.Sprintf("%s.%d", dated, n)
	}
	err = r.Rename(p, to)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("set aside: %w", err)
	}
	return to, nil
}
