package reconcile

import (
	"context"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// runHooks runs the hooks of one point: those of the spec, then the device's
// own. One of its own that cannot be read stops an update before it begins, so
// that nobody relies on a check that is not made; on the way back nothing of
// the kind may keep the device from getting there.
func (a *Agent) runHooks(ctx context.Context, p hooks.Point, spec *schema.Spec, c hooks.Context) error {
	local, err := hooks.Local(a.root)
	if err != nil {
		if !c.RollingBack {
			return err
		}
		a.log.Warn("a hook of the device itself cannot be read and does not run on the way back", "error", err)
	}
	w := a.watchHooks(p)
	if err := hooks.Run(ctx, p, hooks.Of(spec.Hooks, p), c, w); err != nil {
		return err
	}
	return hooks.Run(ctx, p, hooks.Of(local, p), c, w)
}

// askHooks runs the before-update ones, which are told what will be changed.
func (a *Agent) askHooks(ctx context.Context, r *record, spec *schema.Spec) error {
	c := a.hookContext(r)
	c.Changed = a.files.Ahead(wholeSet(spec), a.payload)
	return a.runHooks(ctx, hooks.BeforeUpdating, spec, c)
}

// checkHooks finds hooks of later points that could not be started, now that
// all files are in place.
func (a *Agent) checkHooks(spec *schema.Spec) error {
	local, err := hooks.Local(a.root)
	if err != nil {
		return err
	}
	return failure.Join(hooks.Check(a.root.Dir(), laterHooks(spec.Hooks)), hooks.Check(a.root.Dir(), laterHooks(local)))
}

// laterHooks are those that still run when the files are in place; the
// before-update ones have run, and their programs may be gone.
func laterHooks(h *schema.Hooks) *schema.Hooks {
	if h == nil {
		return nil
	}
	later := *h
	later.BeforeUpdating = nil
	return &later
}
