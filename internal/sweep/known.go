package sweep

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// minOfflineAfter is the least silence that means anything; the planner goes
// by the same.
const minOfflineAfter = planner.MinOfflineAfter

// defaultHeartbeat is the agent's own default, where its report is not at
// hand.
const defaultHeartbeat = 10 * time.Minute

// known is all that a plan is told of one device. It is compared with ==:
// while it is the same, and no time comes that [known.look] tells, so is what
// it looks like. Whatever else is to count belongs in here.
type known struct {
	member     *schema.Member // nil = it left the fleet
	policy     *schema.Policy // that it belongs to; nil = none, or one that is gone
	record     *Record        // nil = the status branch knows nothing of it
	heard      Heard
	restricted string // why it is held beyond what the fleet says; "" = it is not
	delivered  bool   // its delivery is known to be as it should
	pickup     Pickup // the restarted pickup clock
}

// Heard is what a daemon has heard from a device.
type Heard struct {
	Report  *schema.Report // the newest good one; nil = what the status branch observed
	Present bool           // it still stands there
	Problem string         // why the newest one is not good
	Ignored string         // why it is not listened to; "" = it is
	At      time.Time      // when its sequence was first seen
	TwoAt   time.Time      // when two machines were last seen under this name; zero = never
}

// Facts is what that comes to at some time.
type Facts struct {
	Report    *schema.Report
	Problem   string
	LastSeen  time.Time
	Duplicate bool // two installations take turns under this name
}

// look says how long a device looks as it does.
type look struct {
	facts Facts
	// until is when the same knowledge comes to something else; zero = never.
	until time.Time
	// fleeting: it is of this very moment, as what is said of two installations
	// that take turns.
	fleeting bool
}

// look makes the planner's value. It goes by what is known and the clock, and
// by nothing else.
func (k *known) look(c clock) (planner.Device, look) {
	facts, fleeting := k.heard.facts(k.record, c.now)
	d, l := k.lookBy(facts, c)
	l.fleeting = l.fleeting || fleeting
	return d, l
}

func (k *known) lookBy(facts Facts, c clock) (d planner.Device, l look) {
	d, l.facts = k.desired(), facts
	var observed *schema.Observed
	if k.record != nil {
		observed = k.record.Status.Observed
		d.Attempts = k.attempts(l.facts)
	}
	if r := l.facts.Report; r != nil && k.member != nil && k.member.Rendered != nil {
		d.Missing = missing(k.member.Rendered.Needs, r.Capabilities)
	}
	if r := l.facts.Report; r != nil && !older(r, observed) {
		hearReport(&d, r, observed)
	} else if observed != nil && observed.InstallID != "" {
		hearObserved(&d, observed)
	} else {
		return d, l
	}
	d.Seen, d.Duplicate = true, l.facts.Duplicate
	d.LastSeen = l.facts.LastSeen
	d.Since = asBefore(&d, observed)
	if observed != nil && observed.InstallID == d.InstallID {
		d.HeardAt = timeOf(observed.HeardAt)
	}
	d.Online, l.until = online(l.facts, observed, k.offlineAfter(), c)
	switch {
	case d.Online && d.LastSeen.IsZero():
		d.LastSeen, l.fleeting = c.now, true
	case !d.Online:
		d.OfflineSince = offlineSince(l.facts, observed)
		if d.LastSeen.IsZero() {
			d.LastSeen = d.OfflineSince
		}
	}
	return d, l
}

// desired is what the fleet says of a device.
func (k *known) desired() planner.Device {
	m := k.member
	if m == nil {
		return planner.Device{ID: k.record.ID, Policy: k.record.Status.Policy, Removed: true}
	}
	d := planner.Device{
		ID: m.ID, Policy: m.Policy, Target: planner.Target{Version: m.Version}, Rollout: m.Rollout,
		NoTarget: m.NoTarget, Pinned: m.Pinned, OwnSpec: ownSpec(m),
		Wave: m.Wave, Labels: m.Labels(),
	}
	d.Observes = observes(m)
	if m.Rendered != nil {
		d.Target.Digest = m.Rendered.Digest
	}
	if m.Device != nil && m.Device.Spec.ForgetFailuresBefore != nil {
		d.ForgetBefore = *m.Device.Spec.ForgetFailuresBefore
	}
	d.HeldReason = k.hold()
	d.AdminHeld = d.HeldReason != ""
	return d
}

// stands says whether it is among the devices of the status branch.
func (k *known) stands() bool {
	return k.record != nil && !strings.HasPrefix(k.record.Path, retiredDir)
}

// hold is why a device of the fleet is held in git; "" = it is not.
func (k *known) hold() string {
	if d := k.member.Device; d != nil && d.Spec.Hold != nil {
		return or(oneLine(d.Spec.Hold.Reason), "held")
	}
	return k.restricted
}

// offlineAfter is the silence that the policy sets; 0 = it sets none.
func (k *known) offlineAfter() time.Duration {
	if k.policy == nil {
		return 0
	}
	return k.policy.Spec.OfflineAfter.D(0)
}

// facts gives what was heard as it counts now, and whether that is fleeting.
func (h *Heard) facts(rec *Record, now time.Time) (f Facts, fleeting bool) {
	var present *schema.Report
	if h.Present {
		present = h.Report
	}
	turned := !h.TwoAt.IsZero() && now.Sub(h.TwoAt) < duplicateFor
	two := isDuplicate(rec, present, turned, now)
	fleeting = two || rec != nil && standsDuplicate(rec.Status)
	if h.Ignored != "" {
		return Facts{Problem: h.Ignored, Duplicate: two}, fleeting
	}
	return Facts{Report: h.Report, Problem: h.Problem, LastSeen: h.At, Duplicate: two}, fleeting
}

func missing(needs, offers []string) []string {
	var out []string
	for _, n := range needs {
		if !slices.Contains(offers, n) {
			out = append(out, n)
		}
	}
	return out
}

func hearReport(d *planner.Device, r *schema.Report, observed *schema.Observed) {
	d.InstallID, d.Version, d.Digest = r.InstallID, r.Current.Version, r.Current.Digest
	d.ProtocolVersion, d.Heartbeat = r.ProtocolVersion, heartbeatOf(r)
	d.Busy, d.BusyReason = r.Busy, r.BusyReason
	if r.Hold != nil {
		d.AdminHeld = true
		if d.HeldReason == "" {
			d.HeldReason = or(r.Hold.Reason, "held on the device")
		}
	}
	d.Said = planner.Said{
		Fresh: newer(r, observed), Sequence: r.Sequence, Attempt: r.Attempt, Phase: string(r.Phase),
		Begun: r.Begun, Starting: r.Phase == schema.PhaseStarting, Outcome: string(r.Outcome), Settled: r.Settled,
		Recalled: r.Recalled, Stage: r.Stage, Message: messageOf(r),
	}
}

// hearObserved goes by what the status branch recorded, which decides nothing
// more.
func hearObserved(d *planner.Device, o *schema.Observed) {
	d.InstallID, d.Version, d.Digest = o.InstallID, o.Version, o.Digest
	d.ProtocolVersion, d.Heartbeat = math.MaxInt32, defaultHeartbeat
	d.Busy = o.Busy
	if o.Held != "" {
		d.AdminHeld = true
		if d.HeldReason == "" {
			d.HeldReason = o.Held
		}
	}
	d.Said = planner.Said{Sequence: o.Sequence, Attempt: o.Attempt, Phase: string(o.Phase), Message: o.Reason}
}

// newer says whether a report may decide something: it is newer than the one
// last decided from, or another installation's.
func newer(r *schema.Report, o *schema.Observed) bool {
	return o == nil || o.InstallID != r.InstallID || r.Sequence > o.Sequence
}

// older says whether a report is from before the one last decided from: this
// daemon's view lags.
func older(r *schema.Report, o *schema.Observed) bool {
	return o != nil && o.InstallID == r.InstallID && r.Sequence < o.Sequence
}

// messageOf is what a person should read about the report's attempt: of a
// failure its first line, which tells the cause. The report has the rest.
func messageOf(r *schema.Report) string {
	if r.Outcome != "" && r.Outcome != schema.OutcomeOK {
		for i := len(r.Failures) - 1; i >= 0; i-- {
			if f := r.Failures[i]; f.Attempt == r.Attempt {
				first, _, _ := strings.Cut(strings.TrimSpace(f.Message), "\n")
				return oneLine(first)
			}
		}
	}
	return kept(r)
}

// kept is what is written down of a report's reason: what a device fetches just
// now changes with each image, and would be a commit each time.
func kept(r *schema.Report) string {
	if r.Phase == schema.PhasePreparing {
		return ""
	}
	return oneLine(r.Reason)
}

// heartbeatOf clamps what a device says of itself.
func heartbeatOf(r *schema.Report) time.Duration {
	return min(max(time.Duration(r.HeartbeatInterval), planner.MinHeartbeat), planner.MaxHeartbeat)
}

// offlineLimit is the silence after which a device is offline.
func offlineLimit(r *schema.Report, configured time.Duration) time.Duration {
	if configured > 0 {
		return configured
	}
	beat := defaultHeartbeat
	if r != nil {
		beat = heartbeatOf(r)
	}
	return max(planner.OfflineHeartbeats*beat, minOfflineAfter)
}

// online says whether a device was heard from in time, and until when that
// holds without a word of it; zero = for ever. One that stands as offline comes
// back only by a newer report, so that daemons that heard of it at different
// times do not take turns.
func online(f Facts, o *schema.Observed, configured time.Duration, c clock) (bool, time.Time) {
	heard := f.Report != nil && newer(f.Report, o)
	if o != nil && !o.Online && !heard {
		return false, time.Time{}
	}
	if f.LastSeen.IsZero() || c.noTimeouts {
		return o == nil || o.Online || heard, time.Time{}
	}
	silent := f.LastSeen.Add(offlineLimit(f.Report, configured)).Add(1)
	if !c.now.Before(silent) {
		return false, time.Time{}
	}
	return true, silent
}

func offlineSince(f Facts, o *schema.Observed) time.Time {
	if o != nil && !o.Online && o.OfflineSince != nil {
		return *o.OfflineSince
	}
	return stamp(f.LastSeen)
}

func (k *known) attempts(facts Facts) []planner.Attempt {
	rec := k.record
	out := make([]planner.Attempt, 0, len(rec.Status.Attempts))
	for i := range rec.Status.Attempts {
		a := &rec.Status.Attempts[i]
		pa := planner.Attempt{
			Number: a.Attempt, Policy: a.Policy, Line: a.Line, Target: planner.Target{Version: a.Version, Digest: a.Digest},
			Rollout: a.Rollout, Release: a.Release, InstallID: a.InstallID, Pinned: a.Pinned,
			AssignedAt: a.AssignedAt, StartedAt: timeOf(a.StartedAt), OnTargetAt: timeOf(a.OnTargetAt), EndedAt: timeOf(a.EndedAt),
			Outcome: planner.Outcome(a.Outcome), Because: causeOf(a),
		}
		if k.pickup.Attempt == a.Attempt {
			pa.PickupFrom = k.pickup.From
		}
		if a.Recall != nil && a.Outcome == "" {
			pa.Recalled = planner.Outcome(a.Recall.Outcome)
		}
		if doc := rec.Assignment; doc != nil && (doc.Spec == nil || doc.Attempt != a.Attempt) {
			pa.RecallDelivered = k.delivered && facts.Problem == "" &&
				(facts.Report == nil || !older(facts.Report, rec.Status.Observed))
		}
		out = append(out, pa)
	}
	return out
}

// causeOf is why an attempt ended or is being taken back. Of one that had
// not begun the recall tells it; its end says only that nothing had begun.
func causeOf(a *schema.Attempt) string {
	if a.Recall != nil && (a.Outcome == "" || a.Outcome == schema.OutcomeDeferred || a.Outcome == schema.OutcomeUnreached) {
		return a.Recall.Because
	}
	return a.Message
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
