package apps

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// shown is a container as podman shows it.
type shown struct {
	id, name string
	service  string // of its compose file
	unit     string // that keeps it
	state    string // podman's word
	health   string // of its own check: healthy, unhealthy, starting, or ""
	exit     int
	restarts int // by podman, since it was made
}

// listed is what podman is asked to show of a container; the status, which is
// in a person's words, comes last.
const listed = `{{.ID}}|{{.Names}}|{{index .Labels "com.docker.compose.service"}}|{{index .Labels "PODMAN_SYSTEMD_UNIT"}}|{{.State}}|{{.ExitCode}}|{{.Restarts}}|{{.Status}}`

// containers lists those that have a label.
func (c *Controller) containers(ctx context.Context, label string) ([]shown, error) {
	out, err := c.podman(ctx, podmanLimit, "ps", "--all", "--no-trunc", "--filter", label, "--format", listed)
	if err != nil {
		return nil, speaking(ctx, fmt.Errorf("containers with the %s: %s", label, said(err)))
	}
	var all []shown
	for line := range strings.Lines(out) {
		const fields = 8
		f := strings.SplitN(strings.TrimSpace(line), "|", fields)
		if len(f) < fields {
			continue
		}
		one := shown{id: f[0], name: f[1], service: f[2], unit: f[3], state: strings.ToLower(f[4])}
		one.exit, _ = strconv.Atoi(f[5])
		one.restarts, _ = strconv.Atoi(f[6])
		for _, h := range []string{"unhealthy", "healthy", "starting"} {
			if strings.Contains(f[7], "("+h) {
				one.health = h
				break
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// trouble is why a container is not as it is wanted.
type trouble struct {
	container string // its name; "" = there is none
	unit      string // that keeps it
	why       string
	over      bool // it has ended, and nothing starts it again
	unwell    bool // its unit runs, and starting that would change nothing
}

// wrong says what is wrong with a container, but for one that has ended.
func (c *shown) wrong() string {
	switch {
	case c.state != "running":
		return fmt.Sprintf("the container %s is %s", c.name, c.state)
	case c.health != "" && c.health != "healthy":
		return fmt.Sprintf("the container %s is %s", c.name, c.health)
	}
	return ""
}

func (c *shown) ended() bool { return c.state == "exited" || c.state == "stopped" }

// oneOff is how podman-compose names the containers of its run command, which
// stay when they have ended.
var oneOff = regexp.MustCompile(`_tmp[0-9]+$`)

// troubles are those of the containers of a project, those that are over first.
func (u *unit) troubles(all []shown) []trouble {
	var found []trouble
	there := map[string]bool{}
	for i := range all {
		c := &all[i]
		if oneOff.MatchString(c.name) {
			continue
		}
		there[c.service] = true
		var s service
		if i := slices.IndexFunc(u.Services, func(s service) bool { return s.Name == c.service }); i >= 0 {
			s = u.Services[i]
		}
		t := trouble{container: c.name, unit: u.Name}
		switch {
		case c.ended() && (s.Optional || c.exit == 0 && s.Ends):
		case c.ended():
			t.why, t.over = fmt.Sprintf("the container %s has ended with %d", c.name, c.exit), !s.Restarts
		default:
			t.why, t.unwell = c.wrong(), c.state == "running"
		}
		if t.why != "" {
			found = append(found, t)
		}
	}
	for _, s := range u.Services {
		if !s.Optional && !there[s.Name] {
			found = append(found, trouble{unit: u.Name, why: fmt.Sprintf("the service %s has no container", s.Name)})
		}
	}
	slices.SortStableFunc(found, func(a, b trouble) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[a.over] - rank[b.over]
	})
	return found
}

// podTroubles are those of the containers of quadlets. Whether a container runs
// is its unit's to tell, but for those of .kube files: one unit keeps them all,
// and does not end with one of them. One of these that ended well was to end, or
// is restarted.
func podTroubles(list []unit, all []shown) []trouble {
	var found []trouble
	for i := range all {
		c := &all[i]
		u := list[slices.IndexFunc(list, func(u unit) bool { return u.Name == c.unit })]
		t := trouble{container: c.name, unit: u.Name, unwell: true}
		switch {
		case c.state == "running":
			t.why = c.wrong()
		case u.Kind != "kube", c.ended() && c.exit == 0:
		case c.ended():
			t.why = fmt.Sprintf("the container %s has ended with %d", c.name, c.exit)
		default:
			t.why = c.wrong()
		}
		if t.why != "" {
			found = append(found, t)
		}
	}
	return found
}

// look is what podman shows at one time: it is asked once for all quadlets,
// which takes a slow device a second.
type look struct {
	c        *Controller
	quadlets []shown
	asked    bool
}

// at gives the containers of an application and what is wrong with them.
func (l *look) at(ctx context.Context, list []unit) (all []shown, found []trouble, err error) {
	if i := slices.IndexFunc(list, func(u unit) bool { return u.Kind == composeKind }); i >= 0 {
		all, err = l.c.containers(ctx, projectLabel+list[i].Object)
		for at := range all {
			all[at].unit = list[i].Name
		}
		return all, list[i].troubles(all), err
	}
	if !l.asked {
		if l.quadlets, err = l.c.containers(ctx, "label=PODMAN_SYSTEMD_UNIT"); err != nil {
			return nil, nil, err
		}
		l.asked = true
	}
	for _, one := range l.quadlets {
		if slices.ContainsFunc(list, func(u unit) bool { return u.Name == one.unit }) {
			all = append(all, one)
		}
	}
	return all, podTroubles(list, all), nil
}

// askContainers is the part of [Controller.ask] for an application whose units
// run: podman starts containers again without them, and knows of their checks.
func (c *Controller) askContainers(ctx context.Context, l *look, p *patient) (why string, hopeless bool, err error) {
	all, found, err := l.at(ctx, p.units)
	if err != nil {
		return "", false, err
	}
	p.containers = nil
	for _, one := range all {
		if !oneOff.MatchString(one.name) {
			p.containers = append(p.containers, one.name)
		}
		before, known := p.restarts[one.id]
		p.restarts[one.id] = one.restarts
		if known && one.restarts > before {
			why, p.sick, p.sickContainer = fmt.Sprintf("the container %s was restarted, %d times so far", one.name, one.restarts), one.unit, one.name
			p.restarted = why
			hopeless = hopeless || p.loops(one.id, one.restarts, c.Uptime())
		}
	}
	if why != "" {
		return why, hopeless, nil
	}
	if len(found) > 0 {
		p.sick, p.sickContainer = found[0].unit, found[0].container
		return found[0].why, found[0].over, nil
	}
	return "", false, nil
}

const (
	// loopSpan and loopRestarts are systemd's own limits for a unit that ends
	// again and again. podman has none: it goes on at once, for ever. One that
	// waits for another has the whole span for it.
	loopSpan     = 10 * time.Second
	loopRestarts = 5
)

// loop is since when the restarts of a container are counted, and how many there
// had been.
type loop struct {
	at       time.Duration
	restarts int
}

// loops says whether a container, restarted once more, has ended again and again.
func (p *patient) loops(id string, restarts int, now time.Duration) bool {
	l, known := p.looping[id]
	if known && now-l.at < loopSpan {
		return false
	}
	p.looping[id] = loop{now, restarts}
	return known && restarts-l.restarts >= loopRestarts
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
