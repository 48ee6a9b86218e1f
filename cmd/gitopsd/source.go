package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// loadFleet reads and checks the fleet repository in a folder.
func loadFleet(dir, ownVersion string) (*schema.Fleet, error) {
	src, err := dirSource(dir)
	if err != nil {
		return nil, err
	}
	loader := schema.Loader{OwnVersion: ownVersion}
	fleet, err := loader.Load(src)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cannotReadFleet, dir, err)
	}
	if !looksLikeFleet(src, fleet) {
		return nil, noFleet(dir)
	}
	return fleet, nil
}

const cannotReadFleet = "cannot read the fleet repository"

// dirSource reads a folder, with words for what may be wrong with it.
func dirSource(dir string) (schema.Source, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, withHint(fmt.Errorf("%s: there is no folder %s", cannotReadFleet, dir), "gitopsd init %s makes a starter fleet repository there", shellWord(dir))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", cannotReadFleet, err)
	case !info.IsDir():
		return nil, withHint(fmt.Errorf("%s: %s is a file", cannotReadFleet, dir), "name the folder that holds policies/, releases/ and devices/")
	}
	src, err := schema.DirSource(dir)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cannotReadFleet, dir, err)
	}
	return src, nil
}

// looksLikeFleet says whether a folder is one, however wrong what it holds:
// a file names this program, or the folders are those of a fleet. Where only a
// devices/ of something else is, every file in it would be a problem.
func looksLikeFleet(src schema.Source, fleet *schema.Fleet) bool {
	if fleet.Files == 0 && len(fleet.Problems) == 0 {
		return false
	}
	if fleet.Valid() {
		return true
	}
	entries, err := src.Entries()
	if err != nil {
		return true
	}
	folders := map[string]bool{}
	for _, e := range entries {
		top, _, nested := strings.Cut(e.Path, "/")
		if !nested || !isYAML(e.Path) || !slices.Contains([]string{"policies", "releases", "overlays", "devices"}, top) {
			continue
		}
		folders[top] = true
		const limit = 1 << 20 // far above any document that validates
		if data, err := src.Read(e, limit); err == nil && bytes.Contains(data, []byte("gitopsd")) {
			return true
		}
	}
	return folders["policies"] && folders["releases"]
}

func isYAML(path string) bool {
	return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")
}

// noFleet is for a folder without a single document: nothing is wrong with
// it, but it is hardly what was meant.
func noFleet(dir string) error {
	err := fmt.Errorf("%s does not look like a fleet repository: it holds no document of %s below policies/, releases/, overlays/ or devices/", dir, schema.APIVersion)
	if inside, globErr := filepath.Glob(filepath.Join(dir, "*", "policies")); globErr == nil && len(inside) > 0 {
		return withHint(err, "%s looks like one", filepath.Dir(inside[0]))
	}
	abs, absErr := filepath.Abs(dir)
	if absErr == nil {
		for up := filepath.Dir(abs); up != filepath.Dir(up); up = filepath.Dir(up) {
			if info, statErr := os.Stat(filepath.Join(up, "policies")); statErr == nil && info.IsDir() {
				return withHint(err, "%s looks like one", up)
			}
		}
		if info, statErr := os.Stat(filepath.Join(abs, "HEAD")); statErr == nil && info.Mode().IsRegular() {
			return withHint(err, "this looks like a bare git repository: name a working tree, for example of git clone %s", shellWord(dir))
		}
	}
	return withHint(err, "gitopsd init %s makes a starter fleet repository", shellWord(dir))
}

// listedOnce is a source that is listed once.
type listedOnce struct {
	schema.Source
	entries []schema.Entry
	listed  bool
}

// Entries lists the source.
func (l *listedOnce) Entries() ([]schema.Entry, error) {
	if l.listed {
		return l.entries, nil
	}
	entries, err := l.Source.Entries()
	if err != nil {
		return nil, err
	}
	l.entries, l.listed = entries, true
	return entries, nil
}

// folder is the optional DIR argument.
func folder(args []string, at int) string {
	if len(args) > at {
		return args[at]
	}
	return "."
}
