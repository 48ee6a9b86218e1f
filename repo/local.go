package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// localDir is a repository on this machine.
type localDir struct {
	dir    string // where refs and objects are
	own    string // where HEAD is: dir, or that of a linked work tree
	bare   bool
	shared bool // core.sharedRepository: what is written is for the group too
}

// openLocal finds the repository at a path: a bare one, the .git of a work
// tree, or what the .git file of a linked work tree or submodule points to.
func openLocal(path string) (localDir, error) {
	fi, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return localDir{}, fail(kindAuth, "%w", err).hint("check who may read that folder")
		}
		return localDir{}, fail(kindNotFound, "%w", err).hint("check the path; `git init --bare` makes a repository")
	}
	if !fi.IsDir() {
		return localDir{}, fail(kindNotFound, "%s is no folder", path)
	}
	dir := path
	own := dir
	if !looksLikeRepo(dir) {
		dir = filepath.Join(path, ".git")
		if fi, err := os.Stat(dir); err == nil && fi.Mode().IsRegular() {
			if dir, err = followGitFile(dir); err != nil {
				return localDir{}, err
			}
		}
		own = dir
		dir = commonDir(dir)
		if !looksLikeRepo(dir) {
			return localDir{}, fail(kindNotFound, "%s is no git repository", path).
				hint("`git init --bare` makes one")
		}
	}
	return checkConfig(localDir{dir: dir, own: own, bare: true})
}

func looksLikeRepo(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	for _, sub := range []string{"objects", "refs"} {
		if fi, err := os.Stat(filepath.Join(dir, sub)); err != nil || !fi.IsDir() {
			return false
		}
	}
	return true
}

func followGitFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if !ok {
		return "", fail(kindNotFound, "%s does not name a repository", path)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	return target, nil
}

// commonDir is where a linked work tree shares refs and objects.
func commonDir(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "commondir"))
	if err != nil {
		return dir
	}
	c := strings.TrimSpace(string(b))
	if !filepath.IsAbs(c) {
		c = filepath.Join(dir, c)
	}
	return c
}

// checkConfig refuses formats that would be read wrongly.
func checkConfig(l localDir) (localDir, error) {
	f, err := os.Open(filepath.Join(l.dir, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, fail(kindAuth, "%w", err).hint("check who may read that folder")
	}
	defer f.Close()
	cfg := config.New()
	if err := config.NewDecoder(f).Decode(cfg); err != nil {
		return l, fail(kindCorrupt, "%s cannot be read: %w", f.Name(), err)
	}
	if v := cfg.Section("core").Option("bare"); v != "" {
		l.bare = strings.EqualFold(v, "true") || v == "1" || strings.EqualFold(v, "yes") || strings.EqualFold(v, "on")
	}
	switch strings.ToLower(cfg.Section("core").Option("sharedRepository")) {
	case "", "umask", "false", "0":
	default:
		l.shared = true
	}
	ext := cfg.Section("extensions")
	if v := ext.Option("objectFormat"); v != "" && v != "sha1" {
		return l, fail(kindRefused, "the objects of %s are named by %s", l.dir, sanitize(v, 20)).
			hint("only repositories with sha1 objects are supported")
	}
	if v := ext.Option("refStorage"); v != "" && v != "files" {
		return l, fail(kindRefused, "the refs of %s are stored as %s", l.dir, sanitize(v, 20)).
			hint("`git refs migrate --ref-format=files` makes it readable")
	}
	return l, nil
}

// forGroup opens a new file or folder to the group, where the repository is
// shared: several users may run daemon and agents on one.
func forGroup(shared bool, path string) error {
	if !shared {
		return nil
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	mode := fi.Mode().Perm() | 0o060
	if fi.IsDir() {
		mode = fi.Mode().Perm() | 0o070 | os.ModeSetgid
	}
	if fi.Mode().Perm()&0o200 == 0 {
		mode &^= 0o020
	}
	return os.Chmod(path, mode)
}

// checkedOut tells whether a work tree has the branch checked out: moving it
// under its feet would look like local changes that undo everything.
func (l localDir) checkedOut(ref string) bool {
	if !l.bare {
		if head, _ := (localRefs{dir: l.dir}).head(); head == ref {
			return true
		}
	}
	linked, _ := filepath.Glob(filepath.Join(l.dir, "worktrees", "*"))
	for _, w := range linked {
		if head, _ := (localRefs{dir: w}).head(); head == ref {
			return true
		}
	}
	return false
}

// Init makes an empty bare repository with HEAD on the branch, as `git init
// --bare` does. A folder that exists has to be empty.
func Init(path, branch string) error {
	ref := "refs/heads/" + branch
	if err := validRef(ref); err != nil {
		return wrap("init", path, "", err)
	}
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		return wrap("init", path, "", fail(kindRefused, "the folder is not empty").hint("name a new or an empty folder"))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return wrap("init", path, "", err)
	}
	return wrap("init", path, "", initBare(path, ref))
}

const bareConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"

func initBare(path, headRef string) error {
	for _, d := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(path, filepath.FromSlash(d)), 0o777); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(path, "config"), []byte(bareConfig), 0o666); err != nil {
		return err
	}
	// HEAD comes last: without it the folder is no repository yet.
	return os.WriteFile(filepath.Join(path, "HEAD"), []byte("ref: "+headRef+"\n"), 0o666)
}
