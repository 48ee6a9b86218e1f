package sweep

import (
	"math"
	"slices"
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

// Scene is what a plan is made of: the fleet as it should be, the status
// branch, and what was heard from the devices.
type Scene struct {
	Fleet  *schema.Fleet
	Status *Status          // nil = devices are assumed seen, online, idle, capable, at v0.0.0
	Facts  map[string]Facts // by device; absent = only what the status branch observed

	Now        time.Time
	OwnVersion string
	Watching   time.Time // start of the unbroken series of passes; zero = for ever
	Stopped    string    // a stop's reason; "" = none
	NoTimeouts bool
	Restrict   Restrictions

	Delivered map[string]bool   // devices whose delivery is known to be as it should
	Pickup    map[string]Pickup // devices whose pickup clock was restarted

	due *time.Time // gets the earliest time at which the same scene means something else; nil = nobody asks
}

// Facts is what a daemon has heard from a device.
type Facts struct {
	Report    *schema.Report // the newest good one; nil = what the status branch observed
	Problem   string         // why the newest one is not good
	LastSeen  time.Time
	Duplicate bool // two installations take turns under this name
}

// AssumedVersion is what a device that has applied nothing reports.
const AssumedVersion = "v0.0.0"

// PlannerInput maps a scene to the planner's values. Devices are in the order
// of the fleet; removed ones that still count come after them, by id.
func PlannerInput(s Scene) planner.Input {
	in := planner.Input{
		Now: s.Now, OwnVersion: s.OwnVersion, Watching: s.Watching, Stopped: s.Stopped, NoTimeouts: s.NoTimeouts,
		Policies: make([]planner.Policy, 0, len(s.Fleet.Policies)),
		Devices:  make([]planner.Device, 0, len(s.Fleet.Devices)),
	}
	offline := map[string]time.Duration{}
	for _, p := range s.Fleet.Policies {
		pp := s.policy(p)
		offline[pp.Name] = pp.OfflineAfter
		in.Policies = append(in.Policies, pp)
	}
	present := make(map[string]bool, len(s.Fleet.Devices))
	for _, m := range s.Fleet.Devices {
		present[m.ID] = true
		in.Devices = append(in.Devices, s.device(m, offline[m.Policy]))
	}
	if s.Status == nil {
		return in
	}
	var gone []planner.Device
	for id, rec := range s.Status.Devices {
		if !present[id] {
			gone = append(gone, s.removed(rec, offline[rec.Status.Policy]))
		}
	}
	for id, rec := range s.Status.Retired {
		if !present[id] && counts(rec.Status) {
			gone = append(gone, s.removed(rec, 0))
		}
	}
	slices.SortFunc(gone, func(a, b planner.Device) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	in.Devices = append(in.Devices, gone...)
	return in
}

// counts says whether a removed device's past can still halt a policy.
func counts(s *schema.DeviceStatus) bool {
	return slices.ContainsFunc(s.Attempts, func(a schema.Attempt) bool { return isFailure(a.Outcome) })
}

func isFailure(o schema.Outcome) bool {
	return o == schema.OutcomeFailed || o == schema.OutcomeLost || o == schema.OutcomeRefused
}

func (s *Scene) policy(p *schema.Policy) planner.Policy {
	spec := &p.Spec
	out := planner.Policy{
		Name: p.Metadata.Name, Enabled: spec.Enabled, TargetVersion: spec.TargetVersion,
		Line: lineOf(p), RollbackFrom: spec.RollbackFrom,
		MinAvailable: limit(spec.MinAvailable), FailureLimit: limit(spec.FailureLimit), RefusalLimit: limit(spec.RefusalLimit),
		PickupTimeout: spec.PickupTimeout.D(0), UpdateTimeout: spec.UpdateTimeout.D(0), Settle: spec.Settle.D(0),
		MaxAttempts: spec.MaxAttempts, OfflineAfter: spec.OfflineAfter.D(0), AbsentAfter: spec.AbsentAfter.D(0),
		MinProtocol: spec.MinProtocol,
	}
	if m := spec.MaxInFlight; m != nil {
		if m.Percent {
			out.MaxInFlightPercent = m.Value
		} else {
			out.MaxInFlight = m.Value
		}
	}
	if b := spec.Backoff; b != nil {
		out.Backoff = planner.Backoff{Base: b.Base.D(0), Factor: b.Factor, Cap: b.Cap.D(0)}
	}
	if spec.ForgetFailuresBefore != nil {
		out.ForgetBefore = *spec.ForgetFailuresBefore
	}
	out.Release = s.Fleet.ReleaseDigest(out.Line, or(out.TargetVersion, s.OwnVersion))
	if spec.Paused != nil {
		out.Paused = or(spec.Paused.Reason, "paused")
	} else if why, ok := s.Restrict.Paused[out.Name]; ok {
		out.Paused = or(why, "paused")
	}
	if s.Restrict.Disabled[out.Name] {
		out.Enabled = false
	}
	return out
}

// lineOf is the release line of a policy.
func lineOf(p *schema.Policy) string {
	if p.Spec.ReleaseLine != "" {
		return p.Spec.ReleaseLine
	}
	return p.Metadata.Name
}

func limit(v *schema.IntOrPercent) planner.Limit {
	switch {
	case v == nil:
		return planner.Limit{}
	case v.Percent:
		return planner.Limit{Percent: v.Value, Set: true}
	}
	return planner.Limit{Count: v.Value, Set: true}
}

// ownSpec says whether a device has a spec of its own, and no release's.
func ownSpec(m *schema.Member) bool {
	return m.Device != nil && m.Device.Spec.Release == schema.ReleaseNone
}

// releaseOf is what an attempt of a device says of releases.
func releaseOf(fleet *schema.Fleet, m *schema.Member) string {
	if ownSpec(m) {
		return planner.ReleaseNone
	}
	return fleet.ReleaseDigest(m.Line, m.Version)
}

// holdOf is why a device is held in git; "" = it is not.
func (s *Scene) holdOf(m *schema.Member) string {
	if m.Device != nil && m.Device.Spec.Hold != nil {
		return or(oneLine(m.Device.Spec.Hold.Reason), "held")
	}
	if why, ok := s.Restrict.Hold[m.ID]; ok {
		return or(oneLine(why), "held")
	}
	return ""
}

func (s *Scene) device(m *schema.Member, offlineAfter time.Duration) planner.Device {
	d := planner.Device{
		ID: m.ID, Policy: m.Policy, Target: planner.Target{Version: m.Version}, Rollout: m.Rollout,
		NoTarget: m.NoTarget, Pinned: m.Pinned, OwnSpec: ownSpec(m),
	}
	if m.Rendered != nil {
		d.Target.Digest = m.Rendered.Digest
	}
	if m.Device != nil && m.Device.Spec.ForgetFailuresBefore != nil {
		d.ForgetBefore = *m.Device.Spec.ForgetFailuresBefore
	}
	if hold := s.holdOf(m); hold != "" {
		d.AdminHeld, d.HeldReason = true, hold
	}
	if s.Status == nil {
		d.Seen, d.Online, d.LastSeen = true, true, s.Now
		d.Version, d.ProtocolVersion = AssumedVersion, math.MaxInt32
		return d
	}
	rec := s.Status.record(m.ID)
	s.hear(&d, rec, offlineAfter)
	if r := s.Facts[m.ID].Report; r != nil && m.Rendered != nil {
		d.Missing = missing(m.Rendered.Needs, r.Capabilities)
	}
	return d
}

// record is what the status branch knows of a device, also of one that was
// removed and is back.
func (s *Status) record(id string) *Record {
	if rec := s.Devices[id]; rec != nil {
		return rec
	}
	return s.Retired[id]
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

func (s *Scene) removed(rec *Record, offlineAfter time.Duration) planner.Device {
	d := planner.Device{ID: rec.ID, Policy: rec.Status.Policy, Removed: true}
	s.hear(&d, rec, offlineAfter)
	return d
}

// hear fills in what the device said, and its attempts.
func (s *Scene) hear(d *planner.Device, rec *Record, offlineAfter time.Duration) {
	facts := s.Facts[d.ID]
	var observed *schema.Observed
	if rec != nil {
		observed = rec.Status.Observed
		d.Attempts = s.attempts(rec, facts)
	}
	if facts.Report != nil && !older(facts.Report, observed) {
		s.hearReport(d, facts.Report, observed)
	} else if observed != nil && observed.InstallID != "" {
		hearObserved(d, observed)
	} else {
		return
	}
	d.Seen, d.Duplicate = true, facts.Duplicate
	d.LastSeen = facts.LastSeen
	d.Online = s.online(facts, observed, offlineAfter)
	switch {
	case d.Online && d.LastSeen.IsZero():
		d.LastSeen = s.Now
	case !d.Online:
		d.OfflineSince = offlineSince(facts, observed)
		if d.LastSeen.IsZero() {
			d.LastSeen = d.OfflineSince
		}
	}
}

func (s *Scene) hearReport(d *planner.Device, r *schema.Report, observed *schema.Observed) {
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

// messageOf is what a person should read about the report's attempt.
func messageOf(r *schema.Report) string {
	if r.Outcome != "" && r.Outcome != schema.OutcomeOK {
		for i := len(r.Failures) - 1; i >= 0; i-- {
			if f := r.Failures[i]; f.Attempt == r.Attempt {
				return oneLine(f.Message)
			}
		}
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

// online says whether a device was heard from in time. One that stands as
// offline comes back only by a newer report, so that daemons that heard of it
// at different times do not take turns.
func (s *Scene) online(f Facts, o *schema.Observed, configured time.Duration) bool {
	heard := f.Report != nil && newer(f.Report, o)
	if o != nil && !o.Online && !heard {
		return false
	}
	if f.LastSeen.IsZero() || s.NoTimeouts {
		return o == nil || o.Online || heard
	}
	silent := f.LastSeen.Add(offlineLimit(f.Report, configured)).Add(1)
	if !s.Now.Before(silent) {
		return false
	}
	if s.due != nil {
		*s.due = earlier(*s.due, silent)
	}
	return true
}

func offlineSince(f Facts, o *schema.Observed) time.Time {
	if o != nil && !o.Online && o.OfflineSince != nil {
		return *o.OfflineSince
	}
	return stamp(f.LastSeen)
}

func (s *Scene) attempts(rec *Record, facts Facts) []planner.Attempt {
	out := make([]planner.Attempt, 0, len(rec.Status.Attempts))
	for i := range rec.Status.Attempts {
		a := &rec.Status.Attempts[i]
		pa := planner.Attempt{
			Number: a.Attempt, Policy: a.Policy, Line: a.Line, Target: planner.Target{Version: a.Version, Digest: a.Digest},
			Rollout: a.Rollout, Release: a.Release, InstallID: a.InstallID, Pinned: a.Pinned,
			AssignedAt: a.AssignedAt, StartedAt: timeOf(a.StartedAt), OnTargetAt: timeOf(a.OnTargetAt), EndedAt: timeOf(a.EndedAt),
			Outcome: planner.Outcome(a.Outcome), Because: causeOf(a),
		}
		if p, ok := s.Pickup[rec.ID]; ok && p.Attempt == a.Attempt {
			pa.PickupFrom = p.From
		}
		if a.Recall != nil && a.Outcome == "" {
			pa.Recalled = planner.Outcome(a.Recall.Outcome)
		}
		if doc := rec.Assignment; doc != nil && (doc.Spec == nil || doc.Attempt != a.Attempt) {
			pa.RecallDelivered = s.Delivered[rec.ID] && facts.Problem == "" &&
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

// PlanNow says what the next pass would decide. It is pure: nothing is
// fetched, recorded or sent. Without a status, devices are assumed seen,
// online, idle, capable and at [AssumedVersion].
func PlanNow(fleet *schema.Fleet, st *Status, reports map[string]*schema.Report, now time.Time, ownVersion string) planner.Result {
	s := Scene{Fleet: fleet, Status: st, Facts: map[string]Facts{}, Now: now, OwnVersion: ownVersion}
	if st != nil {
		for id := range st.Devices {
			s.Facts[id] = Facts{Duplicate: isDuplicate(st.record(id), nil, false, now)}
		}
	}
	for id, r := range reports {
		f := Facts{Report: r}
		if st != nil {
			f.Duplicate = isDuplicate(st.record(id), r, false, now)
		}
		s.Facts[id] = f
	}
	return planner.Plan(PlannerInput(s))
}
