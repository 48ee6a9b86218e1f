package apps

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// composed is a container of a project of compose, as podman shows it.
type composed struct {
	id, name string
	service  string
	state    string // podman's word
	health   string // of its own check: healthy, unhealthy, starting, or ""
	exit     int
	restarts int // by podman, since it was made
}

// listed is what podman is asked to show of a container; the status, which is
// in a person's words, comes last.
const listed = `{{.ID}}|{{.Names}}|{{index .Labels "com.docker.compose.service"}}|{{.State}}|{{.ExitCode}}|{{.Restarts}}|{{.Status}}`

// containers lists those of a project.
func (c *Controller) containers(ctx context.Context, project string) ([]composed, error) {
	out, err := c.podman(ctx, podmanLimit, "ps", "--all", "--no-trunc", "--filter", projectLabel+project, "--format", listed)
	if err != nil {
		return nil, speaking(ctx, fmt.Errorf("containers of %s: %s", project, said(err)))
	}
	var all []composed
	for line := range strings.Lines(out) {
		const fields = 7
		f := strings.SplitN(strings.TrimSpace(line), "|", fields)
		if len(f) < fields {
			continue
		}
		one := composed{id: f[0], name: f[1], service: f[2], state: strings.ToLower(f[3])}
		one.exit, _ = strconv.Atoi(f[4])
		one.restarts, _ = strconv.Atoi(f[5])
		for _, h := range []string{"unhealthy", "healthy", "starting"} {
			if strings.Contains(f[6], "("+h) {
				one.health = h
				break
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// trouble is why a container is not as its service wants it.
type trouble struct {
	container string // its name; "" = there is none
	why       string
	over      bool // it has ended, and nothing starts it again
	unwell    bool // it runs, and its own check is not content
}

// troubles are those of the containers of a project, those that are over first.
func (u *unit) troubles(all []composed) []trouble {
	var found []trouble
	there := map[string]bool{}
	for _, c := range all {
		there[c.service] = true
		var s service
		if i := slices.IndexFunc(u.Services, func(s service) bool { return s.Name == c.service }); i >= 0 {
			s = u.Services[i]
		}
		ended := c.state == "exited" || c.state == "stopped"
		switch {
		case c.state == "running" && (c.health == "" || c.health == "healthy"):
		case c.state == "running":
			found = append(found, trouble{container: c.name, why: fmt.Sprintf("the container %s is %s", c.name, c.health), unwell: true})
		case ended && c.exit == 0 && s.Ends:
		case ended:
			found = append(found, trouble{container: c.name, why: fmt.Sprintf("the container %s has ended with %d", c.name, c.exit), over: !s.Restarts})
		default:
			found = append(found, trouble{container: c.name, why: fmt.Sprintf("the container %s is %s", c.name, c.state)})
		}
	}
	for _, s := range u.Services {
		if !s.Optional && !there[s.Name] {
			found = append(found, trouble{why: fmt.Sprintf("the service %s has no container", s.Name)})
		}
	}
	slices.SortStableFunc(found, func(a, b trouble) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[a.over] - rank[b.over]
	})
	return found
}

// askContainers is the part of [Controller.ask] for a unit of compose, which
// runs: podman starts containers again without it.
func (c *Controller) askContainers(ctx context.Context, p *patient, u *unit) (why string, hopeless bool, err error) {
	all, err := c.containers(ctx, u.Object)
	if err != nil {
		return "", false, err
	}
	restarted := ""
	for _, one := range all {
		before, known := p.restarts[one.id]
		p.restarts[one.id] = one.restarts
		if known && one.restarts > before {
			restarted, p.sick, p.sickContainer = fmt.Sprintf("the container %s was restarted, %d times so far", one.name, one.restarts), u.Name, one.name
			p.restarted = restarted
		}
	}
	if restarted != "" {
		return restarted, false, nil
	}
	if found := u.troubles(all); len(found) > 0 {
		p.sick, p.sickContainer = u.Name, found[0].container
		return found[0].why, found[0].over, nil
	}
	return "", false, nil
}

// words are the end of what a container has written.
func (c *Controller) words(ctx context.Context, name string) string {
	const lines = "20"
	out, err := c.podman(ctx, podmanLimit, "logs", "--tail", lines, name)
	if err != nil {
		return said(err)
	}
	return out
}

// raise has podman-compose start what does not run of a project whose unit is
// active: starting that would do nothing.
func (c *Controller) raise(ctx context.Context, m units.Manager, list []unit) error {
	for _, u := range list {
		if u.Kind != composeKind {
			continue
		}
		states, err := m.States(ctx, u.Name)
		if err != nil {
			return speaking(ctx, err)
		}
		if !states[0].Running() {
			continue
		}
		if err := begun(ctx, m.Do(ctx, units.Job{Verb: units.TryReload, Unit: u.Name})); err != nil {
			return err
		}
	}
	return nil
}
