package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/apps"
	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// nowhere is the control of a device that is being reset: nobody decides about
// it, and nobody hears of it.
type nowhere struct{}

func (nowhere) Look(context.Context) (schema.Delivery, string, error) {
	return schema.Delivery{}, "", errors.New("nobody is asked")
}
func (nowhere) Report(context.Context, *schema.Report) error { return nil }
func (nowhere) Answers(context.Context) error                { return nil }

// WasReset is what came of a [Reset].
type WasReset struct {
	// Kept are paths of the state that are left: copies of files of the device
	// that could not be put back where they came from.
	Kept []string
}

// Reset undoes everything that is managed, under the lock of the agent: it is a
// rollback to an empty spec, and then the state goes. ask is told what will be
// done before anything is; when it says no, nothing is. The operating system
// stays, and hooks do not run. Where something cannot be put back, the state is
// kept, and Reset or an agent goes on from there.
func Reset(ctx context.Context, c Config, ask func(*Comparison) (bool, error)) (*WasReset, error) {
	v, err := OpenView(c)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if c.Device == "" {
		c.Device = "device" // it is named in reports only
	}
	c.Control = nowhere{}
	a, err := New(c)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if w := a.store.attempts.Work; a.store.attempts.Direction != steady && w.OSFrom != "" {
		return nil, errors.New("an update of the operating system is on its way; let the agent bring it to an end first")
	}
	plan, err := v.CompareReset(ctx)
	if err != nil {
		return nil, err
	}
	if yes, err := ask(plan); err != nil || !yes {
		return nil, err
	}
	if err := a.forgetAll(); err != nil {
		return nil, fmt.Errorf("begin the reset: %w", err)
	}
	res := a.rollBack(ctx, "a reset")
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case a.store.attempts.Direction != steady || a.store.stale:
		return nil, fmt.Errorf("%s; the state is kept, so that it can go on from there", res.Summary)
	}
	kept, err := a.removeState()
	if err != nil {
		return nil, fmt.Errorf("remove the state, with nothing managed any more: %w", err)
	}
	return &WasReset{Kept: kept}, nil
}

// forgetAll has the device be on its way back to what was there before the
// first release, as another installation: of the one that was told to run
// something nobody hears that it runs nothing any more.
func (a *Agent) forgetAll() error {
	if err := a.store.seq.begin(install{ID: newInstallID()}); err != nil {
		return err
	}
	att := a.store.attempts.clone()
	att.Generation, att.Direction, att.Incomplete, att.Observes, att.Work = 0, back, "", 0, work{Changed: att.Work.Changed}
	if err := a.store.saveAttempts(att); err != nil {
		return err
	}
	return errors.Join(a.store.dropDesired(), a.store.savePending(nil), a.store.saveCurrent(record{Version: a.cfg.InitialVersion}))
}

// setAsideDir holds what could not be given back; of the files controller.
const setAsideDir = stateDir + "/set-aside"

// removeState takes the state away, last what says that nothing is managed.
func (a *Agent) removeState() (kept []string, err error) {
	list, err := a.root.List(stateDir)
	if err != nil {
		return nil, err
	}
	last := []string{currentFile, attemptsFile, installFile, stateDir + "/" + lockName}
	var names []string
	for _, e := range list {
		if p := path.Join(stateDir, e.Name()); !slices.Contains(last, p) {
			names = append(names, p)
		}
	}
	for _, p := range append(names, last...) {
		if p == setAsideDir || strings.Contains(p, disk.AsideMark) {
			kept = append(kept, p)
			continue
		}
		if err := a.removeAll(p); err != nil {
			return kept, err
		}
	}
	if len(kept) == 0 {
		_ = a.root.Remove(stateDir) // where it is not the service's own, or a mount
	}
	return kept, nil
}

// removeAll removes what stands at a path, links as links.
func (a *Agent) removeAll(p string) error {
	info, err := a.root.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		list, err := a.root.List(p)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := a.removeAll(path.Join(p, e.Name())); err != nil {
				return err
			}
		}
	}
	return a.root.Remove(p)
}

// affected are the units that a reset restarts, or has read their configuration
// anew. Those of applications are stopped instead.
func (a *Agent) affected(ctx context.Context, cur *schema.Spec) (list []Change, err error) {
	if a.units == nil {
		return nil, nil
	}
	none := wholeSet(&schema.Spec{})
	jobs, err := a.units.Affected(ctx, none, a.files.Ahead(none, a.payload))
	stopped := apps.Units(cur, a.payload)
	for _, j := range jobs {
		one := schema.Difference{Field: "units", Name: j.Unit, Do: schema.DoRestart}
		if j.Verb == units.TryReload {
			one.Do = schema.DoReload
		}
		if !stopped[j.Unit] {
			list = append(list, Change{Difference: one})
		}
	}
	return list, err
}

// CompareReset says what [Reset] would do.
func (v *View) CompareReset(ctx context.Context) (*Comparison, error) {
	if err := v.openRecords(); err != nil {
		return nil, err
	}
	from, err := v.read(currentFile)
	if err != nil {
		return nil, err
	}
	cur, err := schema.DecodeSpec(from)
	if err != nil {
		return nil, fmt.Errorf("the current spec cannot be read whole: %w", err)
	}
	c := &Comparison{Changes: []Change{}, Hooks: []string{}, Trouble: v.trouble}
	c.To.Version = v.agent.cfg.InitialVersion
	list, err := v.agent.differences(ctx, cur, &schema.Spec{})
	if err != nil {
		c.Trouble = append(c.Trouble, oneLine(err.Error()))
	}
	touched, err := v.agent.affected(ctx, cur)
	if err != nil {
		c.Trouble = append(c.Trouble, oneLine(err.Error()))
	}
	list = append(list, touched...)
	c.show(list, false)
	return c, nil
}
