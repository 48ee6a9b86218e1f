package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// LiveCompose is a compose file as a spec would have to write it.
type LiveCompose struct {
	File *LiveFile
	Env  *LiveFile // of its variables; nil = there is none
	// Runs: there are containers of a project of the application's name.
	Runs bool
}

// composeNames are what podman-compose looks for in a folder, in its order; it
// reads all that are there as one.
var composeNames = []string{
	"compose.yaml", "compose.yml", "compose.override.yaml", "compose.override.yml",
	"podman-compose.yaml", "podman-compose.yml",
	"docker-compose.yml", "docker-compose.yaml", "docker-compose.override.yml", "docker-compose.override.yaml",
	"container-compose.yml", "container-compose.yaml", "container-compose.override.yml", "container-compose.override.yaml",
}

// readCompose reads the compose file of an application. from is that file, or
// the folder that it is in; "" = where the containers of the project of that
// name say that they were made.
func (l *Live) readCompose(ctx context.Context, name, from string) (*LiveCompose, error) {
	if why := schema.ComposeProblem(name); why != "" {
		return nil, errors.New(why)
	}
	files, err := l.composed(ctx, name)
	c := &LiveCompose{Runs: err == nil}
	if from != "" && (err == nil || errors.Is(err, errNoProject)) {
		files, err = l.composeFiles(path.Clean(from))
	}
	switch {
	case err != nil:
		return nil, err
	case len(files) > 1:
		return nil, fmt.Errorf("it is made of several files, and a release has one: %s; make one of them, as podman-compose config prints it", strings.Join(files, ", "))
	}
	if c.File, err = l.File(files[0]); err != nil {
		return nil, err
	}
	if env := path.Join(path.Dir(files[0]), schema.ComposeEnvName); l.there(env) {
		if c.Env, err = l.File(env); err != nil {
			return nil, err
		}
	}
	_, slips := schema.ReadCompose(name, c.File.Data)
	var errs []error
	for _, s := range slips {
		errs = append(errs, fmt.Errorf("%s, line %d: %s; %s", c.File.Path, s.Line, s.Message, cmp.Or(s.Hint, "mend it before")))
	}
	return c, errors.Join(errs...)
}

// composeFiles are the compose files that a path stands for.
func (l *Live) composeFiles(at string) (files []string, err error) {
	if info, err := l.root.Lstat(at); err != nil || !info.IsDir() {
		return []string{at}, err
	}
	for _, name := range composeNames {
		if p := path.Join(at, name); l.there(p) {
			files = append(files, p)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no compose file", at)
	}
	return files, nil
}

const (
	// podmanLimit is for a list of containers on a slow device, in seconds.
	podmanLimit = 60
	// maxPodman bounds that list, in bytes.
	maxPodman = 1 << 20
)

// errNoProject: no container is of that project.
var errNoProject = errors.New("no container of podman-compose is of a project of that name; NAME=/PATH names its file or folder")

// composed are the files that the containers of a project were made of.
func (l *Live) composed(ctx context.Context, project string) (files []string, err error) {
	if path.Clean(l.root.Dir()) != "/" {
		return nil, errNoProject // podman tells of its own device
	}
	if _, err := exec.LookPath("podman"); err != nil {
		return nil, errNoProject
	}
	const labels = `{{index .Labels "com.docker.compose.project.working_dir"}}|{{index .Labels "com.docker.compose.project.config_files"}}`
	out, err := hooks.Output(ctx, []string{"podman", "ps", "--all", "--filter", "label=io.podman.compose.project=" + project, "--format", labels}, "/", nil, podmanLimit, maxPodman)
	if err != nil {
		return nil, fmt.Errorf("ask podman for the project %s: %w", project, err)
	}
	for line := range strings.Lines(out) {
		folder, list, ok := strings.Cut(strings.TrimSpace(line), "|")
		for file := range strings.SplitSeq(list, ",") {
			if file = strings.TrimSpace(file); !ok || file == "" {
				continue
			}
			if !path.IsAbs(file) { // to where somebody stood; the first is in the folder
				file = path.Join(folder, path.Base(file))
			}
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	if len(files) == 0 {
		return nil, errNoProject
	}
	return files, nil
}
