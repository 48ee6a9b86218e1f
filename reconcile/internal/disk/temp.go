package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"regexp"
	"syscall"
)

// TempPrefix begins the name of every temporary file and folder; sixteen hex
// digits follow. Such names are ours: [Root.Sweep] removes them.
const TempPrefix = ".gitopsd-tmp-"

var tempName = regexp.MustCompile(`^\.gitopsd-tmp-[0-9a-f]{16}$`)

// IsTemp says whether a file name is one of a temporary file.
func IsTemp(name string) bool { return tempName.MatchString(name) }

func tempBeside(p string) string {
	return path.Join(path.Dir(p), fmt.Sprintf("%s%016x", TempPrefix, rand.Uint64()))
}

// Sweep removes the temporary files and folders that a crash left in a folder,
// or, where p is none, beside p. Where there is no such folder it does nothing.
func (r *Root) Sweep(p string) error {
	real, err := r.walk(p, true)
	if err != nil {
		return err
	}
	info, err := r.root.Lstat(rel(real))
	if err != nil || !info.IsDir() {
		real = path.Dir(real)
	}
	entries, err := r.List(real)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !IsTemp(e.Name()) || !(e.Type().IsRegular() || e.IsDir()) {
			continue
		}
		// A folder of that name that is not empty is not ours.
		if err := r.Remove(path.Join(real, e.Name())); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}
