package reconcile

import (
	"errors"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
)

// LiveFile is a file of the device as a spec would have to write it.
type LiveFile = files.Live

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
