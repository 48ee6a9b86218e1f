package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// LiveUnit is a unit of systemd as a spec would have to write it.
type LiveUnit struct {
	Name    string
	File    *LiveFile // nil = its file comes from elsewhere
	DropIns map[string]*LiveFile
	Enabled bool // the links that its file asks for are there
	Masked  bool
	// ByHand is a link that has it start, and that no file asks for: no spec can
	// say it. "" = none.
	ByHand string
}

// unitFolder is where the units of the machine itself stand.
const unitFolder = "/etc/systemd/system"

// Unit reads one unit, as far as files say it.
func (l *Live) Unit(name string) (*LiveUnit, error) {
	if why := schema.UnitProblem(name, nil); why != "" {
		return nil, errors.New(why)
	}
	u := &LiveUnit{Name: name, DropIns: map[string]*LiveFile{}}
	at := path.Join(unitFolder, name)
	info, err := l.root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		host, err := l.root.HostPath(at)
		u.Masked = err == nil && strings.HasSuffix(host, "/dev/null")
		if to := path.Base(host); err == nil && !u.Masked && to != name {
			return nil, fmt.Errorf("it is another name of %s here; name that one", to)
		}
	default:
		if u.File, err = l.File(at); err != nil {
			return nil, err
		}
	}
	drops, err := l.list(at + ".d")
	if err != nil {
		return nil, err
	}
	for _, d := range drops {
		if stem, ok := strings.CutSuffix(d.Name(), ".conf"); ok {
			if u.DropIns[stem], err = l.File(path.Join(at+".d", d.Name())); err != nil {
				return nil, err
			}
		}
	}
	link, err := l.linkTo(name)
	if err != nil {
		return nil, err
	}
	if u.Enabled = link != "" && l.installs(u); !u.Enabled {
		u.ByHand = link
	}
	return u, nil
}

// list gives what is in a folder, nothing where there is none.
func (l *Live) list(folder string) ([]fs.DirEntry, error) {
	entries, err := l.root.List(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// linkTo is a link by which something has a unit start, or by which it has
// another name; "" = there is none.
func (l *Live) linkTo(name string) (string, error) {
	all, err := l.list(unitFolder)
	if err != nil {
		return "", err
	}
	for _, e := range all {
		at := path.Join(unitFolder, e.Name())
		switch path.Ext(e.Name()) {
		case ".wants", ".requires", ".upholds":
			if _, err := l.root.Lstat(path.Join(at, name)); err == nil {
				return path.Join(at, name), nil
			}
		default:
			if to, err := l.root.Readlink(at); err == nil && e.Name() != name && path.Base(to) == name {
				return at, nil
			}
		}
	}
	return "", nil
}

// installs says whether a unit's file or one of its drop-ins asks for links.
func (l *Live) installs(u *LiveUnit) bool {
	for _, d := range u.DropIns {
		if units.Installs(string(d.Data)) {
			return true
		}
	}
	for _, at := range units.Sources(u.Name) {
		if data, err := l.root.ReadFile(at, largestLive); err == nil {
			return units.Installs(string(data))
		}
	}
	return false
}
