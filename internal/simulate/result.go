package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// Kind is the kind of the document.
const Kind = "Simulation"

// simulation collects what happened.
func (r *run) simulation() *Simulation {
	s := &Simulation{
		TypeMeta:    schema.TypeMeta{APIVersion: schema.APIVersion, Kind: Kind},
		Assumptions: r.cfg.Assume, Assumed: r.cfg.Unknown, By: r.cfg.By,
		Start: r.start, End: r.now, State: Unfinished,
		InFlight: r.tally.inFlight, Working: r.tally.atWork,
		Sites: []SitePeak{}, Policies: []Policy{}, Never: []Obstacle{}, Devices: []Device{},
		Counts: map[string]int{}, Plans: r.plans, Warnings: r.warnings(),
	}
	if r.over || !r.nextSweepExists() {
		s.State = Finished
	}
	for i := range r.last.Verdicts {
		s.addDevice(r.shown[i].record, &r.last.Verdicts[i])
	}
	for _, name := range slices.Sorted(maps.Keys(r.tally.sites)) {
		if t := r.tally.sites[name]; t.of > 0 {
			s.Sites = append(s.Sites, SitePeak{Site: name, Of: t.of, Peak: t.peak})
		}
	}
	for i := range r.last.Policies {
		s.addPolicy(r.in.Policies[i], &r.last.Policies[i])
	}
	s.addObstacles(r.last.Verdicts)
	return s
}

func (s *Simulation) addDevice(d Device, v *planner.Verdict) {
	d.Code, d.Reason = string(v.Code), v.Reason
	switch {
	case v.Code != planner.Current:
		d.DoneAt = time.Time{}
	case !d.Current && d.DoneAt.IsZero():
		d.DoneAt = s.End
	}
	s.Counts[d.Code]++
	s.Total++
	switch {
	case v.Code == planner.Current && d.Current:
		s.Current++
	case v.Code == planner.Current:
		s.Arrived++
		s.DoneAt = later(s.DoneAt, d.DoneAt)
	case v.Code != planner.Excluded:
		s.Remaining++
	}
	s.Devices = append(s.Devices, d)
}

func (s *Simulation) addPolicy(p planner.Policy, sum *planner.Summary) {
	out := Policy{Policy: sum.Policy, Target: sum.Target, Failed: sum.Failed, Refused: sum.Refused, Halted: sum.Halted, Waves: []Wave{}}
	order := map[string]int{}
	for i, w := range p.Waves {
		if _, twice := order[w.Name]; !twice {
			order[w.Name] = i
		}
	}
	waves := make([]*waveTally, len(p.Waves)+1)
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Policy != p.Name || p.Name == "" {
			continue
		}
		at, name := len(p.Waves), ""
		if w, ok := order[d.Wave]; ok {
			at, name = w, d.Wave
		}
		if waves[at] == nil {
			waves[at] = &waveTally{Wave: Wave{Wave: name, Sites: []Site{}}, sites: map[string]*Site{}}
		}
		w := waves[at]
		site := w.sites[d.Site]
		if site == nil {
			site = &Site{Site: d.Site}
			w.sites[d.Site] = site
		}
		for _, p := range []*Progress{&out.Progress, &w.Progress, &site.Progress} {
			p.add(d)
		}
	}
	for _, w := range waves {
		if w == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(w.sites)) {
			w.Sites = append(w.Sites, *w.sites[name])
		}
		out.Waves = append(out.Waves, w.Wave)
	}
	s.Policies = append(s.Policies, out)
}

// warnings are about policies that give up updates which are only slow, and
// about sites that nothing tells apart.
func (r *run) warnings() []string {
	list := []string{}
	if r.cfg.By != DefaultBy && len(r.shown) > 0 && !slices.ContainsFunc(r.shown, func(d *device) bool { return d.record.Site != "" }) {
		list = append(list, fmt.Sprintf("no device has the label %s, so sites are not told apart", r.cfg.By))
	}
	slowest := time.Duration(float64(r.cfg.Assume.UpdateTime) * (1 + spread))
	for i := range r.in.Policies {
		p := r.policyNamed(r.in.Policies[i].Name)
		if p.Enabled && slowest > p.UpdateTimeout {
			list = append(list, fmt.Sprintf("%s: an update may take %s here, and the policy's updateTimeout is %s: the slow ones count as lost",
				p.Name, schema.Duration(slowest.Round(time.Second)), schema.Duration(p.UpdateTimeout)))
		}
	}
	return list
}

// waveTally is a wave in the making.
type waveTally struct {
	Wave
	sites map[string]*Site
}

func (p *Progress) add(d *Device) {
	p.Devices++
	switch {
	case d.Code != string(planner.Current):
	case d.Current:
		p.Current++
	default:
		p.Arrived++
		p.DoneAt = later(p.DoneAt, d.DoneAt)
	}
	if !d.AssignedAt.IsZero() && (p.FirstAt.IsZero() || d.AssignedAt.Before(p.FirstAt)) {
		p.FirstAt = d.AssignedAt
	}
}

// addObstacles groups those who do not get there by what keeps them.
func (s *Simulation) addObstacles(verdicts []planner.Verdict) {
	type key struct{ policy, code, reason, detail string }
	groups := map[key]*Obstacle{}
	for i := range verdicts {
		v := &verdicts[i]
		if v.Code == planner.Current || v.Code == planner.Excluded {
			continue
		}
		k := key{v.Device.Policy, string(v.Code), v.Reason, v.Detail}
		if isOwn(v.Code) {
			k.reason, k.detail = "", ""
		}
		o := groups[k]
		if o == nil {
			o = &Obstacle{Policy: k.policy, Code: k.code, Reason: v.Reason, Detail: v.Detail}
			groups[k] = o
		}
		o.Devices = append(o.Devices, v.Device.ID)
	}
	order := map[string]int{}
	for i, c := range planner.Codes() {
		order[string(c.Code)] = i
	}
	for _, o := range groups {
		slices.Sort(o.Devices)
		s.Never = append(s.Never, *o)
	}
	slices.SortFunc(s.Never, func(a, b Obstacle) int {
		return cmp.Or(strings.Compare(a.Policy, b.Policy), cmp.Compare(order[a.Code], order[b.Code]), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Detail, b.Detail))
	})
}

// isOwn says whether the reason of a verdict has the device's own time in it:
// that of one stands for all.
func isOwn(c planner.Code) bool {
	switch c {
	case planner.Upgrading, planner.Offline, planner.Absent, planner.CodeFailed, planner.CodeRefused, planner.CodeBackoff, planner.Observing:
		return true
	}
	return false
}

// reached is how far a release got of which every update failed.
func (s *Simulation) reached() *BadRelease {
	bad := &BadRelease{Policies: []Reached{}}
	at := map[string]int{}
	for _, p := range s.Policies {
		at[p.Policy] = len(bad.Policies)
		bad.Policies = append(bad.Policies, Reached{Policy: p.Policy, Target: p.Target, Halted: p.Halted})
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		n, known := at[d.Policy]
		if !known || d.Pinned || d.StartedAt.IsZero() && (d.Current || !moves(planner.Code(d.Code))) {
			continue
		}
		p := &bad.Policies[n]
		p.Of++
		if d.StartedAt.IsZero() {
			continue
		}
		p.Started++
		bad.Started++
		p.LastAt = later(p.LastAt, d.StartedAt)
	}
	bad.Policies = slices.DeleteFunc(bad.Policies, func(p Reached) bool { return p.Of == 0 })
	return bad
}

// moves says whether a device with this verdict is to move to something.
func moves(c planner.Code) bool {
	switch c {
	case planner.Current, planner.Newer, planner.Excluded, planner.Disabled, planner.NoTarget, planner.BadInput,
		planner.BadPolicy, planner.UnknownVersion, planner.Observing:
		return false
	}
	return true
}
