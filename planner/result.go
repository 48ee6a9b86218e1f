package planner

import "time"

// Decision is what a plan says about one attempt.
type Decision struct {
	Device  string `json:"device"`
	Attempt int64  `json:"attempt"`
	// Exactly one of the following is set.
	Started  bool    `json:"started,omitempty"`   // it has started: record it, with Said.Sequence
	OnTarget bool    `json:"on_target,omitempty"` // ok was reported; it settles from now
	End      Outcome `json:"end,omitempty"`       // it has ended like this (also a correction of Lost or OK)
	Recall   Outcome `json:"recall,omitempty"`    // take it back: Deferred or Unreached
	// Because is for the record: what the device said, or which limit passed.
	Because string `json:"because,omitempty"`
	Stage   string `json:"stage,omitempty"`
}

// Place is the kind of document that a field stands in.
type Place string

// The places of fields.
const (
	InPolicy Place = "policy" // the device's policy
	InFleet  Place = "fleet"  // what holds over all policies
	InDevice Place = "device" // the device's own document
)

// Verdict is the planner's decision about one device.
type Verdict struct {
	Device  Device `json:"-"`
	Upgrade bool   `json:"upgrade"` // true in exactly one case: upgrade it now
	Code    Code   `json:"code"`
	Reason  string `json:"reason"` // one line for git: nothing that ages or moves with other devices
	// Heard says that a soak is over by LastSeen, which the record does not
	// show yet: it is to be recorded as [Device.HeardAt].
	Heard bool `json:"-"`
	// Target is where it should go; its version is "" where there is none.
	Target Target `json:"target,omitzero"`
	// Field is the field of the spec that keeps the device from going, written
	// as in the YAML ("waves[0].soak"), also where it is left to its default;
	// "" = no field decides. FieldIn is the document that it stands in.
	Field   string `json:"field,omitempty"`
	FieldIn Place  `json:"field_in,omitempty"`
	// Detail, Position and NotBefore may name what moves with other devices;
	// they are for plans and never written to a device's status.
	Detail   string `json:"detail,omitempty"`
	Position int    `json:"position,omitempty"` // in the queue of its policy, from 1
	// NotBefore is the earliest time at which what keeps the device can be
	// over, where that is known.
	NotBefore time.Time `json:"not_before,omitzero"`
}

// Summary is what a plan says of one policy. Its numbers count devices. What
// was not asked for is nil: a policy without waves has no summary of them.
type Summary struct {
	Policy    string       `json:"policy"`
	Target    string       `json:"target"`
	N         int          `json:"n"` // valid devices that are not absent
	Slots     int          `json:"slots"`
	InFlight  int          `json:"in_flight"`
	Available int          `json:"available"`
	Failed    int          `json:"failed"`  // devices that count as failed
	Refused   int          `json:"refused"` // devices that count as refused
	Halted    bool         `json:"halted"`
	HaltedBy  []string     `json:"halted_by,omitempty"` // ids
	Counts    map[Code]int `json:"counts"`

	Pilot   *PilotSummary   `json:"pilot,omitempty"`
	Waves   []WaveSummary   `json:"waves,omitempty"` // in their order; the last one is that of the devices without one
	Budgets []BudgetSummary `json:"budgets,omitempty"`
	Windows *WindowSummary  `json:"windows,omitempty"`
	Freeze  *FreezeSummary  `json:"freeze,omitempty"` // the policy's own one in force
	// NextUpgrade is when minInterval lets the next device go; zero = at once.
	NextUpgrade time.Time `json:"next_upgrade,omitzero"`

	Warnings []string `json:"warnings,omitempty"`
}

// PilotSummary is how far the pilot of the present rollout is.
type PilotSummary struct {
	Count    int  `json:"count"`     // devices that must be done and have soaked
	Done     int  `json:"done"`      // are so
	Soaking  int  `json:"soaking"`   // are done, but have not shown that they soaked
	InFlight int  `json:"in_flight"` // under way, in whatever rollout
	Over     bool `json:"over"`      // the others may go
	// SoakingUntil is when the last soak under way ends; zero = none is, or
	// those that are only have to be heard from.
	SoakingUntil time.Time `json:"soaking_until,omitzero"`
}

// WaveSummary is how far a wave is; pinned devices stand outside.
type WaveSummary struct {
	Name      string `json:"name"` // "" = the devices of no other wave
	Open      bool   `json:"open"`
	Satisfied bool   `json:"satisfied"`
	Members   int    `json:"members"`
	Countable int    `json:"countable"` // members whose outcome is waited for, or known
	Successes int    `json:"successes"` // members on their target that have soaked
	Needed    int    `json:"needed"`    // successes that the wave waits for
	InFlight  int    `json:"in_flight"`
	Soaking   int    `json:"soaking"` // on their target, but have not shown that they soaked
	// SoakingUntil is when the last soak under way ends; zero = none is, or
	// those that are only have to be heard from.
	SoakingUntil time.Time `json:"soaking_until,omitzero"`
	Why          string    `json:"why,omitempty"` // it is not satisfied
}

// BudgetSummary is how much of a budget is used.
type BudgetSummary struct {
	GroupBy []string `json:"group_by"`
	Groups  int      `json:"groups"` // that there are
	// Used lists the groups of which a device is unavailable, or waits for
	// this budget, by their labels.
	Used []GroupSummary `json:"used,omitempty"`
}

// GroupSummary is one group of a budget.
type GroupSummary struct {
	Labels      map[string]string `json:"labels"` // without those that its devices lack
	N           int               `json:"n"`      // its devices that are not absent
	Limit       int               `json:"limit"`  // how many may be unavailable
	Unavailable int               `json:"unavailable"`
	Waiting     int               `json:"waiting"` // devices that this budget keeps from going
}

// WindowSummary says when a policy's windows are open.
type WindowSummary struct {
	Open bool `json:"open"`
	// Until is when they close; zero = they are closed, or for more than a
	// year nothing closes them.
	Until time.Time `json:"until,omitzero"`
	// Next is when they open the next time; zero = see Until.
	Next time.Time `json:"next,omitzero"`
}

// FreezeSummary is a freeze in force.
type FreezeSummary struct {
	Note  string    `json:"note,omitempty"`
	Until time.Time `json:"until"` // with those that follow it without a gap
}

// FleetSummary is what a plan says of the limits over all policies.
type FleetSummary struct {
	Problem   string          `json:"problem,omitempty"` // what is wrong with them, so that nobody goes
	Paused    string          `json:"paused,omitempty"`
	N         int             `json:"n"`               // valid devices that are not absent, of any policy or none
	Slots     int             `json:"slots,omitempty"` // 0 = no limit
	InFlight  int             `json:"in_flight"`
	Available int             `json:"available"`
	Budgets   []BudgetSummary `json:"budgets,omitempty"`
	Freeze    *FreezeSummary  `json:"freeze,omitempty"`
	Counts    map[Code]int    `json:"counts"`
}

// Result is a plan: verdicts in the order of the devices, what became of
// attempts (to be recorded before anybody is upgraded), and a summary for
// each policy in the order of the policies.
type Result struct {
	Verdicts  []Verdict
	Decisions []Decision
	Policies  []Summary
	Fleet     FleetSummary
	// NextChange is the earliest time at which the same input with a later
	// Now may be judged otherwise; until then it gives the same plan. Zero is
	// never. It is told where nothing is decided and nobody is upgraded, too.
	NextChange time.Time
}
