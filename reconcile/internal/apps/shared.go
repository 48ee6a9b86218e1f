package apps

import (
	"context"
	"fmt"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// wavesOf divides applications into those that start together: podman-compose
// does not wait for networks and volumes that its file only names, so that what
// makes them comes before. Those that wait for each other start together.
func wavesOf(all []*want) [][]*want {
	var waves [][]*want
	for len(all) > 0 {
		var now, later []*want
		for _, w := range all {
			if slices.ContainsFunc(all, func(o *want) bool { return o != w && o.makes(w.needed...) }) {
				later = append(later, w)
			} else {
				now = append(now, w)
			}
		}
		if len(now) == 0 {
			now, later = later, nil
		}
		waves, all = append(waves, now), later
	}
	return waves
}

// makes says whether an application makes one of these networks or volumes. Of
// those of quadlets only networks are known.
func (w *want) makes(list ...string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return slices.Contains(w.made, name) || slices.ContainsFunc(w.units, func(u unit) bool { return u.Kind == "network" && u.Object == name })
	})
}

// startAll starts applications, and what else is given beside the first of them.
func (c *Controller) startAll(ctx context.Context, m units.Manager, all []*want, beside []units.Job) error {
	waves := wavesOf(all)
	for i := range max(len(waves), 1) {
		jobs := beside
		if beside = nil; i < len(waves) {
			for _, w := range waves[i] {
				for _, name := range active(w.units) {
					jobs = append(jobs, units.Job{Verb: units.Start, Unit: name})
				}
			}
		}
		if err := c.start(ctx, m, jobs); err != nil {
			return err
		}
	}
	return nil
}

// networks are those whose application goes.
type networks struct {
	wanted []*want  // the applications that there will be
	stayed []string // what could not go earlier
	stay   []string // what cannot go now
}

// removeNetwork removes a network, unless an application that stays names it: it goes
// with the last one that does.
func (c *Controller) removeNetwork(ctx context.Context, name string, n *networks) error {
	anew := slices.ContainsFunc(n.wanted, func(w *want) bool { return w.makes(name) })
	if anew || !slices.ContainsFunc(n.wanted, func(w *want) bool { return slices.Contains(w.needed, name) }) {
		_, err := c.podman(ctx, podmanLimit, "network", "rm", name)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if !slices.Contains(n.stayed, name) {
			c.Warn(fmt.Errorf("the network %s stays: %s", name, said(err))) // somebody uses it
		}
	}
	if !anew && !slices.Contains(n.stay, name) {
		n.stay = append(n.stay, name)
	}
	return nil
}

// removeIfThere is for a network that may be gone.
func (c *Controller) removeIfThere(ctx context.Context, name string, n *networks) error {
	if _, err := c.podman(ctx, podmanLimit, "network", "exists", name); err != nil {
		return ctx.Err()
	}
	return c.removeNetwork(ctx, name, n)
}

// removeStayed tries what could not go earlier, but for what is made anew.
func (c *Controller) removeStayed(ctx context.Context, n *networks) error {
	for _, name := range n.stayed {
		if slices.ContainsFunc(n.wanted, func(w *want) bool { return w.makes(name) }) {
			continue
		}
		if err := c.removeIfThere(ctx, name, n); err != nil {
			return err
		}
	}
	return nil
}
