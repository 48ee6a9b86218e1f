package schema

import (
	"fmt"
	"reflect"
)

// FleetDocument is the document of kind Fleet, fleet.yaml at the root of the
// repository: what holds over all policies. It is optional.
type FleetDocument struct {
	TypeMeta
	Spec FleetSpec `json:"spec"`
}

// FleetSpec is the content of a [FleetDocument].
type FleetSpec struct {
	Paused      *Reason       `json:"paused,omitempty"`
	MaxInFlight *IntOrPercent `json:"maxInFlight,omitempty"` // nil = no limit
	Budgets     []Budget      `json:"budgets,omitempty"`
	Freezes     []Freeze      `json:"freezes,omitempty"`
	// DeletionLimit is how many devices may leave in one change without a
	// word; nil = 20 %, at least 2.
	DeletionLimit *IntOrPercent `json:"deletionLimit,omitempty"`
}

// kindOf is the kind of a Go type: its name, but for the one whose name is
// that of the loaded fleet.
func kindOf(t reflect.Type) Kind {
	if t == reflect.TypeFor[FleetDocument]() {
		return KindFleet
	}
	return Kind(t.Name())
}

func fleetFindings(d *FleetDocument) []finding {
	s := &d.Spec
	var found []finding
	if m := s.MaxInFlight; m != nil && m.Value == 0 {
		found = append(found, finding{pointer: "/spec/maxInFlight", rule: ruleRange,
			msg: fmt.Sprintf("maxInFlight %s would let nobody move", m), hint: "to stop the fleet, give it paused: {reason: …}"})
	}
	if l := s.DeletionLimit; l != nil && l.Percent && l.Value == 100 {
		found = append(found, finding{pointer: "/spec/deletionLimit", rule: ruleLimit, warning: true,
			msg: "all devices but one could leave in one change without a word", hint: "20% is the default"})
	}
	found = append(found, budgetFindings(s.Budgets, "/spec/budgets")...)
	return append(found, freezeFindings(s.Freezes, "/spec/freezes")...)
}
