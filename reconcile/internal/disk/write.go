package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// WriteFile puts a file in place, or in the place of another, at once:
// temporary file beside it, fsync, rename, fsync of the folder. The folder
// must exist.
func (r *Root) WriteFile(p string, data []byte, m Meta) error {
	_, err := r.replace(p, bytes.NewReader(data), "", m)
	return err
}

// WriteFrom is [Root.WriteFile] for what is not in memory. It takes its place
// only if want is its sha256 in hex, otherwise that is [ErrDamaged].
func (r *Root) WriteFrom(p string, src io.Reader, want string, m Meta) error {
	_, err := r.replace(p, src, want, m)
	return err
}

// CopyFile copies a regular file as [Root.WriteFile] writes one, and gives the
// sha256 of what it copied in hex. With want, the copy takes its place only if
// that is its sum.
func (r *Root) CopyFile(from, to, want string, m Meta) (sum string, err error) {
	f, _, err := r.open(from)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return r.replace(to, f, want, m)
}

// ErrDamaged is the error of a copy whose content is not what was expected.
var ErrDamaged = errors.New("its content is not what it was")

func (r *Root) replace(p string, src io.Reader, want string, m Meta) (sum string, err error) {
	wrap := func(err error) error { return fmt.Errorf("write %s: %w", p, bare(err)) }
	real, err := r.writable(p, m.ReplaceLink)
	if err != nil {
		return "", wrap(err)
	}
	var attrs Attributes
	if m.Attributes != nil {
		attrs = *m.Attributes
	} else if attrs, err = r.attributesThere(real); err != nil {
		return "", wrap(err)
	}
	tmp := tempBeside(real)
	if err := r.step("create", tmp); err != nil {
		return "", wrap(err)
	}
	f, err := r.root.OpenFile(rel(tmp), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", wrap(err)
	}
	placed := false
	defer func() {
		if placed || err == nil {
			return
		}
		f.Close()
		if r.step("remove", tmp) == nil {
			_ = r.root.Remove(rel(tmp)) // best effort: Sweep finds what stays
		}
	}()
	hash := sha256.New()
	if err := r.step("write", tmp); err != nil {
		return "", wrap(err)
	}
	if _, err := io.Copy(io.MultiWriter(f, hash), src); err != nil {
		return "", wrap(err)
	}
	sum = hex.EncodeToString(hash.Sum(nil))
	if want != "" && sum != want {
		return "", wrap(ErrDamaged)
	}
	if err := r.chown(f, tmp, m); err != nil {
		return "", wrap(err)
	}
	if attrs != nil { // after chown, which takes capabilities away; before chmod, which says what an access list gives at most
		if err := r.setAttributes(f, tmp, attrs); err != nil {
			return "", wrap(err)
		}
	}
	if err := r.chmod(f, tmp, m); err != nil {
		return "", wrap(err)
	}
	if err := r.step("sync", tmp); err != nil {
		return "", wrap(err)
	}
	if err := f.Sync(); err != nil {
		return "", wrap(err)
	}
	if err := f.Close(); err != nil {
		return "", wrap(err)
	}
	if err := r.step("rename", real); err != nil {
		return "", wrap(err)
	}
	if err := r.root.Rename(rel(tmp), rel(real)); err != nil {
		return "", wrap(err)
	}
	placed = true
	return sum, wrapNil(r.syncName(real), wrap)
}

// writable resolves a path for writing: what stands there may only be a file,
// or a symlink that is to be replaced.
func (r *Root) writable(p string, replaceLink bool) (string, error) {
	real, err := r.Resolve(p)
	if err != nil {
		return "", err
	}
	info, err := r.root.Lstat(rel(real))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return real, nil
	case err != nil:
		return "", err
	case info.Mode().Type() == fs.ModeSymlink && replaceLink:
		return real, nil
	case info.Mode().Type() == fs.ModeSymlink:
		return "", ErrSymlink
	case info.IsDir():
		return "", syscall.EISDIR
	case !info.Mode().IsRegular():
		return "", ErrNotRegular
	}
	return real, nil
}

// attributesThere are those that a file takes over from the one in whose place it
// comes; nil = there is none, and the folder says what a new file has.
func (r *Root) attributesThere(real string) (Attributes, error) {
	info, err := r.root.Lstat(rel(real))
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	a, err := r.attributes(real, follows)
	if a == nil {
		a = Attributes{}
	}
	return a, err
}

func wrapNil(err error, wrap func(error) error) error {
	if err == nil {
		return nil
	}
	return wrap(err)
}

// syncPath makes a change of mode and owner durable. A file that cannot be
// opened for reading (mode 0 without root) is left to the kernel.
func (r *Root) syncPath(real string) error {
	if err := r.step("sync", real); err != nil {
		return err
	}
	f, err := r.root.OpenFile(rel(real), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	return f.Sync()
}

func (r *Root) syncDir(dir string) error {
	if err := r.step("syncdir", dir); err != nil {
		return err
	}
	f, err := r.root.Open(rel(dir))
	if errors.Is(err, fs.ErrPermission) {
		return nil // a folder one may write in but not read cannot be synced
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Remove removes a file, a symlink or an empty folder.
func (r *Root) Remove(p string) error {
	wrap := func(err error) error { return fmt.Errorf("remove %s: %w", p, bare(err)) }
	real, err := r.Resolve(p)
	if err != nil {
		return err
	}
	if real == "/" {
		return wrap(fs.ErrInvalid)
	}
	if err := r.step("remove", real); err != nil {
		return wrap(err)
	}
	if err := r.root.Remove(rel(real)); err != nil {
		return wrap(err)
	}
	return wrapNil(r.syncName(real), wrap)
}

// Rename moves a file or folder inside one file system.
func (r *Root) Rename(from, to string) error {
	wrap := func(err error) error { return fmt.Errorf("rename %s to %s: %w", from, to, bare(err)) }
	a, err := r.Resolve(from)
	if err != nil {
		return err
	}
	b, err := r.Resolve(to)
	if err != nil {
		return err
	}
	if err := r.step("rename", b); err != nil {
		return wrap(err)
	}
	if err := r.root.Rename(rel(a), rel(b)); err != nil {
		return wrap(err)
	}
	if err := r.syncName(b); err != nil {
		return wrap(err)
	}
	if path.Dir(a) == path.Dir(b) {
		return nil
	}
	return wrapNil(r.syncName(a), wrap)
}
