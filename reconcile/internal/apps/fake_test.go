package apps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// world is a device with the systemd and the podman that tests need: units
// made of quadlet files run with the text that they had when systemd read them.
type world struct {
	t        *testing.T
	dir      string
	loaded   map[string]string // unit → text of its file, as read last
	running  map[string]string // unit → text that it was started with
	failed   map[string]bool   // units that are in the state failed
	starting map[string]int    // units that start, as the device does, for so many looks more
	lacking  map[string]int    // units of which so many starts fail because of another unit
	flapping map[string]int    // restarts that come with each look
	flaps    int               // looks between restarts of a container of compose; 0 = 1
	looks    map[string]int
	starts   map[string]int
	registry map[string]string // reference → id
	images   map[string]string
	networks map[string]bool
	projects map[string]map[string]*fakeContainer // of compose, by service
	idle     map[string]bool                      // units of compose whose start and stop do nothing, as read last
	mute     bool                                 // podman-compose does not say what it would do
	left     map[string]string                    // unit → lines of its containers and their pods
	contains func(look int) string                // lines that podman shows of the containers of quadlets; nil = none
	contents int                                  // looks at them
	broken   string                               // text that makes a unit fail
	goes     string                               // the unit of a spec that goes before applications start
	offline  bool
	log      []string
	asked    []units.Starts // whose words were asked for
	now      time.Duration
	// step is asked before whatever changes something; an error is a crash.
	step func(what string) error
	// disk is asked before every operation that changes the disk.
	disk func(op, path string) error
}

var errCrash = errors.New("the agent was killed")

// folder is in memory: every step of a test waits for its disk.
func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "gitopsd-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, dir: folder(t), loaded: map[string]string{}, running: map[string]string{}, failed: map[string]bool{},
		flapping: map[string]int{}, looks: map[string]int{}, starts: map[string]int{}, networks: map[string]bool{}, left: map[string]string{},
		registry: map[string]string{}, images: map[string]string{}, broken: "BROKEN", projects: map[string]map[string]*fakeContainer{},
		starting: map[string]int{}, lacking: map[string]int{},
		step: func(string) error { return nil },
	}
}

// copy is another device that is the same.
func (w *world) copy() *world {
	c := *w
	c.dir = folder(w.t)
	if err := os.CopyFS(c.dir, os.DirFS(w.dir)); err != nil {
		w.t.Fatal(err)
	}
	c.loaded, c.running, c.failed = maps.Clone(w.loaded), maps.Clone(w.running), maps.Clone(w.failed)
	c.starting = maps.Clone(w.starting)
	c.looks, c.starts, c.images, c.networks = maps.Clone(w.looks), maps.Clone(w.starts), maps.Clone(w.images), maps.Clone(w.networks)
	c.projects = cloneProjects(w.projects)
	return &c
}

// agent is a process: it remembers nothing of an earlier one.
type agent struct {
	*Controller
	w     *world
	files *files.Controller
	root  *disk.Root
}

func (w *world) agent() *agent {
	w.t.Helper()
	root, err := disk.Open(w.dir, disk.Options{Step: func(op, p string) error {
		if w.disk != nil {
			return w.disk(op, p)
		}
		if strings.Contains(p, "apps-check") {
			return nil // what the generator reads is made anew each time
		}
		return w.step("disk " + op + " " + filepath.Base(p))
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { root.Close() })
	a := &agent{w: w, root: root}
	a.files, err = files.New(files.Config{Root: root, State: "/var/lib/gitopsd"})
	if err != nil {
		w.t.Fatal(err)
	}
	a.Controller, err = New(Config{
		Root: root, State: "/var/lib/gitopsd", Run: w.run, Generator: "generator",
		Warn:    func(err error) { w.t.Logf("warning: %v", err) },
		Made:    a.files.Made,
		Goes:    func(unit string) bool { return w.goes == unit },
		Connect: func(context.Context) (units.Manager, error) { return &manager{w: w}, nil },
		Uptime:  func() time.Duration { return w.now },
		Wait:    func(_ context.Context, d time.Duration) error { w.now += d; return nil },
		Journal: func(_ context.Context, of units.Starts) string {
			w.asked = append(w.asked, of)
			return "said by " + strings.Join(of.Units, " and ")
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// whole is what the files controller is given.
func whole(spec *schema.Spec) *schema.Spec {
	out := *spec
	out.Files = Files(spec)
	maps.Copy(out.Files, spec.Files)
	return &out
}

// update does what an update does; health is judged too.
func (a *agent) update(spec *schema.Spec) error {
	ctx := context.Background()
	if err := a.Prefetch(ctx, spec, nil); err != nil {
		return err
	}
	if err := a.Check(ctx, spec, nil); err != nil {
		return err
	}
	if err := a.carry(spec); err != nil {
		return err
	}
	if err := a.Healthy(ctx, spec); err != nil {
		return err
	}
	return a.Settle(ctx, spec, nil)
}

// rollBack does what a rollback does: it goes past every error.
func (a *agent) rollBack(spec *schema.Spec) error {
	ctx := context.Background()
	errs := []error{a.Prepare(ctx, spec, nil, a.files.Ahead(whole(spec), nil))}
	way := Back
	_, err := a.files.Apply(ctx, whole(spec), nil, files.Back)
	if errs = append(errs, err); err != nil {
		way = BackInPart
	}
	if err = a.Switch(ctx, spec, nil, way); err == nil {
		err = a.Started(ctx, spec)
	}
	return errors.Join(append(errs, err)...)
}

func (a *agent) carry(spec *schema.Spec) error {
	ctx := context.Background()
	drift, err := a.files.Drift(whole(spec), nil)
	if err != nil {
		return err
	}
	if err := a.Prepare(ctx, spec, nil, drift); err != nil {
		return err
	}
	if _, err := a.files.Apply(ctx, whole(spec), nil, files.Onward); err != nil {
		return err
	}
	return a.Switch(ctx, spec, nil, Onward)
}

func exit(code int, out string) error { return &hooks.Exit{Program: "fake", Code: code, Output: out} }

// run is the generator, podman and the checks.
func (w *world) run(_ context.Context, argv []string, _ string, env []string, _, _ int) (string, error) {
	if argv[0] == "generator" {
		return generatorOf(strings.TrimPrefix(env[0], "QUADLET_UNIT_DIRS="))
	}
	line := strings.Join(argv, " ")
	w.log = append(w.log, line)
	if out, err, mine := w.runCompose(argv, line); mine {
		return out, err
	}
	if argv[0] != "podman" {
		if argv[0] == "good" {
			return "", nil
		}
		return "", exit(1, "not well")
	}
	last := argv[len(argv)-1]
	switch argv[1] {
	case "image":
		if argv[2] == "inspect" {
			for ref, id := range w.images {
				if ref == last || id == last {
					return id + "\n", nil
				}
			}
			return "", exit(125, "no such image")
		}
		if err := w.step(line); err != nil {
			return "", err
		}
		for ref, id := range w.images {
			if id == last {
				delete(w.images, ref)
			}
		}
		return "", nil
	case "pull":
		if err := w.step(line); err != nil {
			return "", err
		}
		id := w.registry[last]
		if id == "" || w.offline {
			return "", exit(125, "pinging container registry: connection refused")
		}
		if old := w.images[last]; old != "" && old != id {
			w.images["<none>"+old] = old
		}
		w.images[last] = id
		return "trying…\n" + id + "\n", nil
	case "tag":
		for _, id := range w.images {
			if id == argv[2] {
				w.images[last] = id
				return "", nil
			}
		}
		return "", exit(125, "no such image")
	case "network":
		if argv[2] == "exists" {
			if !w.networks[last] {
				return "", exit(1, "")
			}
			return "", nil
		}
		if err := w.step(line); err != nil {
			return "", err
		}
		if w.uses(last) {
			return "", exit(2, "network is being used")
		}
		delete(w.networks, last)
	case "ps":
		if last == listed {
			w.contents++
			if w.contains == nil {
				return "", nil
			}
			return w.contains(w.contents), nil
		}
		return w.left[strings.TrimPrefix(last, "label=PODMAN_SYSTEMD_UNIT=")], nil
	case "pod":
		if argv[2] == "stop" {
			return "", w.step(line)
		}
		for unit, lines := range w.left {
			w.left[unit] = strings.ReplaceAll(lines, " "+last, "")
		}
	case "rm":
		for unit, lines := range w.left {
			if strings.Contains(lines, " ") {
				return "", exit(2, "is the service container of a pod and cannot be removed without removing the pod(s)")
			}
			if strings.Contains(lines, argv[5]) {
				delete(w.left, unit)
			}
		}
	default:
		return "", fmt.Errorf("podman %s is not faked", line)
	}
	return "", nil
}

// generatorOf makes of quadlet files what podman's generator shows of them.
func generatorOf(dir string) (string, error) {
	var out, refused strings.Builder
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		return "", err
	}
	for _, p := range found {
		if strings.HasSuffix(p, ".d") {
			continue
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(text), "Nonsense=") {
			fmt.Fprintf(&refused, "converting %q: unsupported key 'Nonsense' in group 'Container' in %s\n", filepath.Base(p), p)
			continue
		}
		name := filepath.Base(p)
		kind := filepath.Ext(name)
		stem := strings.TrimSuffix(name, kind)
		switch kind {
		case ".container", ".kube":
			fmt.Fprintf(&out, "---%s---\n[X-Container]\nType=oneshot\n%s\n[Unit]\nSourcePath=%s\n[Service]\nExecStart=podman run\n", schema.QuadletUnit(name, text), text, p)
		case ".network":
			fmt.Fprintf(&out, "---%s-network.service---\n[Unit]\nSourcePath=%s\n[Service]\nType=oneshot\nExecStart=/usr/bin/podman network create --ignore systemd-%s\n", stem, p, stem)
		default:
			return "", fmt.Errorf("%s is not faked", p)
		}
	}
	if refused.Len() > 0 { // which it tells behind what it makes of the others
		return out.String(), exit(1, "[Service]\nExecStart=cut\nquadlet-generator[7]: Loading source unit file "+found[0]+"\n"+out.String()+"quadlet-generator[7]: "+refused.String())
	}
	return out.String(), nil
}

// specOf has applications by name, each with the text of its files by name.
func specOf(apps map[string]map[string]string) *schema.Spec {
	spec := &schema.Spec{Applications: map[string]*schema.Application{}}
	for name, files := range apps {
		app := &schema.Application{Quadlet: map[string]*schema.Content{}}
		for file, text := range files {
			app.Quadlet[file] = &schema.Content{Content: &text}
		}
		spec.Applications[name] = app
	}
	return spec
}

func container(image, more string) string {
	return "[Container]\nImage=" + image + "\nEnvironment=" + more + "\n"
}

// runs wants exactly these units to run, with the text of their files.
func (w *world) runs(spec *schema.Spec) error {
	want := map[string]string{}
	nets := map[string]bool{}
	for name, app := range spec.Applications {
		if app.Compose != nil {
			want[schema.ComposeUnit(name)] = *app.Compose.Content
			file, _ := schema.ReadCompose(name, []byte(*app.Compose.Content))
			made, needed := file.Shared(nil)
			for _, net := range append(made, needed...) {
				nets[net] = true
			}
		}
		for _, file := range slices.Sorted(maps.Keys(app.Quadlet)) { // drop-ins come after what they are for
			c := app.Quadlet[file]
			if stem, ok := strings.CutSuffix(file, ".network"); ok {
				want[stem+"-network.service"], nets["systemd-"+stem] = *c.Content, true
				continue
			}
			of, _ := schema.QuadletOf(file)
			want[strings.TrimSuffix(of, ".container")+".service"] += *c.Content
		}
	}
	if !equal(want, w.running) {
		return fmt.Errorf("what runs is %q, want %q", w.running, want)
	}
	if !equal(nets, w.networks) {
		return fmt.Errorf("the networks are %v, want %v", w.networks, nets)
	}
	if len(w.failed) > 0 {
		return fmt.Errorf("failed units stay: %v", w.failed)
	}
	if err := w.projectsOf(spec); err != nil {
		return err
	}
	got := w.quadlets()
	for _, pattern := range []string{"etc/containers/compose/*/*", "etc/containers/systemd/*/*.d/*", "etc/systemd/system/*", "etc/systemd/system/*/*"} {
		found, _ := filepath.Glob(filepath.Join(w.dir, pattern))
		got = append(got, slices.DeleteFunc(found, isFolder)...)
	}
	var files []string
	for p := range Files(spec) {
		files = append(files, filepath.Join(w.dir, p))
	}
	slices.Sort(files)
	slices.Sort(got)
	if !slices.Equal(got, files) {
		return fmt.Errorf("the files are %q, want %q", got, files)
	}
	return nil
}

func equal[V comparable](a, b map[string]V) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}
