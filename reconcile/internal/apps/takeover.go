package apps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// found is what becomes of an application that is not in the record: it is taken
// over where it runs as wanted. changes says whether its files are not as they
// are wanted; reload, that systemd has to read some of them.
func (c *Controller) found(ctx context.Context, w *want, changes bool) (a *applied, reload bool, err error) {
	ran, whole, err := c.runsAlready(ctx, w)
	if err != nil {
		return nil, false, err
	}
	a = &applied{Units: w.units, Before: ran}
	asWanted := whole && !changes
	if reload = !asWanted; reload {
		var why string
		if asWanted, why, err = c.take(ctx, nil, w); err != nil {
			return nil, false, err
		}
		if why != "" {
			c.Warn(fmt.Errorf("the containers of %s are made anew: %s", w.name, why))
		}
	}
	if asWanted {
		a.Hash = w.hash
		if !c.made(w) {
			a.Taken = w.hash
		}
	}
	return a, reload, nil
}

// take is [Controller.unmanaged] before an update: containers that somebody else
// has made, and that cannot be taken over, are why there is none. Nobody could
// make them again if it failed.
func (c *Controller) take(ctx context.Context, was *applied, w *want) (asWanted bool, why string, err error) {
	theirs, err := c.theirs(ctx, was, w)
	if err != nil || was != nil && !theirs {
		return false, "", err
	}
	asWanted, why, err = c.unmanaged(ctx, w)
	if was != nil && asWanted {
		asWanted, why = false, "an update of the application is on its way already"
	}
	if err == nil && theirs && why != "" {
		err = failure.Retryable(component, w.name, "%s", inTheWay(w, why))
	}
	return asWanted, why, err
}

// inTheWay is why containers are neither taken over nor removed.
func inTheWay(w *want, why string) string {
	return fmt.Sprintf("the project %s has containers that the agent has not made and cannot take over: %s; remove them (podman-compose down, which leaves named volumes), or have the release give what runs", w.name, why)
}

// theirs says whether the containers of an application's project, if there are
// any, are somebody else's. Those of a unit that runs are not: it comes back with
// its file, and makes them again.
func (c *Controller) theirs(ctx context.Context, was *applied, w *want) (bool, error) {
	switch {
	case len(w.units) == 0 || w.units[0].Kind != composeKind:
		return false, nil
	case was != nil && slices.Contains(names(was.Units), w.units[0].Name):
		return was.byHand() && was.Hash != w.hash, nil
	case c.made(w):
		return false, nil
	}
	ran, _, err := c.runsAlready(ctx, w)
	return len(ran) == 0, err
}

// made says whether an application that is not in the record runs from files
// that are there only because we wrote them: the record was lost.
func (c *Controller) made(w *want) bool {
	for file := range w.files {
		if c.Made(w.folder + "/" + file) {
			return true
		}
	}
	return false
}

// runsAlready lists the units of an application that is not in the record and
// run, and says whether all of it does.
func (c *Controller) runsAlready(ctx context.Context, w *want) (ran []string, whole bool, err error) {
	m, err := c.connect(ctx)
	if err != nil {
		return nil, false, err
	}
	defer m.Close()
	states, err := m.States(ctx, active(w.units)...)
	if err != nil {
		return nil, false, speaking(ctx, err)
	}
	whole = true
	for i := range states {
		if states[i].Running() {
			ran = append(ran, states[i].Name)
		} else if !states[i].Oneshot {
			whole = false
		}
	}
	return ran, whole, nil
}

// unmanaged says of an application of compose that is not in the record whether
// the containers of its project run already as the spec wants them; where there
// are some and they do not, it says why. podman keeps the command that has made
// a container, and podman-compose tells the one that it would make it with: both
// have all that the file, its variables and the files of variables come to, and
// a hash of the file. The image has to be the one that its name means now.
func (c *Controller) unmanaged(ctx context.Context, w *want) (asWanted bool, why string, err error) {
	if len(w.units) == 0 || w.units[0].Kind != composeKind {
		return false, "", nil
	}
	all, found, err := (&look{c: c}).at(ctx, w.units)
	if err != nil {
		return false, "", err
	}
	all = slices.DeleteFunc(all, func(s shown) bool { return oneOff.MatchString(s.name) })
	switch {
	case len(all) == 0:
		return false, "", nil
	case len(found) > 0:
		return false, found[0].why, nil
	}
	would, err := c.wouldMake(ctx, w)
	var exit *hooks.Exit
	switch {
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case errors.As(err, &exit): // without its words, in which secrets may be
		return false, "podman-compose does not say what it would make: " + exit.Error(), nil
	case err != nil:
		return false, "", err
	}
	if strings.Count(would, aRun+"--name=") != len(all) {
		return false, "it has other containers than its compose file asks for", nil
	}
	for i := range all {
		if why, err := c.unlike(ctx, &all[i], would); err != nil || why != "" {
			return false, why, err
		}
	}
	return true, "", nil
}

// handOver has systemd take note of containers that run as wanted without it,
// and forget those that are not to be ours after all.
func (c *Controller) handOver(ctx context.Context, m units.Manager, r, next *record, ready []*want) error {
	var jobs []units.Job
	for _, name := range r.Forget {
		if !next.has(name) {
			jobs = append(jobs, units.Job{Verb: units.Stop, Unit: name})
		}
	}
	for _, w := range ready {
		a := next.Apps[w.name]
		if !a.byHand() {
			continue
		}
		asWanted, why, err := c.unmanaged(ctx, w)
		switch {
		case err != nil:
			return err
		case why != "": // somebody has changed them since
			return failure.Retryable(component, w.name, "%s", inTheWay(w, why))
		case !asWanted: // or they are gone
			a.Taken = ""
			continue
		}
		jobs = append(jobs, units.Job{Verb: units.Start, Unit: w.units[0].Name})
	}
	return c.idle(ctx, m, jobs)
}

// Own has containers that were taken over be ours, now that the update with them
// has succeeded. Where the device is on its way nowhere it is called again, for
// the agent may have been killed before that was written.
func (c *Controller) Own() error {
	r, err := c.load()
	if err != nil {
		return err
	}
	for _, a := range r.Apps {
		if a.byHand() {
			a.Taken = ""
		}
	}
	return c.save(r)
}

// idleDropIn has the start and the stop of a unit that runs a compose file do
// nothing, so that systemd takes note of what runs, or forgets it. It is gone
// after a reboot, and is there for as long as that takes.
const idleDropIn = "# Written by gitopsd, and removed in a moment.\n[Service]\nExecStartPre=\nExecStart=\nExecStart=true\nExecStop=\nExecStopPost=\n"

// runUnitFolder has what of units is there until the next boot.
const runUnitFolder = "/run/systemd/system/"

func idlePath(unit string) string {
	return runUnitFolder + unit + ".d/zz-gitopsd-idle.conf" // behind those of others
}

var (
	idleFile   = disk.Meta{Mode: 0o644, UID: -1, GID: -1}
	idleFolder = disk.Meta{Mode: 0o755, UID: -1, GID: -1}
)

// idle does jobs of units of compose while nothing comes of them.
func (c *Controller) idle(ctx context.Context, m units.Manager, jobs []units.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	for _, j := range jobs {
		p := idlePath(j.Unit)
		_, err := c.Root.MkdirAll(path.Dir(p), idleFolder)
		if err == nil {
			err = c.Root.WriteFile(p, []byte(idleDropIn), idleFile)
		}
		if err != nil {
			return speaking(ctx, err)
		}
	}
	err := m.Reload(ctx)
	if err == nil {
		err = m.Do(ctx, jobs...)
	}
	if err != nil {
		return speaking(ctx, err)
	}
	return c.wake(ctx, m)
}

// wake has systemd start and stop units again that are idle, which may be from
// an agent that was killed.
func (c *Controller) wake(ctx context.Context, m units.Manager) error {
	entries, err := c.Root.List(runUnitFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = c.Root.Sweep(runUnitFolder)
	}
	if err != nil {
		return speaking(ctx, err)
	}
	woken := false
	for _, e := range entries {
		unit, isDropIn := strings.CutSuffix(e.Name(), ".d")
		if !isDropIn || !strings.HasPrefix(unit, "compose-") {
			continue
		}
		p := idlePath(unit)
		err := c.Root.Sweep(path.Dir(p))
		if err == nil {
			err = c.Root.Remove(p)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return speaking(ctx, err)
		}
		woken = woken || err == nil
		_ = c.Root.Remove(path.Dir(p)) // others may have something there
	}
	if !woken {
		return nil
	}
	if err := m.Reload(ctx); err != nil {
		return speaking(ctx, err)
	}
	return nil
}
