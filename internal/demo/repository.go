package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

//go:embed all:moved
var moved embed.FS

const (
	sourceRef = "refs/heads/" + schema.DefaultBranch
	statusRef = "refs/heads/" + schema.DefaultStatusBranch
)

// fleetRepo is the bare repository in the demonstration's folder.
type fleetRepo struct {
	path  string
	git   *repo.Repo
	files map[string][]byte // the source branch as it stands
	later map[string][]byte // files of the example that the history has not reached yet
	head  string            // of the source branch
	// limits gives maxInFlight of the gateways by source commit, to hold the
	// status branch against.
	limits map[string]int
}

// newFleetRepo makes the repository, with nothing committed, from the
// example: what devices reach control with becomes this repository's own
// path, and releases that come later are set aside.
func newFleetRepo(dir string, example fs.FS) (*fleetRepo, error) {
	if err := repo.Init(dir, schema.DefaultBranch); err != nil {
		return nil, err
	}
	g, err := repo.Open(repo.Config{URL: dir, Author: repo.Author{Name: "an operator", Email: "operator@example.com"}})
	if err != nil {
		return nil, err
	}
	r := &fleetRepo{path: dir, git: g, files: map[string][]byte{}, later: map[string][]byte{}, limits: map[string]int{}}
	if err := fs.WalkDir(example, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(example, name)
		if err != nil {
			return err
		}
		if release, ok := releaseOf(name); ok && release != "v1.0.0" {
			r.later[name] = data
			return nil
		}
		r.files[name] = data
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the example: %w", err)
	}
	return r, r.edit("overlays/gateways.yaml", "    control: ", "    control: "+dir)
}

// releaseOf is the version of the gateways that a file belongs to.
func releaseOf(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, "releases/gateways/")
	if !ok {
		return "", false
	}
	first, _, _ := strings.Cut(rest, "/")
	return strings.TrimSuffix(first, ".yaml"), true
}

// edit replaces the one line of a file that begins with prefix.
func (r *fleetRepo) edit(name, prefix, line string) error {
	lines := strings.Split(string(r.files[name]), "\n")
	found := 0
	for i, l := range lines {
		if strings.HasPrefix(l, prefix) {
			lines[i], found = line, found+1
		}
	}
	if found != 1 {
		return fmt.Errorf("%s has %d lines that begin with %q, one was expected", name, found, prefix)
	}
	r.files[name] = []byte(strings.Join(lines, "\n"))
	return nil
}

// target writes the policy's two lines that the story changes.
func (r *fleetRepo) target(version string, maxInFlight int) error {
	const policy = "policies/gateways.yaml"
	if err := r.edit(policy, "  targetVersion: ", "  targetVersion: "+version); err != nil {
		return err
	}
	return r.edit(policy, "  maxInFlight: ", fmt.Sprintf("  maxInFlight: %d", maxInFlight))
}

// release puts a release of the example on the source branch.
func (r *fleetRepo) release(version string) {
	for name, data := range r.later {
		if v, _ := releaseOf(name); v == version {
			r.files[name] = data
		}
	}
}

// releaseMoved puts the first form of v1.2.0 on the source branch.
func (r *fleetRepo) releaseMoved() error {
	entries, err := moved.ReadDir("moved")
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := moved.ReadFile("moved/" + e.Name())
		if err != nil {
			return err
		}
		r.files["releases/gateways/v1.2.0/"+e.Name()] = data
	}
	return nil
}

// merge commits the files as they are now, as an operator's merged pull
// request would.
func (r *fleetRepo) merge(ctx context.Context, maxInFlight int, message string) error {
	changes := map[string]string{}
	for name, data := range r.files {
		blob, err := r.git.PutBlob(ctx, data)
		if err != nil {
			return err
		}
		changes[name] = blob
	}
	commit, err := r.git.Commit(ctx, r.head, changes, time.Now(), message)
	if err != nil {
		return fmt.Errorf("commit %q: %w", message, err)
	}
	r.limits[commit] = maxInFlight
	refused, err := r.git.Publish(ctx, map[string][2]string{sourceRef: {r.head, commit}}, nil)
	if err != nil {
		return fmt.Errorf("publish %q: %w", message, err)
	}
	if len(refused) > 0 {
		return fmt.Errorf("publish %q: refused: %v", message, refused)
	}
	r.head = commit
	return nil
}

// deviceFiles are the ids of the fleet's devices with their policies' label.
func (r *fleetRepo) deviceFiles() []string {
	var names []string
	for name := range r.files {
		if strings.HasPrefix(name, "devices/") && path.Ext(name) == ".yaml" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}
