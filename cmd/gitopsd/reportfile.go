package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// reportPath is where a file is, whatever it is called, if a report can be
// put there.
func reportPath(file string) (string, error) {
	real, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if link := linkOfWorkTree(real); link != "" {
		return "", withHint(fmt.Errorf("%s is a symlink in a git working tree, and whoever wrote that may have chosen where it leads", link), "name the file that is meant, or remove the symlink")
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(real))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", withHint(fmt.Errorf("there is no folder %s", filepath.Dir(file)), "mkdir -p %s makes it", shellWord(filepath.Dir(file)))
	case err != nil:
		return "", err
	}
	real = filepath.Join(folder, filepath.Base(real))
	if there, err := filepath.EvalSymlinks(real); err == nil {
		real = there
	}
	switch info, err := os.Stat(real); {
	case errors.Is(err, fs.ErrNotExist):
		return real, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "", withHint(errors.New("it is a folder"), "name a file in it")
	}
	return real, nil
}

// linkOfWorkTree is the symlink of a git working tree that a path leads through;
// "" = none. It may be of a stranger's pull request, and lead to any file of
// this machine.
func linkOfWorkTree(path string) string {
	var link string
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if isWorkTree(at) {
			return link
		}
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			link = at
		}
	}
	return ""
}

// reportMode lets the programs of other users read reports, as far as the
// umask has nothing against it.
const reportMode = 0o644

// replaceFile writes a report whole, or leaves what is there. What is no file,
// such as a pipe or /dev/null, is written to, and not replaced.
func replaceFile(file string, data []byte) error {
	path, err := reportPath(file)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Close())
	}
	return renameio.WriteFile(path, data, reportMode, renameio.WithTempDir(filepath.Dir(path)))
}
