package apps

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// fakeContainer is a container of compose, with the text of the file that it
// was made from.
type fakeContainer struct {
	text, state, status string
	exit, restarts      int
	name                string // "" = that of its service
	image               string // its id
	made                []string
	flaps               bool // podman starts it again before each look
}

func cloneProjects(all map[string]map[string]*fakeContainer) map[string]map[string]*fakeContainer {
	out := map[string]map[string]*fakeContainer{}
	for project, services := range all {
		out[project] = map[string]*fakeContainer{}
		for name, c := range services {
			same := *c
			out[project][name] = &same
		}
	}
	return out
}

func isFolder(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// projectOf is the project that a unit runs; "" = it runs none.
func projectOf(unit string) string {
	name, ok := strings.CutPrefix(strings.TrimSuffix(unit, ".service"), "compose-")
	if !ok {
		return ""
	}
	return name
}

// loadCompose reads the units of compose files, as systemd does.
func (w *world) loadCompose() error {
	w.idle = map[string]bool{}
	drops, _ := filepath.Glob(filepath.Join(w.dir, runUnitFolder, "compose-*.service.d/*"))
	for _, p := range drops {
		w.idle[strings.TrimSuffix(filepath.Base(filepath.Dir(p)), ".d")] = true
	}
	found, _ := filepath.Glob(filepath.Join(w.dir, unitFolder, "compose-*.service"))
	for _, p := range found {
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		w.loaded[filepath.Base(p)] = string(text)
	}
	return nil
}

func (w *world) composeText(project string) string {
	text, _ := os.ReadFile(filepath.Join(w.dir, schema.ComposeFolder(project), schema.ComposeFileName))
	return string(text)
}

// doCompose is what the unit of a project does. systemd does not know any more
// how to stop one whose file is gone.
func (w *world) doCompose(verb units.Verb, unit, project string, loaded bool) {
	text := w.composeText(project)
	switch {
	case w.idle[unit] && verb == units.Stop:
		delete(w.running, unit)
	case w.idle[unit]:
		w.running[unit] = text
	case verb == units.Stop:
		delete(w.running, unit)
		delete(w.failed, unit)
		if loaded {
			delete(w.projects, project)
		} else if len(w.projects[project]) > 0 {
			w.log = append(w.log, "killed with its containers: "+unit)
		}
	case verb == units.Start && w.running[unit] == "":
		delete(w.projects, project)
		w.running[unit] = text
		w.starts[unit]++
		w.up(project, text)
	case verb == units.TryReload:
		w.up(project, text)
	}
}

// up makes and starts what does not run, and ends well whatever came of it.
func (w *world) up(project, text string) {
	file, _ := schema.ReadCompose(project, []byte(text))
	if w.projects[project] == nil {
		w.projects[project] = map[string]*fakeContainer{}
	}
	made, needed := file.Shared(nil)
	if slices.ContainsFunc(needed, func(net string) bool { return !w.networks[net] }) {
		return // External network does not exists
	}
	for _, net := range made {
		w.networks[net] = true
	}
	for _, s := range file.Services {
		if c := w.projects[project][s.Name]; c != nil && c.state == "running" {
			continue
		}
		c := &fakeContainer{text: text, state: "running", status: "Up 2 seconds", image: w.images[s.Image], made: madeBy(project, text, &s)}
		switch {
		case strings.Contains(s.Image, w.broken):
			c.state, c.exit = "exited", 3
		case s.Ends:
			c.state = "exited"
		case strings.Contains(s.Image, "never"):
			c.state = "created"
		}
		c.flaps = strings.Contains(s.Image, "flapping")
		w.projects[project][s.Name] = c
	}
}

// uses says whether a container of compose is in a network.
func (w *world) uses(net string) bool {
	for project, services := range w.projects {
		for _, c := range services {
			file, _ := schema.ReadCompose(project, []byte(c.text))
			if made, needed := file.Shared(nil); slices.Contains(append(made, needed...), net) {
				return true
			}
		}
	}
	return false
}

// madeBy is the command that podman-compose makes a container with.
func madeBy(project, text string, s *schema.ComposeService) []string {
	return []string{
		"podman", "run", "--name=" + project + "_" + s.Name + "_1", "-d", "--requires=b,a",
		"--label", fmt.Sprintf("io.podman.compose.config-hash=%x", sha256.Sum256([]byte(text))),
		"--label", "com.docker.compose.project.working_dir=/opt/" + project + " of mine", "--label", "com.docker.compose.project.config_files=compose.yaml",
		"-e", "A=b c", s.Image,
	}
}

// ref is the image of a service.
func ref(text, name string) string {
	file, _ := schema.ReadCompose("shop", []byte(text))
	for _, s := range file.Services {
		if s.Name == name {
			return s.Image
		}
	}
	return "none"
}

// dryRun is what podman-compose tells of what it would do.
func dryRun(line string) string {
	_, at, _ := strings.Cut(line, "--file=")
	at, _, _ = strings.Cut(at, " ")
	project := filepath.Base(filepath.Dir(at))
	text, _ := os.ReadFile(at)
	file, _ := schema.ReadCompose(project, text)
	out := "INFO:podman_compose:true pod exists pod_" + project + "\n"
	for _, s := range file.Services {
		if s.Optional {
			continue
		}
		run := strings.Join(madeBy(project, string(text), &s), " ")
		run = strings.NewReplacer("podman run", "true run", "b,a", "a,b", "/opt/"+project+" of mine", filepath.Dir(at), "=compose.yaml", "="+at).Replace(run)
		out += "INFO:podman_compose:" + run + "\n"
	}
	return strings.TrimSpace(out)
}

// runCompose is podman-compose, and what podman does to projects.
func (w *world) runCompose(argv []string, line string) (out string, err error, mine bool) {
	_, project, filtered := strings.Cut(line, projectLabel)
	project, _, _ = strings.Cut(project, " ")
	switch {
	case strings.Contains(line, "--dry-run"):
		if w.mute {
			return "usage: podman-compose", exit(2, "usage: podman-compose"), true
		}
		return dryRun(line), nil, true
	case strings.HasPrefix(line, "podman container inspect"):
		project, service, _ := strings.Cut(strings.TrimPrefix(argv[len(argv)-1], "id-"), "-")
		c := w.projects[project][service]
		text, err := json.Marshal(c.made)
		return fmt.Sprintf("%s %s %s\n", c.image, ref(c.text, service), text), err, true
	case argv[0] == "podman-compose":
		for i, arg := range argv {
			if arg == "--file" {
				text, _ := os.ReadFile(argv[i+1])
				if strings.Contains(string(text), "refused") {
					return "", exit(1, "Traceback\n  File x\nRuntimeError: nothing in "+argv[i+1]), true
				}
			}
		}
		return "", nil, true
	case strings.Contains(line, " logs --tail"):
		if !strings.Contains(line, "2>&1") {
			return "", nil, true // it writes what the program wrote to its standard error there
		}
		if !strings.Contains(line, "--log-level=error") {
			return "nothing works here\ntime=\"2026-11-30T11:41:12Z\" level=warning msg=\"podman warns\"", nil, true
		}
		return "nothing works here", nil, true
	case argv[0] == "podman" && strings.Contains(line, " pod_"):
		return "", nil, true
	case !filtered || argv[0] != "podman":
		return "", nil, false
	}
	switch argv[1] {
	case "ps":
		for name, c := range w.projects[project] {
			if w.contents++; c.flaps && w.contents%max(w.flaps, 1) == 0 {
				c.restarts++
			}
			called := c.name
			if called == "" {
				called = project + "_" + name + "_1"
			}
			out += fmt.Sprintf("id-%s-%s|%s|%s||%s|%d|%d|%s\n", project, name, called, name, c.state, c.exit, c.restarts, c.status)
		}
		return out, nil, true
	case "network":
		for net := range w.networks {
			if strings.HasPrefix(net, project+"_") {
				out += net + "\n"
			}
		}
		return out, nil, true
	case "rm":
		if err := w.step(line); err != nil {
			return "", err, true
		}
		delete(w.projects, project)
		return "", nil, true
	}
	return "", nil, false
}

// composeSpec has applications of compose by name.
func composeSpec(texts map[string]string) *schema.Spec {
	spec := &schema.Spec{Applications: map[string]*schema.Application{}}
	for name, text := range texts {
		spec.Applications[name] = &schema.Application{Compose: &schema.Compose{Body: schema.Body{Content: &text}}}
	}
	return spec
}

// services is a compose file of services with these images.
func services(images ...string) string {
	text := "services:\n"
	for i, image := range images {
		text += fmt.Sprintf("  s%d: {image: \"%s\", restart: always}\n", i, image)
	}
	return text
}

// both has the applications of two specs.
func both(a, b *schema.Spec) *schema.Spec {
	spec := &schema.Spec{Applications: maps.Clone(a.Applications)}
	maps.Copy(spec.Applications, b.Applications)
	return spec
}

// projectsOf wants exactly the containers of a spec.
func (w *world) projectsOf(spec *schema.Spec) error {
	want := 0
	for name, app := range spec.Applications {
		if app.Compose == nil {
			continue
		}
		want++
		file, _ := schema.ReadCompose(name, []byte(*app.Compose.Content))
		if len(w.projects[name]) != len(file.Services) {
			return fmt.Errorf("the containers of %s are %v", name, w.projects[name])
		}
		for service, c := range w.projects[name] {
			if c.text != *app.Compose.Content {
				return fmt.Errorf("the container of %s in %s is of %q", service, name, c.text)
			}
		}
	}
	if len(w.projects) != want {
		return fmt.Errorf("the projects are %v, want %d of them", w.projects, want)
	}
	return nil
}
