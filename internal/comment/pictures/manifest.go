package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// manifestFile lists the comments that the pictures show, beside them.
const manifestFile = "comments.sha256"

// manifest lists the comments of a folder with the digests of their markdown,
// in the order of their names: a picture of a comment that has changed since is
// noticed without a browser.
func manifest(folder string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), filepath.Base(path))
	}
	return b.String(), nil
}
