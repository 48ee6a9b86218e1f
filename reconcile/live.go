package reconcile

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
)

// LiveFile is a file of the device as a spec would have to write it.
type LiveFile = files.Live

// LiveUnit is a unit of systemd as a spec would have to write it.
type LiveUnit struct {
	Name    string
	File    *LiveFile // nil = its file comes from elsewhere
	DropIns map[string]*LiveFile
	Enabled bool // something wants it
	Masked  bool
}

// Live reads what is on a device, to be written into a spec. It changes nothing.
type Live struct {
	root  *disk.Root
	files *files.Controller
}

// OpenLive opens the root of a device, whether it has an agent or not.
func OpenLive(c Config) (*Live, error) {
	c.setDefaults()
	root, err := disk.Open(c.Root, disk.Options{Step: func(string, string) error { return errReadOnly }})
	if err != nil {
		return nil, err
	}
	fc, err := files.New(files.Config{Root: root, State: stateDir, Protected: c.Protected})
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Live{root: root, files: fc}, nil
}

// Close releases the root.
func (l *Live) Close() error { return l.root.Close() }

// largestLive bounds one file in bytes, as a payload.
const largestLive = payloadLimit

// File reads one file.
func (l *Live) File(p string) (*LiveFile, error) { return l.files.ReadLive(p, largestLive) }

// unitFolder is where the units of the machine itself stand.
const unitFolder = "/etc/systemd/system"

// Unit reads one unit, as far as files say it.
func (l *Live) Unit(name string) (*LiveUnit, error) {
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
	default:
		if u.File, err = l.File(at); err != nil {
			return nil, err
		}
	}
	drops, err := l.root.List(at + ".d")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, d := range drops {
		if stem, ok := strings.CutSuffix(d.Name(), ".conf"); ok {
			if u.DropIns[stem], err = l.File(path.Join(at+".d", d.Name())); err != nil {
				return nil, err
			}
		}
	}
	folders, err := l.root.List(unitFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range folders {
		if strings.HasSuffix(f.Name(), ".wants") || strings.HasSuffix(f.Name(), ".requires") {
			if _, err := l.root.Lstat(path.Join(unitFolder, f.Name(), name)); err == nil {
				u.Enabled = true
			}
		}
	}
	return u, nil
}
