package reconcile

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/apps"
	"github.com/gitopsd/gitopsd/reconcile/internal/checks"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// Stage is a step of the flow, as it stands in logs and reports.
type Stage string

// The stages, in the order of the flow.
const (
	StagePreCheck   Stage = "PRE-CHECK"
	StageAnnounce   Stage = "ANNOUNCE"
	StageLookAgain  Stage = "LOOK AGAIN"
	StageReconcile  Stage = "RECONCILE"
	StagePostAction Stage = "POST-ACTION"
	StageReboot     Stage = "REBOOT"
	StageRollback   Stage = "ROLLBACK"
)

// update takes the desired attempt from PRE-CHECK to its end, as far as that
// is possible now.
func (a *Agent) update(ctx context.Context) (Result, *found) {
	d := a.store.desired
	if a.store.attempts.Direction == back {
		if a.store.attempts.of(d.Attempt).Begun {
			return a.degraded(), nil // tried again from a whole device only
		}
	}
	if !a.retryDue() {
		return a.degraded(), nil
	}
	if why := a.waits(); why != "" {
		return a.deferred(ctx, StagePreCheck, why), nil
	}
	r, spec, err := a.desiredNow()
	if err != nil {
		var f *failure.Error
		if errors.As(err, &f) {
			return a.fail(ctx, StagePreCheck, err), nil
		}
		return a.stateFailed(err), nil
	}
	if spec.Observes() {
		return a.observe(ctx, r, spec), nil
	}
	a.enter(schema.PhasePreparing, StagePreCheck)
	if err := a.preCheck(ctx, &r, spec); err != nil {
		if next, is := superseded(err); is {
			return Result{}, next
		}
		return a.fail(ctx, StagePreCheck, err), nil
	}
	a.live.phase, a.live.stage, a.live.reason = schema.PhaseStarting, string(StageAnnounce), ""
	a.changed()
	if err := a.reports.flush(ctx); err != nil {
		return a.notYet(ctx, "the announcement was not accepted", err), nil
	}
	if next, res, ok := a.lookAgain(ctx); !ok {
		return res, next
	}
	a.unannounced, a.waiting = ongoing{}, ongoing{}
	if err := a.begin(ctx, spec); err != nil {
		return a.stateOrFail(ctx, StageReconcile, err), nil
	}
	return a.carryOut(ctx, &r, spec, 0), nil
}

// desiredNow reads the desired spec; one that this agent cannot do whole is a
// permanent failure.
func (a *Agent) desiredNow() (record, *schema.Spec, error) {
	r, err := a.store.whole(desiredFile)
	if err != nil {
		return r, nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return r, nil, err
	}
	var missing []string
	caps := a.capabilities()
	for _, n := range schema.Needs(tree) {
		if !slices.Contains(caps, n) {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		return r, nil, failure.Permanent("agent", "", "the spec needs what this agent does not offer: %s", strings.Join(missing, ", "))
	}
	spec, err := schema.DecodeSpec(tree)
	if err != nil {
		return r, nil, failure.Permanent("agent", "", "the spec cannot be read whole: %w", err)
	}
	return r, spec, nil
}

// preCheck finds what would stop the update, while nothing changes.
func (a *Agent) preCheck(ctx context.Context, r *record, spec *schema.Spec) error {
	// not retryable: dependencies, before-update hooks
	if err := a.dependencies(ctx, spec); err != nil {
		return err
	}
	if err := a.askHooks(ctx, r, spec); err != nil {
		return err
	}
	// retryable: payloads and images, resources; then what podman makes of them
	if err := a.prefetch(spec); err != nil {
		return err
	}
	if err := a.whileWanted(ctx, func(ctx context.Context) error { return a.fetch(ctx, spec) }); err != nil {
		return err
	}
	need, err := a.needs(r, spec)
	if err != nil {
		return err
	}
	res := &schema.Resources{}
	if spec.Resources != nil {
		res = spec.Resources
	}
	if err := failure.Join(checks.Disk(a.root.Dir(), res.Disk, need), checks.Memory(res.Memory)); err != nil {
		return err
	}
	return a.apps.Check(ctx, spec, a.payload)
}

func (a *Agent) dependencies(ctx context.Context, spec *schema.Spec) error {
	if err := a.requirements(spec); err != nil {
		return err
	}
	whole := wholeSet(spec)
	return failure.Join(a.files.Check(a.withoutMasks(whole), a.payload), a.checkUnits(ctx, whole))
}

// requirements are those that a look at the spec and at the agent decides.
func (a *Agent) requirements(spec *schema.Spec) error {
	if spec.Requires != nil {
		if err := checks.Requires(a.root.Dir(), a.cfg.AgentVersion, spec.Requires); err != nil {
			return err
		}
	}
	if spec.OS != nil {
		switch {
		case a.os == nil:
			return failure.Permanent("os", spec.OS.Image, "this agent has no os driver configured")
		case spec.OS.Driver != "" && spec.OS.Driver != a.os.Name():
			return failure.Permanent("os", spec.OS.Image, "the spec wants the driver %q, this agent has %q", spec.OS.Driver, a.os.Name())
		case spec.OS.Image == "":
			return failure.Permanent("os", "", "no image is named")
		}
	}
	for _, u := range reach(spec) {
		if p, err := url.Parse(u); err != nil || (p.Scheme != "http" && p.Scheme != "https") || p.Host == "" {
			return failure.Permanent("confirm", u, "an http or https URL is wanted")
		}
	}
	return twice(spec)
}

// needs is about how many bytes the update will write: files that differ from
// the current spec's, each with a copy of what it replaces, and the spec
// itself as the current one. What must stay free beside it, package checks
// knows.
func (a *Agent) needs(r *record, spec *schema.Spec) (int64, error) {
	cur, err := a.store.currentSpec()
	if err != nil {
		return 0, err
	}
	cur = wholeSet(cur)
	need := int64(len(r.Spec))
	for p, f := range wholeSet(spec).Files {
		if f == nil || sameContent(f, cur.Files[p]) {
			continue
		}
		if info, err := a.root.Lstat(p); err == nil && info.Mode().IsRegular() {
			need += info.Size()
		}
		switch {
		case f.Content != nil:
			need += int64(len(*f.Content))
		case f.ContentBase64 != nil:
			need += int64(len(*f.ContentBase64))
		case f.Secret != "":
			need += int64(len(f.Secret))
		case f.Payload != "":
			if pp, err := payloadPath(f.Payload); err == nil {
				if info, err := a.root.Lstat(pp); err == nil {
					need += info.Size()
				}
			}
		}
	}
	return need, nil
}

func sameContent(a, b *schema.File) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := func(x, y *string) bool { return (x == nil && y == nil) || (x != nil && y != nil && *x == *y) }
	return a.Payload == b.Payload && a.Secret == b.Secret && same(a.Content, b.Content) && same(a.ContentBase64, b.ContentBase64)
}

// lookAgain reads the delivery ref once more behind the announcement. ok says
// that the attempt is still ours and that nothing keeps the device; otherwise
// res says what came of it, or next is another document to consider.
func (a *Agent) lookAgain(ctx context.Context) (next *found, res Result, ok bool) {
	a.live.stage = string(StageLookAgain)
	d, problem, err := a.look(ctx)
	if err != nil {
		return nil, a.notYet(ctx, "control did not answer the second look", err), false
	}
	if verdict, _ := admit(a.facts(), d, problem); verdict != admitGoOn {
		return &found{d, problem}, Result{}, false
	}
	if d.Assignment.Generation > a.store.attempts.Generation {
		if err := a.sawGeneration(d.Assignment); err != nil {
			return nil, a.stateFailed(err), false
		}
	}
	a.lookAround(ctx)
	if why := a.waits(); why != "" {
		return nil, a.deferred(ctx, StageLookAgain, why), false
	}
	return nil, Result{}, true
}

// begin puts on disk that the device is about to change, and what the
// operating system was.
func (a *Agent) begin(ctx context.Context, spec *schema.Spec) error {
	att := a.store.attempts.clone()
	w := att.of(a.store.desired.Attempt)
	w.Begun, w.NextTry, w.Resumes, w.Stops, w.Hooks = true, zeroTime, 0, 0, hookRuns{}
	if att.Work.OSFrom != "" && att.Direction == back {
		w.OSFrom = att.Work.OSFrom // an incomplete rollback still leads there
	}
	if spec.OS != nil {
		booted, err := a.os.Booted(ctx)
		if err != nil {
			return failureOf("os", spec.OS.Image, err)
		}
		if w.OSFrom == "" {
			w.OSFrom = booted
		}
		w.OSTo, w.OSOpen = a.osTo, a.osTo == ""
		if booted != a.osTo {
			// from the moment it is staged, any boot may be into it
			if err := a.expectBoot(w.target(spec.OS.Image)); err != nil {
				return err
			}
		}
	}
	att.Work, att.Observes = w, 0
	att.Direction, att.Incomplete = forward, ""
	return a.store.saveAttempts(att)
}

// carryOut does what changes the device: RECONCILE, POST-ACTION, the reboot,
// and the end. Every part may be repeated after a crash. Within a bound (0 =
// none) it must be done.
func (a *Agent) carryOut(ctx context.Context, r *record, spec *schema.Spec, bound time.Duration) Result {
	work, cancel := ctx, context.CancelFunc(func() {})
	if bound > 0 {
		work, cancel = context.WithTimeout(ctx, bound)
	}
	defer cancel()
	a.enter(schema.PhaseApplying, StageReconcile)
	rebootDue, err := a.reconcile(work, r, spec)
	if err != nil {
		return a.stateOrFail(ctx, StageReconcile, bootBound(ctx, work, err))
	}
	if !rebootDue && !a.runs(spec.Agent) {
		return a.tryProgram(ctx, spec.Agent) // it is what proves the update
	}
	a.enter(schema.PhaseVerifying, StagePostAction)
	if err := a.postAction(work, r, spec, rebootDue); err != nil {
		return a.stateOrFail(ctx, StagePostAction, bootBound(ctx, work, err))
	}
	if rebootDue {
		return a.reboot(ctx, a.store.attempts.Work.target(spec.OS.Image), false)
	}
	return a.succeed(ctx)
}

// postAction proves the update; what a reboot will change is judged after it.
func (a *Agent) postAction(ctx context.Context, r *record, spec *schema.Spec, rebootDue bool) error {
	hc := a.hookContext(r)
	hc.RebootPending = rebootDue
	if err := a.runHooks(ctx, hooks.AfterUpdating, spec, hc); err != nil {
		return err
	}
	if err := a.switchApplications(ctx, spec, apps.Onward, rebootDue); err != nil {
		return err
	}
	if rebootDue {
		return a.runHooks(ctx, hooks.BeforeRebooting, spec, hc)
	}
	if err := a.apps.Healthy(ctx, spec); err != nil {
		return err
	}
	return a.confirm(ctx, spec)
}

// reconcile runs the controllers in their order. rebootDue says that the
// image is staged and not booted.
func (a *Agent) reconcile(ctx context.Context, r *record, spec *schema.Spec) (rebootDue bool, err error) {
	if spec.OS != nil {
		if rebootDue, err = a.stageOS(ctx, spec.OS.Image); err != nil {
			return false, err
		}
	}
	whole := wholeSet(spec)
	if err := a.prepareUnits(ctx, whole, false); err != nil {
		return false, err
	}
	if err := a.prepareApplications(ctx, whole); err != nil {
		return false, err
	}
	// What a crash leaves changed is not found different any more, and hooks
	// would not be told of it.
	if err := a.noteChanged(a.files.Ahead(whole, a.payload)); err != nil {
		return false, err
	}
	changed, err := a.files.Apply(ctx, whole, a.payload, files.Onward)
	if err != nil {
		return false, err
	}
	if err := a.noteChanged(changed); err != nil {
		return false, err
	}
	if _, err := a.finishUnits(ctx, whole, rebootDue); err != nil {
		return false, err
	}
	return rebootDue, a.checkHooks(spec)
}

// noteChanged keeps which paths changed in this attempt, for hooks that run
// after a restart.
func (a *Agent) noteChanged(changed []string) error {
	att := a.store.attempts.clone()
	all := merged(att.Work.Changed, changed)
	if len(all) == len(att.Work.Changed) {
		return nil
	}
	att.Work.Changed = all
	return a.store.saveAttempts(att)
}

func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func (a *Agent) hookContext(to *record) hooks.Context {
	c := hooks.Context{Root: a.root.Dir(), Device: a.cfg.Device, From: a.store.current.Version, To: to.Version, Attempt: to.Attempt}
	if w := a.store.attempts.Work; w.Attempt == to.Attempt {
		c.Changed = slices.Clone(w.Changed)
	}
	return c
}

// warn logs what a hook may do wrong without failing the update.
func (a *Agent) warn(err error) {
	a.log.Warn("a hook failed and is ignored, as its spec says", "error", err)
}

// failureOf makes a retryable failure of an error that says nothing of itself.
func failureOf(component, element string, err error) error {
	var f *failure.Error
	if errors.As(err, &f) {
		return err
	}
	return failure.Retryable(component, element, "%w", err)
}
