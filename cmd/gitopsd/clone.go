package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// originOf is the address that a work tree was cloned from; "" where it is no
// work tree, or has no origin. local is the repository at url, opened.
func originOf(url string, local *repo.Repo) string {
	if !isWorkTree(url) || local.Path() == "" {
		return ""
	}
	folder := local.Path()
	if common, err := os.ReadFile(filepath.Join(folder, "commondir")); err == nil { // a linked work tree
		if at := strings.TrimSpace(string(common)); filepath.IsAbs(at) {
			folder = at
		} else {
			folder = filepath.Join(folder, at)
		}
	}
	origin := configuredOrigin(filepath.Join(folder, "config"))
	if isFolder(filepath.Join(url, origin)) && origin != "" && !filepath.IsAbs(origin) {
		return filepath.Join(url, origin) // git means it from the work tree
	}
	return origin
}

// onlyAClone is for a work tree without a status branch that was cloned from
// somewhere: what daemons wrote is there, and what is written here nobody
// sees.
func onlyAClone(spec schema.ServeSpec, local *repo.Repo, statusBranch string) error {
	origin := originOf(spec.Repo.URL, local)
	if origin == "" {
		return nil
	}
	return withHint(fmt.Errorf("%s is a clone to work in, without a branch %s: that is where the daemon has it", redact(spec.Repo.URL), statusBranch),
		"the fleet repository is what it was cloned from: --repo %s", shellWord(redact(origin)))
}

// configuredOrigin reads the address of origin from a configuration of git, as
// git itself writes it.
func configuredOrigin(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			inside = line == `[remote "origin"]`
			continue
		}
		if key, value, ok := strings.Cut(line, "="); inside && ok && strings.TrimSpace(key) == "url" {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
