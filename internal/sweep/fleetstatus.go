package sweep

import (
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// shownNext is how many of the queue fleet.yaml names: enough to see who
// comes, few enough that a step of the queue is a small change.
const shownNext = 5

// shownDevices bounds what fleet.yaml names of the devices of a rollout that
// are in flight or failed, and the marks of a version: of a large fleet all
// of them would be more than a document may hold.
const shownDevices = 1000

// States of a rollout.
const (
	stateOff     = "off"
	statePaused  = "paused"
	stateHalted  = "halted"
	stateRolling = "rolling"
	stateWaiting = "waiting"
	stateDone    = "done"
)

// fleetStatus is the document about the whole fleet. Where nothing could be
// planned, only its conditions are new.
func (p *pass) fleetStatus() *schema.FleetStatus {
	f := &schema.FleetStatus{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindFleetStatus},
		Format:   Format,
		SweptAt:  p.now,
		Counts:   map[string]int{},
		Rollouts: []schema.RolloutStatus{},
	}
	if old := p.status.Fleet; old != nil && p.fleet == nil {
		copied := *old
		f = &copied
		f.SweptAt = p.now
	}
	f.Conditions = p.conditions()
	if p.fleet == nil {
		return f
	}
	f.SourceCommit, f.Subject, f.Author = p.fleet.commit, p.fleet.subject, p.fleet.author
	for i := range p.final.Verdicts {
		f.Counts[verdictForGit(&p.final.Verdicts[i]).Code]++
	}
	f.Rollouts = p.rollouts()
	return f
}

// sameFleet compares all but the time of the last change.
func sameFleet(a, b *schema.FleetStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.SweptAt = y.SweptAt
	return reflect.DeepEqual(normal(x), normal(y))
}

// normal makes documents comparable that were written by two roads: lists
// that are empty are not nil.
func normal(f schema.FleetStatus) schema.FleetStatus {
	if f.Conditions == nil {
		f.Conditions = []schema.Condition{}
	}
	if f.Rollouts == nil {
		f.Rollouts = []schema.RolloutStatus{}
	}
	if len(f.Counts) == 0 {
		f.Counts = map[string]int{}
	}
	return f
}

// rollouts is the progress of every policy.
func (p *pass) rollouts() []schema.RolloutStatus {
	type queued struct {
		id       string
		position int
	}
	out := make([]schema.RolloutStatus, len(p.fleet.fleet.Policies))
	index := map[string]int{}
	queue := map[string][]queued{}
	beyond := make([]int, len(out)) // devices that are newer than the target: nothing is to be done there
	for i, policy := range p.fleet.fleet.Policies {
		name := policy.Metadata.Name
		index[name] = i
		out[i] = schema.RolloutStatus{
			Policy: name, Line: lineOf(policy), Version: policy.Spec.TargetVersion,
			InFlight: []schema.InFlight{}, Next: []string{}, Failed: []string{},
		}
	}
	kinds := map[planner.Code]planner.Kind{} // asked for every device
	for _, c := range planner.Codes() {
		kinds[c.Code] = c.Kind
	}
	for i := range p.final.Verdicts {
		v := &p.final.Verdicts[i]
		at, ok := index[v.Device.Policy]
		if !ok {
			continue
		}
		r := &out[at]
		r.Total++
		if r.Rollout == "" && !v.Device.Pinned {
			r.Rollout = v.Device.Rollout
		}
		switch kinds[v.Code] {
		case planner.Attention:
			r.Attention++
		case planner.Wait, planner.Go:
			r.Waiting++
		case planner.InFlight:
			r.Moving++
		}
		switch v.Code {
		case planner.Current:
			r.Done++
		case planner.Newer:
			beyond[at]++
		case planner.Queued, planner.FleetGuard, planner.CodeBudget:
			queue[r.Policy] = append(queue[r.Policy], queued{v.Device.ID, v.Position})
			if v.Code != planner.Queued || r.Limit == "" {
				r.Limit = string(v.Code)
			}
		}
		if v.Code == planner.CodeFailed || v.Code == planner.CodeRefused {
			r.Failed = append(r.Failed, v.Device.ID)
		}
	}
	for i := range out {
		r := &out[i]
		waiting := queue[r.Policy]
		sort.Slice(waiting, func(a, b int) bool { return waiting[a].position < waiting[b].position })
		for _, q := range waiting[:min(len(waiting), shownNext)] {
			r.Next = append(r.Next, q.id)
		}
		slices.Sort(r.Failed)
		r.Failed = r.Failed[:min(len(r.Failed), shownDevices)]
	}
	p.inFlight(out, index)
	for i, s := range p.final.Policies {
		if i < len(out) && s.Policy == out[i].Policy {
			out[i].Version = s.Target
			progress(&out[i], &s, &p.final.Fleet)
			out[i].State = p.stateOf(p.fleet.fleet.Policies[i], s, &out[i], out[i].Done+beyond[i])
		}
	}
	return out
}

// inFlight lists who holds a slot of which policy: an attempt belongs to the
// policy that made it.
func (p *pass) inFlight(out []schema.RolloutStatus, index map[string]int) {
	for _, st := range p.standing(p.status.counted().open) {
		a := lastAttempt(st)
		if a == nil || a.Outcome != "" {
			continue
		}
		at, ok := index[a.Policy]
		if !ok {
			continue
		}
		since := a.AssignedAt
		if a.StartedAt != nil {
			since = *a.StartedAt
		}
		out[at].InFlight = append(out[at].InFlight, schema.InFlight{
			Device: st.Metadata.Name, Attempt: a.Attempt, Version: a.Version, Since: since, Started: a.StartedAt != nil,
		})
	}
	for i := range out {
		slices.SortFunc(out[i].InFlight, func(a, b schema.InFlight) int {
			if a.Device < b.Device {
				return -1
			}
			return 1
		})
		out[i].InFlight = out[i].InFlight[:min(len(out[i].InFlight), shownDevices)]
	}
}

// standing gives, by id, what will stand of these devices and of all that may
// change.
func (p *pass) standing(ids map[string]bool) []*schema.DeviceStatus {
	statuses := make([]*schema.DeviceStatus, 0, len(ids)+len(p.drafts))
	drafted := make(map[string]bool, len(p.drafts))
	for _, dr := range p.drafts {
		drafted[dr.id] = true
		statuses = append(statuses, dr.status)
	}
	for id := range ids {
		if !drafted[id] {
			statuses = append(statuses, p.status.Devices[id].Status)
		}
	}
	slices.SortFunc(statuses, func(a, b *schema.DeviceStatus) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return statuses
}

// stateOf is a rollout in one word; there is the number of its devices that
// are where they should be. One that nobody has done is not done, whatever
// keeps them: held, away, or no devices at all.
func (p *pass) stateOf(policy *schema.Policy, s planner.Summary, r *schema.RolloutStatus, there int) string {
	_, paused := p.restrict.Paused[s.Policy]
	switch {
	case !policy.Spec.Enabled || p.restrict.Disabled[s.Policy]:
		return stateOff
	case policy.Spec.Paused != nil || paused || p.final.Fleet.Paused != "":
		return statePaused
	case s.Halted:
		return stateHalted
	case len(r.InFlight) > 0 || len(r.Next) > 0:
		return stateRolling
	case r.Total == 0 || there < r.Total:
		return stateWaiting
	}
	return stateDone
}

// failureMarks is the view of the attempts that failed, by path.
func (p *pass) failureMarks() map[string]*schema.FailureMarks {
	marks := map[string]*schema.FailureMarks{}
	halted := map[string]bool{}
	for _, s := range p.final.Policies {
		if s.Halted {
			halted[marksPath(s.Policy, s.Target)] = true
		}
	}
	add := func(st *schema.DeviceStatus) {
		for i := range st.Attempts {
			a := &st.Attempts[i]
			if !isFailure(a.Outcome) || a.Policy == "" || a.Version == "" {
				continue
			}
			at := marksPath(a.Policy, a.Version)
			m := marks[at]
			if m == nil {
				m = &schema.FailureMarks{
					TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindFailureMarks},
					Metadata: schema.Metadata{Name: a.Version},
					Policy:   a.Policy, Line: a.Line, Version: a.Version, Halted: halted[at],
				}
				marks[at] = m
			}
			m.Marks = append(m.Marks, schema.FailureMark{
				Device: st.Metadata.Name, Attempt: a.Attempt, Outcome: a.Outcome, Digest: a.Digest, Rollout: a.Rollout,
				At: timeOf(a.EndedAt), Stage: a.Stage, Message: a.Message,
			})
		}
	}
	for _, st := range p.standing(p.status.counted().failed) {
		add(st)
	}
	for _, id := range slices.Sorted(maps.Keys(p.status.Retired)) {
		// Who is back took its past along.
		if p.fleet.fleet.Member(id) == nil && p.status.Devices[id] == nil {
			add(p.status.Retired[id].Status)
		}
	}
	for _, m := range marks {
		slices.SortFunc(m.Marks, func(a, b schema.FailureMark) int {
			return byDevice(Move{Device: a.Device, Attempt: a.Attempt}, Move{Device: b.Device, Attempt: b.Attempt})
		})
		m.Marks = m.Marks[:min(len(m.Marks), shownDevices)]
	}
	return marks
}
