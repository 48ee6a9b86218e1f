package repo

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// looseLimit is up to how many objects are written one file each; more go
// into a pack. It is git's own receive.unpackLimit.
const looseLimit = 100

// addObjects writes objects into a repository folder, so that they survive a
// power cut once it returns. Only whole files appear under their final names.
func addObjects(l *localDir, objs []outObject) error {
	dir := l.dir
	if len(objs) == 0 {
		return nil
	}
	if len(objs) > looseLimit {
		for i := range objs {
			objs[i].baseData = nil
		}
		return addPack(dir, objs)
	}
	dirs := map[string]bool{}
	zw, err := zlib.NewWriterLevel(io.Discard, packLevel)
	if err != nil {
		return err
	}
	for _, o := range objs {
		d, err := addLoose(l, zw, o)
		if err != nil {
			return err
		}
		dirs[d] = true
	}
	for d := range dirs {
		if d == "" {
			continue
		}
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return syncDir(filepath.Join(dir, "objects"))
}

// addLoose writes one object; it gives the folder to sync, "" when it was
// there already.
func addLoose(l *localDir, zw *zlib.Writer, o outObject) (string, error) {
	name := o.id.String()
	folder := filepath.Join(l.dir, "objects", name[:2])
	path := filepath.Join(folder, name[2:])
	if _, err := os.Stat(path); err == nil {
		return "", nil
	}
	var b bytes.Buffer
	zw.Reset(&b)
	head := o.typ.String() + " " + strconv.Itoa(len(o.data)) + "\x00"
	if _, err := zw.Write(append([]byte(head), o.data...)); err != nil {
		return "", err
	}
	if err := zw.Close(); err != nil {
		return "", err
	}
	err := os.Mkdir(folder, 0o777)
	if err == nil {
		err = forGroup(l.shared, folder)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return folder, writeOnce(path, b.Bytes())
}

// addPack writes the objects as one pack.
func addPack(dir string, objs []outObject) error {
	folder := filepath.Join(dir, "objects", "pack")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	f, err := createTemp(folder)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	p, err := writePack(f, objs)
	if err != nil {
		return err
	}
	_, err = installPack(folder, f, p)
	return err
}

// installPack gives a complete pack its name. The index comes first: readers
// look for packs and then need the index, and an index alone does no harm.
func installPack(folder string, f *os.File, p *packData) (string, error) {
	if err := f.Sync(); err != nil {
		return "", err
	}
	if err := f.Chmod(0o444); err != nil {
		return "", err
	}
	base := filepath.Join(folder, "pack-"+p.sum.String())
	if _, err := os.Stat(base + ".pack"); err == nil {
		if _, err := os.Stat(base + ".idx"); err == nil {
			return base, nil
		}
	}
	if err := writeOnce(base+".idx", encodeIndex(p.entries, p.sum)); err != nil {
		return "", err
	}
	if err := os.Rename(f.Name(), base+".pack"); err != nil {
		return "", err
	}
	return base, syncDir(folder)
}

// tempPrefix is what unfinished files begin with; git sweeps such files too.
const tempPrefix = "tmp_pack_"

func createTemp(folder string) (*os.File, error) {
	for {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(filepath.Join(folder, tempPrefix+hex.EncodeToString(b[:])), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// writeOnce writes a file that never changes, read-only as git's are.
func writeOnce(path string, data []byte) error {
	f, err := createTemp(filepath.Dir(path))
	if err != nil {
		return err
	}
	const readOnly = 0o444
	return putInPlace(f, data, readOnly, path)
}

// putInPlace fills a file that was made for this, and gives it its name once
// all of it is on the disk. What fails leaves no file behind. Permissions of
// 0 stay as they are.
func putInPlace(f *os.File, data []byte, mode os.FileMode, path string) error {
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if mode != 0 {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// syncDir makes renames in a folder last.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
