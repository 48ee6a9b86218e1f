package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/gitopsd/gitopsd/schema"
)

//go:embed all:starter
var starterFiles embed.FS

// The parts of what gitopsd init writes.
const (
	partFleet  = "fleet"
	partEditor = "editor"
	partGitHub = "github"
	partGitLab = "gitlab"
)

func starterParts() []string { return []string{partFleet, partEditor, partGitHub, partGitLab} }

// defaultParts leaves out what only one forge in two can use.
func defaultParts() []string { return []string{partFleet, partEditor, partGitHub} }

// schemaFolder holds the schemas for editors, in a fleet repository. The
// starter's modelines and settings name it.
const schemaFolder = ".gitopsd/schemas"

// projectBranch is the branch of this project that the starter's pipelines name.
const projectBranch = "main"

// modeline begins the comment that names a document's schema to an editor.
const modeline = "# yaml-language-server:"

// starter is what gitopsd init writes, and where.
type starter struct {
	dir     string
	parts   []string
	version string // of this program
	// root is the git repository around dir, and prefix is dir from there; both
	// are empty where dir is a root itself, or in no repository.
	root, prefix string
}

// starterFile is one of the files.
type starterFile struct {
	path string // from dir, with slashes; it may lead up to the root
	data []byte
}

// check finds parts that there are not.
func (s *starter) check() error {
	if len(s.parts) == 0 {
		return withHint(usagef("--parts names no part"), "the parts are %s", strings.Join(starterParts(), ", "))
	}
	for _, p := range s.parts {
		if slices.Contains(starterParts(), p) {
			continue
		}
		err := usagef("there is no part %q", p)
		if near := nearest(p, starterParts()); near != "" {
			return withHint(err, "did you mean %s?", near)
		}
		return withHint(err, "the parts are %s", strings.Join(starterParts(), ", "))
	}
	return nil
}

// write writes the files, and lists them from dir.
func (s *starter) write() ([]string, error) {
	action := fmt.Errorf("cannot write a starter fleet repository into %s", s.dir)
	if isBare(s.dir) {
		return nil, withHint(fmt.Errorf("%w: it is a bare git repository", action),
			"write it into a clone: git clone %s fleet, then gitopsd init fleet", shellWord(s.dir))
	}
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	var paths, inTheWay []string
	for _, f := range files {
		paths = append(paths, f.path)
		if _, err := os.Lstat(s.place(f)); err == nil {
			inTheWay = append(inTheWay, f.path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", action, err)
		}
	}
	if len(inTheWay) > 0 {
		err := fmt.Errorf("%w: it has %s already, and nothing is overwritten", action, firstOf(inTheWay))
		return nil, withHint(err, "%s", s.wayOut(inTheWay))
	}
	for _, f := range files {
		if err := writeNew(s.place(f), f.data); err != nil {
			return nil, fmt.Errorf("%w: %w", action, err)
		}
	}
	return paths, nil
}

func (s *starter) place(f starterFile) string {
	return filepath.Join(s.dir, filepath.FromSlash(f.path))
}

// wayOut says what to do about files that are there already.
func (s *starter) wayOut(inTheWay []string) string {
	free := slices.DeleteFunc(slices.Clone(s.parts), func(part string) bool {
		return slices.ContainsFunc(inTheWay, func(p string) bool { return partOf(p) == part })
	})
	if len(free) > 0 {
		return fmt.Sprintf("leave out what is there: gitopsd init --parts %s %s", strings.Join(free, ","), shellWord(s.dir))
	}
	if !slices.Contains(s.parts, partFleet) {
		return "remove or rename them first"
	}
	return "name another folder: gitopsd init " + shellWord(freeName(s.dir))
}

// firstOf lists the first few of many paths.
func firstOf(paths []string) string {
	const few = 3 // a line of a terminal
	if len(paths) <= few {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:few], ", "), len(paths)-few)
}

// files are all files of the parts, sorted by path.
func (s *starter) files() ([]starterFile, error) {
	embedded, err := fs.Sub(starterFiles, "starter")
	if err != nil {
		return nil, err
	}
	var files []starterFile
	err = fs.WalkDir(embedded, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(s.parts, partOf(p)) {
			return err
		}
		data, err := fs.ReadFile(embedded, p)
		if err != nil {
			return err
		}
		f, err := s.fill(p, data)
		files = append(files, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	if slices.Contains(s.parts, partEditor) {
		for _, k := range fleetKinds() {
			data, err := schema.JSONSchema(k)
			if err != nil {
				return nil, err
			}
			files = append(files, starterFile{path: path.Join(schemaFolder, schemaFile(k)), data: data})
		}
	}
	slices.SortFunc(files, func(a, b starterFile) int { return strings.Compare(a.path, b.path) })
	return files, nil
}

// fleetKinds are the kinds that people write in a fleet repository.
func fleetKinds() []schema.Kind {
	return []schema.Kind{schema.KindPolicy, schema.KindRelease, schema.KindOverlay, schema.KindDevice, schema.KindFleet}
}

// partOf says which part a file belongs to.
func partOf(p string) string {
	for strings.HasPrefix(p, "../") {
		p = p[len("../"):]
	}
	switch top, _, _ := strings.Cut(p, "/"); top {
	case ".github":
		return partGitHub
	case ".gitlab-ci.yml":
		return partGitLab
	case ".vscode", ".gitopsd":
		return partEditor
	}
	return partFleet
}

// fill makes an embedded file fit where it is written.
func (s *starter) fill(p string, data []byte) (starterFile, error) {
	text := string(data)
	switch partOf(p) {
	case partGitHub, partGitLab:
		folder, err := json.Marshal(or(s.prefix, "."))
		if err != nil {
			return starterFile{}, err
		}
		text = strings.NewReplacer(
			`directory: "."`, "directory: "+string(folder),
			`FLEET_DIRECTORY: "."`, "FLEET_DIRECTORY: "+string(folder),
			"gitopsd/gitopsd@main", "gitopsd/gitopsd@"+s.published(),
			"gitopsd/gitopsd/main/", "gitopsd/gitopsd/"+s.published()+"/",
			`FLEET_GITOPSD_VERSION: "main"`, `FLEET_GITOPSD_VERSION: "`+s.published()+`"`,
		).Replace(text)
		// Forges read these only at the root of a repository.
		for range strings.FieldsFunc(s.prefix, func(c rune) bool { return c == '/' }) {
			p = "../" + p
		}
	case partFleet:
		if first, rest, found := strings.Cut(text, "\n"); found && strings.HasPrefix(first, modeline) && !slices.Contains(s.parts, partEditor) {
			text = rest // the schema that it names is not written
		}
	}
	return starterFile{path: p, data: []byte(text)}, nil
}

// published is what a pipeline can fetch that is nearest to this program: the
// tag that it was built from, or the branch where there is none.
func (s *starter) published() string {
	if v, err := semver.StrictNewVersion(strings.TrimPrefix(s.version, "v")); err == nil && v.Prerelease() == "" && v.Metadata() == "" {
		return s.version
	}
	return projectBranch
}

// repositoryAround finds the work tree of git that holds a folder, which need
// not exist yet, and the folder from there; nothing where the folder is the
// root itself, or in no repository.
func repositoryAround(dir string) (root, prefix string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	for at := abs; ; at = filepath.Dir(at) {
		if isWorkTree(at) {
			prefix, err := filepath.Rel(at, abs)
			if err != nil || prefix == "." {
				return "", ""
			}
			return at, filepath.ToSlash(prefix)
		}
		if at == filepath.Dir(at) {
			return "", ""
		}
	}
}

// freeName is a folder beside dir that does not exist.
func freeName(dir string) string {
	base := filepath.Clean(dir)
	if base == "." || base == string(filepath.Separator) {
		base = "fleet"
	}
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}

// writeNew writes a file where there is none.
func writeNew(to string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	// O_EXCL: also a file that appeared a moment ago is not overwritten.
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
