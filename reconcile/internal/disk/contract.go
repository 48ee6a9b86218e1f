// Package disk CONTRACT (replaced by its owner).
package disk

import (
	"io/fs"
)

// Options of a Root.
type Options struct {
	// Step is asked before every operation that changes the disk ("create",
	// "write", "sync", "chmod", "chown", "rename", "remove", "mkdir",
	// "syncdir"); an error becomes the operation's. Tests crash and fail with it.
	Step func(op, path string) error
}

// Meta is what a written file should have; -1 keeps the process's own.
type Meta struct {
	Mode     fs.FileMode // permission, setuid, setgid, sticky
	UID, GID int
}

// Root is a file tree that no path and no symlink leaves (os.Root). Paths are
// absolute as the device sees them ("/etc/x").
type Root struct{}

func Open(dir string, o Options) (*Root, error)                   { panic("contract") }
func (r *Root) Dir() string                                       { panic("contract") }
func (r *Root) Close() error                                      { panic("contract") }
func (r *Root) ReadFile(path string, limit int64) ([]byte, error) { panic("contract") }
func (r *Root) Lstat(path string) (fs.FileInfo, error)            { panic("contract") }

// WriteFile: temporary file beside it, fsync, rename, fsync of the folder.
func (r *Root) WriteFile(path string, data []byte, m Meta) error { panic("contract") }
func (r *Root) Remove(path string) error                         { panic("contract") }

// MkdirAll gives the folders that it made, outermost first.
func (r *Root) MkdirAll(path string, m Meta) (made []string, err error) { panic("contract") }
func (r *Root) Rename(from, to string) error                            { panic("contract") }
func (r *Root) List(path string) ([]fs.DirEntry, error)                 { panic("contract") }

// Sweep removes temporary files that a crash left beside path or in it.
func (r *Root) Sweep(dir string) error { panic("contract") }
