package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gitopsd/gitopsd/schema"
)

// loadFleet reads and checks the fleet repository in a folder.
func loadFleet(dir, ownVersion string) (*schema.Fleet, error) {
	const action = "cannot read the fleet repository"
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, withHint(fmt.Errorf("%s: there is no folder %s", action, dir), "gitopsd init %s makes a starter fleet repository there", dir)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", action, err)
	case !info.IsDir():
		return nil, withHint(fmt.Errorf("%s: %s is a file", action, dir), "name the folder that holds policies/, releases/ and devices/")
	}
	src, err := schema.DirSource(dir)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", action, dir, err)
	}
	loader := schema.Loader{OwnVersion: ownVersion}
	fleet, err := loader.Load(src)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", action, dir, err)
	}
	if fleet.Files == 0 && len(fleet.Problems) == 0 {
		return nil, noFleet(dir)
	}
	return fleet, nil
}

// noFleet is for a folder without a single document: nothing is wrong with
// it, but it is hardly what was meant.
func noFleet(dir string) error {
	err := fmt.Errorf("%s holds no fleet: no document below policies/, releases/, overlays/ or devices/", dir)
	abs, absErr := filepath.Abs(dir)
	if absErr == nil {
		for up := filepath.Dir(abs); up != filepath.Dir(up); up = filepath.Dir(up) {
			if info, statErr := os.Stat(filepath.Join(up, "policies")); statErr == nil && info.IsDir() {
				return withHint(err, "%s looks like one", up)
			}
		}
		if info, statErr := os.Stat(filepath.Join(abs, "HEAD")); statErr == nil && info.Mode().IsRegular() {
			return withHint(err, "this looks like a bare git repository: name a working tree, for example of git clone %s", dir)
		}
	}
	return withHint(err, "gitopsd init %s makes a starter fleet repository", dir)
}

// folder is the optional DIR argument.
func folder(args []string, at int) string {
	if len(args) > at {
		return args[at]
	}
	return "."
}
