package apps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// composeKind is the kind of a unit that runs a compose file.
const composeKind = "compose"

// unitFolder is where the unit files of compose files are.
const unitFolder = "/etc/systemd/system/"

const (
	// composeStart is how long podman-compose may take to start everything: the
	// images are there, what it waits for are services that others depend on.
	composeStart = 5 * time.Minute
	// composeLimit is for its look at a file, in seconds; an interpreter that
	// starts on a slow card takes ten.
	composeLimit = 60
	// projectLabel is what podman-compose gives to all that it makes.
	projectLabel = "label=io.podman.compose.project="
)

// composeUnit runs the project as a whole. It begins without containers of an
// earlier time, whatever ended that, and leaves none; volumes stay. What
// podman-compose says of how it went is not believed: it ends with 0 although a
// service did not start, which is why containers are looked at. Where podman
// leaves what watches a container in the unit's cgroup, systemd must not end
// that: a container that podman restarts would be there again each time.
const composeUnit = `# Written by gitopsd for the application %[1]s.
[Unit]
Description=Application %[1]s (compose)
After=network-online.target podman-restart.service
RequiresMountsFor=%[2]s /var/lib/containers

[Service]
Type=oneshot
RemainAfterExit=yes
KillMode=process
WorkingDirectory=-%[2]s
TimeoutStartSec=%[3]d
TimeoutStopSec=%[4]d
ExecStartPre=-%[5]s
ExecStartPre=-%[6]s
ExecStart=%[7]s up --detach --no-build
ExecReload=%[7]s up --detach --no-build
ExecStop=-%[7]s stop
ExecStopPost=-%[5]s
ExecStopPost=-%[6]s
`

// composeStop covers the longest time that a service may ask for to end in, in
// seconds, and removing it.
const composeStop = 11 * 60

// composeFiles are the files of an application of compose, by path.
func composeFiles(name string, app *schema.Application) map[string]*schema.File {
	compose, folder := app.Compose, schema.ComposeFolder(name)
	start := composeStart
	if h := app.Health; h != nil && h.Timeout != nil {
		start = max(start, time.Duration(*h.Timeout))
	}
	project := "podman-compose --project-name " + name + " --file " + folder + "/" + schema.ComposeFileName
	unit := fmt.Sprintf(composeUnit, name, folder, int(start.Seconds()), composeStop,
		"podman "+strings.Join(removeContainers(name), " "), "podman "+strings.Join(removePod(name), " "), project)
	boot := "# Written by gitopsd.\n[Unit]\nWants=" + schema.ComposeUnit(name) + "\n"
	files := map[string]*schema.File{
		folder + "/" + schema.ComposeFileName: {Content: compose.Content, ContentBase64: compose.ContentBase64, Payload: compose.Payload},
		unitFolder + schema.ComposeUnit(name): {Content: &unit},
		schema.ComposeBoot(name):              {Content: &boot},
	}
	if env := envOf(compose); env != nil { // which may be secret
		files[folder+"/"+schema.ComposeEnvName] = &schema.File{Content: env.Content, ContentBase64: env.ContentBase64, Payload: env.Payload, Mode: "0600"}
	}
	return files
}

func removeContainers(project string) []string {
	return []string{"rm", "--force", "--ignore", "--depend", "--volumes", "--filter", projectLabel + project}
}

// removePod: podman-compose puts the containers of a project into one.
func removePod(project string) []string {
	return []string{"pod", "rm", "--force", "--ignore", "pod_" + project}
}

// envOf is the content of the file of variables; nil = there is none.
func envOf(compose *schema.Compose) *schema.Content {
	if compose.EnvFile != nil || len(compose.Env) == 0 {
		return compose.EnvFile
	}
	text := string(schema.ComposeEnvFile(compose.Env))
	return &schema.Content{Content: &text}
}

// composeOf reads an application of compose.
func composeOf(name string, app *schema.Application, p Payloads) (*want, error) {
	if why := schema.ComposeProblem(name); why != "" {
		return nil, failure.Permanent(component, name, "%s", why)
	}
	w := &want{name: name, folder: schema.ComposeFolder(name), files: map[string][]byte{}, health: app.Health}
	c := app.Compose
	contents := map[string]*schema.Content{schema.ComposeFileName: {Content: c.Content, ContentBase64: c.ContentBase64, Payload: c.Payload}}
	if env := envOf(c); env != nil {
		contents[schema.ComposeEnvName] = env
	}
	sum := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(contents)) {
		data, err := content(contents[file], p)
		if err != nil {
			return w, within(err, name, file)
		}
		w.files[file] = data
		w.add(sum, file, data)
	}
	w.hash = hex.EncodeToString(sum.Sum(nil))
	file, slips := schema.ReadCompose(name, w.files[schema.ComposeFileName])
	if len(slips) > 0 {
		return w, failure.Permanent(component, name, "%s, line %d: %s", schema.ComposeFileName, slips[0].Line, slips[0].Message)
	}
	env := schema.ComposeEnv(w.files[schema.ComposeEnvName])
	w.images = file.Images(env)
	w.made, w.needed = file.Shared(env)
	u := unit{Name: schema.ComposeUnit(name), Kind: composeKind, Object: name}
	for _, s := range file.Services {
		u.Services = append(u.Services, service{Name: s.Name, Optional: s.Optional, Ends: s.Ends, Restarts: s.Restarts})
		u.Grace = max(u.Grace, int(s.Grace.Seconds()))
	}
	w.units = []unit{u}
	return w, nil
}

// service is one of a compose file, as its containers are judged.
type service struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"` // it may have no container
	Ends     bool   `json:"ends,omitempty"`     // it is done when it has ended well
	Restarts bool   `json:"restarts,omitempty"` // podman starts it again
}

// Compose says whether applications of compose files run on this device: where
// those of quadlets do, of which an older podman knows nothing, and it counts no
// restarts either; and with podman-compose.
func (c *Controller) Compose() bool {
	if !c.Quadlets() {
		return false
	}
	_, err := exec.LookPath("podman-compose")
	return err == nil
}

// dryCompose has podman-compose read a file as it would to run it: every one of
// its versions does that to list containers. What it refuses, no try can change.
func (c *Controller) dryCompose(ctx context.Context, w *want) error {
	_, host, err := c.compose(ctx, w, func(host string) []string {
		return []string{"podman-compose", "--project-name", w.name, "--file", path.Join(host, schema.ComposeFileName), "ps", "--quiet"}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *hooks.Exit
	switch {
	case err == nil:
	case errors.As(err, &exit) && !exit.Timeout:
		said := exit.Output[strings.LastIndexByte(strings.TrimSpace(exit.Output), '\n')+1:] // below where in the program it was
		f := failure.From(failure.Permanent(component, w.name, "podman-compose refuses the compose file"))
		f.Output = strings.ReplaceAll(strings.TrimSpace(said), host+"/", "")
		return f
	default:
		return failure.Retryable(component, w.name, "podman-compose: %w", err)
	}
	return nil
}

// compose runs podman-compose where the files of an application are put for it
// to read, in a folder of the host.
func (c *Controller) compose(ctx context.Context, w *want, argv func(host string) []string) (out, host string, err error) {
	dir := path.Join(c.State, "apps-check")
	if host, err = c.writeCheck(dir, []*want{w}); err != nil {
		return "", "", err
	}
	host = path.Join(host, w.name)
	out, err = c.Run(ctx, argv(host), host, nil, composeLimit, maxListed)
	if ctx.Err() == nil {
		if err := c.sweepCheck(dir); err != nil {
			c.Warn(err)
		}
	}
	return out, host, err
}

// removeProject removes what is left of a project in podman; volumes stay.
func (c *Controller) removeProject(ctx context.Context, project string, n *networks) error {
	for _, args := range [][]string{removeContainers(project), removePod(project)} {
		if _, err := c.podman(ctx, podmanLimit, args...); err != nil {
			return speaking(ctx, fmt.Errorf("what is left of %s: %s", project, said(err)))
		}
	}
	out, err := c.podman(ctx, podmanLimit, "network", "ls", "--quiet", "--filter", projectLabel+project)
	if err != nil {
		return speaking(ctx, fmt.Errorf("networks of %s: %s", project, said(err)))
	}
	for _, network := range strings.Fields(out) {
		if err := c.removeNetwork(ctx, network, n); err != nil {
			return err
		}
	}
	return nil
}

// endProject ends and removes the containers of a project, with the time to end
// in that its file asks for: the file may be another one by now, or gone. Then
// systemd knows nothing of [composeUnit] either, and kills what the unit has
// started: podman too, while it starts a container again and sets up a network,
// whose rules then stay and keep the port from whoever gets it next.
func (c *Controller) endProject(ctx context.Context, u *unit) error {
	args := removeContainers(u.Object)
	if u.Grace > 0 {
		args = append(args, "--time", fmt.Sprint(u.Grace))
	}
	_, err := c.podman(ctx, podmanLimit+u.Grace, args...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // it is done again when the unit has ended
		c.Warn(fmt.Errorf("containers of %s did not end by themselves: %s", u.Object, said(err)))
	}
	return nil
}
