package planner

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// fleetWide is what holds over all policies, and what was counted for it.
type fleetWide struct {
	Fleet
	bad         problem
	n, inFlight int
	available   int
	slots       int // math.MaxInt = no limit
	holders     []string
	budgets     []*budget
	frozen      frozen
}

func newFleet(f Fleet) fleetWide {
	e := fleetWide{Fleet: f, bad: f.problem(), slots: math.MaxInt, frozen: frozen{by: -1}}
	if e.bad.text == "" {
		e.budgets = newBudgets(f.Budgets, true)
	}
	return e
}

// setLimits turns the limits into counts, once N is known.
func (f *fleetWide) setLimits() {
	f.inFlight = len(f.holders)
	switch {
	case f.bad.text != "":
		return // nobody goes
	case f.MaxInFlight > 0:
		f.slots = f.MaxInFlight
	case f.MaxInFlightPercent > 0:
		f.slots = max(1, percentDown(f.MaxInFlightPercent, f.n))
	}
	for _, b := range f.budgets {
		b.setLimits()
	}
}

// queueText names what takes the slots of the fleet.
func (f *fleetWide) queueText() string {
	limit := fmt.Sprintf("maxInFlight %d", f.slots)
	if f.MaxInFlightPercent > 0 {
		limit = fmt.Sprintf("maxInFlight %d%% of %d", f.MaxInFlightPercent, f.n)
	}
	return fmt.Sprintf("no slot is free in the fleet: %s, taken by %s", limit, few(slices.Sorted(slices.Values(f.holders))))
}

func (pl *plan) fleetSummary() FleetSummary {
	f := &pl.fleet
	s := FleetSummary{
		Problem: f.bad.text, Paused: word(f.Paused), N: f.n, InFlight: f.inFlight, Available: f.available,
		Budgets: budgetSummaries(f.budgets), Freeze: f.frozen.summary(), Counts: map[Code]int{},
	}
	if f.slots != math.MaxInt {
		s.Slots = f.slots
	}
	maps.Copy(s.Counts, pl.none.counts)
	for _, p := range pl.policies {
		for code, n := range p.counts {
			s.Counts[code] += n
		}
	}
	return s
}
