package sweep

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// Scene is what a plan is made of: the fleet as it should be, the status
// branch, and what was heard from the devices.
type Scene struct {
	Fleet  *schema.Fleet
	Status *Status               // nil = devices are assumed seen, online, idle, capable, at v0.0.0
	Heard  func(id string) Heard // nil = nothing; only what the status branch observed counts

	Now        time.Time
	OwnVersion string
	Watching   time.Time // start of the unbroken series of passes; zero = for ever
	Stopped    string    // a stop's reason; "" = none
	NoTimeouts bool
	Restrict   Restrictions

	Delivered map[string]bool   // devices whose delivery is known to be as it should
	Pickup    map[string]Pickup // devices whose pickup clock was restarted
}

// clock is what a scene knows of the time.
type clock struct {
	now        time.Time
	noTimeouts bool // it cannot be trusted
}

func (s *Scene) clock() clock { return clock{s.Now, s.NoTimeouts} }

// AssumedVersion is what a device that has applied nothing reports.
const AssumedVersion = "v0.0.0"

// PlannerInput maps a scene to the planner's values. Devices are in the order
// of the fleet; removed ones that still count come after them, by id.
func PlannerInput(s Scene) planner.Input {
	in := s.input()
	in.Devices = make([]planner.Device, 0, len(s.Fleet.Devices))
	standing := 0
	for _, m := range s.Fleet.Devices {
		k := s.known(m)
		if k.stands() {
			standing++
		}
		d, _ := k.look(s.clock())
		if s.Status == nil {
			d.Seen, d.Online, d.LastSeen = true, true, s.Now
			d.Version, d.ProtocolVersion = AssumedVersion, math.MaxInt32
		}
		in.Devices = append(in.Devices, d)
	}
	for _, k := range s.removed(standing) {
		d, _ := k.look(s.clock())
		in.Devices = append(in.Devices, d)
	}
	return in
}

// PlannerRules is all of a planner's input but the devices: what is asked of
// them, for those who only look at that.
func PlannerRules(s Scene) planner.Input { return s.input() }

// input is all of a planner's input but the devices.
func (s *Scene) input() planner.Input {
	in := planner.Input{
		Now: s.Now, OwnVersion: s.OwnVersion, Watching: s.Watching, Stopped: s.Stopped, NoTimeouts: s.NoTimeouts,
		Fleet:    s.fleetLimits(),
		Policies: make([]planner.Policy, 0, len(s.Fleet.Policies)),
	}
	for _, p := range s.Fleet.Policies {
		in.Policies = append(in.Policies, s.policy(p))
	}
	return in
}

// known is what a scene knows of a device of the fleet.
func (s *Scene) known(m *schema.Member) known {
	k := known{member: m, policy: s.Fleet.Policy(m.Policy)}
	if why, ok := s.Restrict.Hold[m.ID]; ok {
		k.restricted = or(oneLine(why), "held")
	}
	if s.Status != nil {
		s.hear(&k, m.ID, s.Status.record(m.ID))
	}
	return k
}

// removed are the devices that left the fleet and still count, by id. standing
// is how many of the fleet's are among those of the status branch.
func (s *Scene) removed(standing int) []known {
	if s.Status == nil {
		return nil
	}
	var gone []known
	if standing < len(s.Status.Devices) {
		for id, rec := range s.Status.Devices {
			if s.Fleet.Member(id) == nil {
				k := known{policy: s.Fleet.Policy(rec.Status.Policy)}
				s.hear(&k, id, rec)
				gone = append(gone, k)
			}
		}
	}
	for id, rec := range s.Status.Retired {
		if s.Fleet.Member(id) == nil && counts(rec.Status) {
			gone = append(gone, known{record: rec})
		}
	}
	slices.SortFunc(gone, func(a, b known) int {
		return cmp.Or(cmp.Compare(a.record.ID, b.record.ID), cmp.Compare(a.record.Path, b.record.Path))
	})
	return gone
}

func (s *Scene) hear(k *known, id string, rec *Record) {
	k.record, k.delivered, k.pickup = rec, s.Delivered[id], s.Pickup[id]
	if s.Heard != nil {
		k.heard = s.Heard(id)
	}
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
	s.steps(&out, spec)
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

// observes says whether a device is to be compared with its spec, and no more.
func observes(m *schema.Member) bool {
	return m.Rendered != nil && slices.Contains(m.Rendered.Needs, schema.NeedsObserve)
}

// releaseOf is what an attempt of a device says of releases.
func releaseOf(fleet *schema.Fleet, m *schema.Member) string {
	if ownSpec(m) || observes(m) {
		return planner.ReleaseNone
	}
	return fleet.ReleaseDigest(m.Line, m.Version)
}

// record is what the status branch knows of a device, also of one that was
// removed and is back.
func (s *Status) record(id string) *Record {
	if rec := s.Devices[id]; rec != nil {
		return rec
	}
	return s.Retired[id]
}

// PlanNow says what the next pass would decide. It is pure: nothing is
// fetched, recorded or sent. A device was heard when its report says that it
// was made. Without a status, devices are assumed seen,
// online, idle, capable and at [AssumedVersion].
func PlanNow(fleet *schema.Fleet, st *Status, reports map[string]*schema.Report, now time.Time, ownVersion string) planner.Result {
	heard := func(id string) Heard { return HeardOf(reports[id], now) }
	return planner.Plan(PlannerInput(Scene{Fleet: fleet, Status: st, Heard: heard, Now: now, OwnVersion: ownVersion}))
}
