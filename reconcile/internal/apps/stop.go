package apps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// stop ends units, and removes what is left of them in podman: systemd forgets
// how to stop a unit when its file goes and it reads them anew. Volumes stay.
func (c *Controller) stop(ctx context.Context, m units.Manager, list []unit) error {
	if len(list) == 0 {
		return nil
	}
	var jobs []units.Job
	for i, u := range list {
		if u.Kind == composeKind {
			if err := c.endProject(ctx, &list[i]); err != nil {
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
			if err := c.removeProject(ctx, u.Object); err != nil {
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
		if u.Kind != "network" || u.Object == "" {
			continue
		}
		if _, err := c.podman(ctx, podmanLimit, "network", "exists", u.Object); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if err := c.removeNetwork(ctx, u.Object); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) removeNetwork(ctx context.Context, name string) error {
	_, err := c.podman(ctx, podmanLimit, "network", "rm", name)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.Warn(fmt.Errorf("the network %s stays: %s", name, said(err))) // another application uses it
	}
	return nil
}

// removeContainers removes what is left of a unit's containers. Those that hold
// a pod together go with it only.
func (c *Controller) removeContainers(ctx context.Context, u unit) error {
	out, err := c.podman(ctx, podmanLimit, "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Pod}}", "--filter", "label=PODMAN_SYSTEMD_UNIT="+u.Name)
	if err != nil {
		return err
	}
	var containers, pods []string
	for line := range strings.Lines(out) {
		id, pod, _ := strings.Cut(strings.TrimSpace(line), " ")
		containers = append(containers, id)
		if pod != "" && u.Kind != "container" && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	if len(pods) > 0 {
		if _, err := c.podman(ctx, podmanLimit, append([]string{"pod", "rm", "--force", "--ignore"}, pods...)...); err != nil {
			return err
		}
	}
	if len(containers) > 0 {
		_, err = c.podman(ctx, podmanLimit, append([]string{"rm", "--force", "--volumes", "--ignore"}, containers...)...)
	}
	return err
}
