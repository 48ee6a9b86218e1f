package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
)

// GroupStanding is how those stand that a device goes with: its policy, its
// wave and the ones before it, the pilot, and the groups of its budgets. What
// the policy does not ask for is left out. Numbers count devices, and slots
// after the next sweep.
type GroupStanding struct {
	Slots        int          `json:"slots"`    // maxInFlight comes to
	InFlight     int          `json:"inFlight"` // slots taken
	Available    int          `json:"available"`
	Devices      int          `json:"devices"` // that limits are counted by
	Failed       int          `json:"failed"`  // count as failed
	FailureLimit int          `json:"failureLimit"`
	Refused      int          `json:"refused"`
	RefusalLimit int          `json:"refusalLimit"`
	Halted       bool         `json:"halted"`
	HaltedBy     []string     `json:"haltedBy"`
	Fleet        *FleetSlots  `json:"fleet,omitempty"` // the limit over all policies
	Pilot        *PilotGroup  `json:"pilot,omitempty"`
	Wave         string       `json:"wave,omitempty"` // of the device; "" = the rest, or there are none
	Waves        []WaveGroup  `json:"waves"`          // up to its own, in their order
	Budgets      []BudgetUse  `json:"budgets"`        // its groups, where one of them is in use
	Windows      *WindowTimes `json:"windows,omitempty"`
	// FrozenUntil is the end of the freeze in force, NextUpgrade when
	// minInterval lets the next one go.
	FrozenUntil *time.Time `json:"frozenUntil,omitempty"`
	NextUpgrade *time.Time `json:"nextUpgrade,omitempty"`
}

// FleetSlots is maxInFlight over all policies.
type FleetSlots struct {
	Slots    int `json:"slots"`
	InFlight int `json:"inFlight"`
}

// PilotGroup is the pilot of a rollout.
type PilotGroup struct {
	Count        int        `json:"count"`
	Done         int        `json:"done"`
	Soaking      int        `json:"soaking"`
	InFlight     int        `json:"inFlight"`
	Over         bool       `json:"over"`
	SoakingUntil *time.Time `json:"soakingUntil,omitempty"`
}

// WaveGroup is one wave of a rollout.
type WaveGroup struct {
	Name         string     `json:"name"` // "" = the rest
	Own          bool       `json:"own"`  // the device is in it
	Open         bool       `json:"open"`
	Satisfied    bool       `json:"satisfied"`
	Members      int        `json:"members"`
	Countable    int        `json:"countable"`
	Done         int        `json:"done"`
	Needed       int        `json:"needed"`
	Soaking      int        `json:"soaking"`
	InFlight     int        `json:"inFlight"`
	SoakingUntil *time.Time `json:"soakingUntil,omitempty"`
}

// BudgetUse is one group of a budget.
type BudgetUse struct {
	Labels      map[string]string `json:"labels"`
	Of          string            `json:"of"` // policy or fleet: where the budget is written
	Devices     int               `json:"devices"`
	Limit       int               `json:"limit"`
	Unavailable int               `json:"unavailable"`
	Waiting     int               `json:"waiting"`
}

// WindowTimes says when a policy may start something.
type WindowTimes struct {
	Open  bool       `json:"open"`
	Until *time.Time `json:"until,omitempty"`
	Next  *time.Time `json:"next,omitempty"`
}

// moment is a time that may not be known.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// standing says how those stand that a device goes with; nil where no policy
// governs it.
func (n *NextSweep) standing() *GroupStanding {
	d := &n.Verdict.Device
	i := slices.IndexFunc(n.Result.Policies, func(s planner.Summary) bool { return s.Policy == d.Policy })
	if i < 0 || d.Policy == "" {
		return nil
	}
	s := &n.Result.Policies[i]
	given := s.Counts[planner.Upgrade]
	g := &GroupStanding{
		Slots: s.Slots, InFlight: s.InFlight + given, Available: s.Available - given, Devices: s.N,
		Failed: s.Failed, FailureLimit: n.Limits.Failures, Refused: s.Refused, RefusalLimit: n.Limits.Refusals,
		Halted: s.Halted, HaltedBy: append([]string{}, s.HaltedBy...), Waves: []WaveGroup{}, Budgets: []BudgetUse{},
		NextUpgrade: moment(s.NextUpgrade),
	}
	if f := &n.Result.Fleet; f.Slots > 0 {
		g.Fleet = &FleetSlots{Slots: f.Slots, InFlight: f.InFlight}
		for i := range n.Result.Policies {
			g.Fleet.InFlight += n.Result.Policies[i].Counts[planner.Upgrade]
		}
	}
	if !d.Pinned {
		g.rollout(s, d.Wave)
	}
	g.budgets("policy", s.Budgets, d)
	g.budgets("fleet", n.Result.Fleet.Budgets, d)
	if w := s.Windows; w != nil {
		g.Windows = &WindowTimes{Open: w.Open, Until: moment(w.Until), Next: moment(w.Next)}
	}
	for _, f := range []*planner.FreezeSummary{s.Freeze, n.Result.Fleet.Freeze} {
		if f != nil && (g.FrozenUntil == nil || f.Until.After(*g.FrozenUntil)) {
			g.FrozenUntil = moment(f.Until)
		}
	}
	return g
}

func (g *GroupStanding) rollout(s *planner.Summary, own string) {
	if p := s.Pilot; p != nil {
		g.Pilot = &PilotGroup{Count: p.Count, Done: p.Done, Soaking: p.Soaking, InFlight: p.InFlight, Over: p.Over, SoakingUntil: moment(p.SoakingUntil)}
	}
	known := slices.ContainsFunc(s.Waves, func(w planner.WaveSummary) bool { return w.Name == own })
	for _, w := range s.Waves {
		is := w.Name == own || !known && w.Name == ""
		g.Waves = append(g.Waves, WaveGroup{
			Name: w.Name, Own: is, Open: w.Open, Satisfied: w.Satisfied, Members: w.Members, Countable: w.Countable,
			Done: w.Successes, Needed: w.Needed, Soaking: w.Soaking, InFlight: w.InFlight, SoakingUntil: moment(w.SoakingUntil),
		})
		if is {
			g.Wave = w.Name
			return
		}
	}
}

func (g *GroupStanding) budgets(of string, list []planner.BudgetSummary, d *planner.Device) {
	for _, b := range list {
		for _, u := range b.Used {
			same := !slices.ContainsFunc(b.GroupBy, func(label string) bool {
				was, has := u.Labels[label]
				is, owns := d.Labels[label]
				return has != owns || was != is
			})
			if same {
				g.Budgets = append(g.Budgets, BudgetUse{Labels: u.Labels, Of: of, Devices: u.N, Limit: u.Limit, Unavailable: u.Unavailable, Waiting: u.Waiting})
			}
		}
	}
}

// lines says it in words, the nearest to the device last. head is whose, and by
// what.
func (g *GroupStanding) lines(head string) []string {
	parts := []string{fmt.Sprintf("%s: %d of %d slots taken", head, g.InFlight, g.Slots), fmt.Sprintf("%d of %d available", g.Available, g.Devices)}
	if g.Failed > 0 || g.Halted {
		parts = append(parts, fmt.Sprintf("%d failed, allowed %d", g.Failed, g.FailureLimit))
	}
	if g.Refused > 0 {
		parts = append(parts, fmt.Sprintf("%d refused, allowed %d", g.Refused, g.RefusalLimit))
	}
	if g.NextUpgrade != nil {
		parts = append(parts, "the next one may go at "+Stamp(*g.NextUpgrade))
	}
	lines := []string{strings.Join(parts, " · ")}
	if f := g.Fleet; f != nil {
		lines = append(lines, fmt.Sprintf("the whole fleet: %d of %d slots taken", f.InFlight, f.Slots))
	}
	if w := g.Windows; w != nil {
		switch {
		case w.Open && w.Until != nil:
			lines = append(lines, "windows: open until "+Stamp(*w.Until))
		case w.Open:
			lines = append(lines, "windows: open")
		case w.Next != nil:
			lines = append(lines, "windows: closed until "+Stamp(*w.Next))
		default:
			lines = append(lines, "windows: closed, and none opens")
		}
	}
	if g.FrozenUntil != nil {
		lines = append(lines, "frozen until "+Stamp(*g.FrozenUntil))
	}
	if p := g.Pilot; p != nil {
		text := fmt.Sprintf("pilot: %d of %d done", p.Done, p.Count)
		if p.Over {
			text += ", it is over"
		} else {
			text += underway(p.InFlight, p.Soaking, p.SoakingUntil)
		}
		lines = append(lines, text)
	}
	for i := range g.Waves {
		lines = append(lines, g.Waves[i].line())
	}
	for _, b := range g.Budgets {
		lines = append(lines, b.line())
	}
	return lines
}

func (w *WaveGroup) line() string {
	name := "wave " + w.Name
	if w.Name == "" {
		name = "the last wave"
	}
	if w.Own {
		name += " (its own)"
	}
	if !w.Open {
		return name + ": not open yet, " + counted(w.Members, "device")
	}
	text := fmt.Sprintf("%s: %d of %d done", name, w.Done, w.Countable)
	if w.Satisfied {
		return text + ", satisfied"
	}
	return text + fmt.Sprintf(", needs %d", w.Needed) + underway(w.InFlight, w.Soaking, w.SoakingUntil)
}

func (b *BudgetUse) line() string {
	labels := make([]string, 0, len(b.Labels))
	for k, v := range b.Labels {
		labels = append(labels, k+"="+v)
	}
	slices.Sort(labels)
	text := fmt.Sprintf("budget of the %s, %s: %d of %d unavailable, allowed %d", b.Of, or(strings.Join(labels, " "), "without its labels"), b.Unavailable, b.Devices, b.Limit)
	if b.Waiting > 0 {
		text += fmt.Sprintf(", %d wait", b.Waiting)
	}
	return text
}

// underway says what a pilot or a wave still waits for.
func underway(inFlight, soaking int, until *time.Time) string {
	text := ""
	if inFlight > 0 {
		text += fmt.Sprintf(", %d in flight", inFlight)
	}
	switch {
	case soaking > 0 && until != nil:
		text += fmt.Sprintf(", %d soaking until %s", soaking, Stamp(*until))
	case soaking > 0:
		text += fmt.Sprintf(", %d to be heard from after its soak", soaking)
	}
	return text
}
