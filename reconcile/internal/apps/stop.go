package apps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// stop ends units, and removes what is left of them in podman: systemd forgets
// how to stop a unit when its file goes and it reads them anew. Volumes stay.
func (c *Controller) stop(ctx context.Context, m units.Manager, list []unit, n *networks) error {
	if len(list) == 0 {
		return nil
	}
	if err := c.awaitStarts(ctx, m, names(list)); err != nil {
		return err
	}
	var jobs []units.Job
	for i, u := range list {
		if u.Kind == composeKind {
			if err := c.endProject(ctx, &list[i]); err != nil {
				return err
			}
		}
		if u.Kind == "kube" {
			if err := c.endPods(ctx, u); err != nil {
				return err
			}
		}
		jobs = append(jobs, units.Job{Verb: units.Stop, Unit: u.Name})
	}
	if err := m.Do(ctx, jobs...); err != nil {
		return speaking(ctx, err)
	}
	for _, u := range list { // one that failed would stay in systemd's list without a file
		if err := m.ResetFailed(ctx, u.Name); err != nil {
			return speaking(ctx, err)
		}
	}
	for _, u := range list {
		if u.Kind == composeKind {
			if err := c.removeProject(ctx, u.Object, n); err != nil {
				return err
			}
			continue
		}
		if err := c.removeContainers(ctx, u); err != nil {
			return speaking(ctx, fmt.Errorf("containers of %s: %s", u.Name, said(err)))
		}
	}
	for _, u := range list {
		if u.Kind == "pod" && u.Object != "" {
			if _, err := c.podman(ctx, podmanLimit, "pod", "rm", "--force", "--ignore", u.Object); err != nil {
				return speaking(ctx, fmt.Errorf("pod %s: %s", u.Object, said(err)))
			}
		}
	}
	for _, u := range list {
		if u.Kind == "network" && u.Object != "" {
			if err := c.removeIfThere(ctx, u.Object, n); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	startWait  = 30 * time.Second       // for what the device starts as it boots
	startEvery = 250 * time.Millisecond // between two looks
)

// awaitStarts lets units come to the end of a start that goes on, as when the
// device has just booted: stopped in the middle, podman is killed while it sets
// up a network, and leaves rules behind that keep the ports from whoever gets
// them next.
func (c *Controller) awaitStarts(ctx context.Context, m units.Manager, list []string) error {
	for begun := c.Uptime(); c.Uptime()-begun < startWait; {
		states, err := m.States(ctx, list...)
		if err != nil {
			return speaking(ctx, err)
		}
		if !slices.ContainsFunc(states, func(s units.State) bool { return s.Active == "activating" && !strings.HasPrefix(s.Sub, "auto-restart") }) {
			return nil
		}
		if err := c.Wait(ctx, startEvery); err != nil {
			return err
		}
	}
	return nil
}

// endPods has the pods of a .kube file end by themselves. Its unit would have
// them end by the document, which is another one by now, or gone; then systemd
// kills what watches them, and podman does not know what became of them.
func (c *Controller) endPods(ctx context.Context, u unit) error {
	_, pods, err := c.containersOf(ctx, u)
	if err == nil && len(pods) > 0 {
		_, err = c.podman(ctx, podmanLimit, append([]string{"pod", "stop", "--ignore"}, pods...)...)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.Warn(fmt.Errorf("pods of %s did not end by themselves: %s", u.Name, said(err)))
	}
	return nil
}

// containersOf are the containers of a unit, and the pods that they are in. The
// pod of a container of quadlets is another unit's.
func (c *Controller) containersOf(ctx context.Context, u unit) (containers, pods []string, err error) {
	out, err := c.podman(ctx, podmanLimit, "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Pod}}", "--filter", "label=PODMAN_SYSTEMD_UNIT="+u.Name)
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(out) {
		id, pod, _ := strings.Cut(strings.TrimSpace(line), " ")
		containers = append(containers, id)
		if pod != "" && u.Kind != "container" && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	return containers, pods, nil
}

// removeContainers removes what is left of a unit's containers. Those that hold
// a pod together go with it only.
func (c *Controller) removeContainers(ctx context.Context, u unit) error {
	containers, pods, err := c.containersOf(ctx, u)
	if err == nil && len(pods) > 0 {
		_, err = c.podman(ctx, podmanLimit, append([]string{"pod", "rm", "--force", "--ignore"}, pods...)...)
	}
	if err == nil && len(containers) > 0 {
		_, err = c.podman(ctx, podmanLimit, append([]string{"rm", "--force", "--volumes", "--ignore"}, containers...)...)
	}
	return err
}
