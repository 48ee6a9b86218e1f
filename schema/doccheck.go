package schema

import (
	"fmt"
	"reflect"
)

// finding is a problem whose place is still a pointer.
type finding struct {
	pointer string
	rule    string
	msg     string
	hint    string
	atKey   bool // the key is wrong, not the value
	line    int  // within a multi-line value, from 1; 0 = its beginning
	warning bool
}

// documentChecks are the checks of one document that a schema cannot say.
func documentChecks(doc *document, dst reflect.Value) []Problem {
	var found []finding
	switch v := dst.Addr().Interface().(type) {
	case *Policy:
		found = policyFindings(v)
	case *FleetDocument:
		found = fleetFindings(v)
	case *Brake:
		v.APIVersion, v.Kind = APIVersion, KindBrake // they may be left out
	case *Release:
		found = writtenFindings(v.Spec, "/spec")
	case *Overlay:
		found = append(selectorFindings(v.Spec.Selector, "/spec/selector"), writtenFindings(v.Spec.Desired, "/spec/desired")...)
		found = append(found, secretFindings(v.Spec.Vars)...)
	case *Device:
		found = append(writtenFindings(v.Spec.Desired, "/spec/desired"), secretFindings(v.Spec.Vars)...)
		if v.Spec.Pin != "" && !isVersion(v.Spec.Pin) {
			found = append(found, finding{pointer: "/spec/pin", rule: ruleVersion, msg: fmt.Sprintf("%s is no version", quote(v.Spec.Pin)), hint: versionHint})
		}
	case *Assignment:
		found = append(valueFindings(v.Spec, "/spec"), completeFindings(v.Spec, "/spec")...)
	}
	problems := make([]Problem, 0, len(found))
	for _, f := range found {
		problems = append(problems, doc.place(f))
	}
	return problems
}

// place turns a finding into a problem with its position.
func (d *document) place(f finding) Problem {
	p := d.problem(f.pointer, f.rule, f.msg, f.hint)
	if f.atKey {
		p = d.keyProblem(f.pointer, f.rule, f.msg, f.hint)
	}
	if f.warning {
		p.Severity = SeverityWarning
	}
	if f.line > 0 {
		_, at, exact := d.locate(splitPointer(f.pointer))
		if exact && isBlock(at) {
			p.Line, p.Column = at.Line+f.line, 0 // the text begins in the line after | or >
		} else if f.line > 1 {
			p.Message += fmt.Sprintf(" (line %d of the value)", f.line)
		}
	}
	return p
}

func policyFindings(p *Policy) []finding {
	s := &p.Spec
	found := selectorFindings(s.Selector, "/spec/selector")
	if m := s.MaxInFlight; m != nil && m.Value == 0 {
		found = append(found, finding{pointer: "/spec/maxInFlight", rule: ruleRange,
			msg: fmt.Sprintf("maxInFlight %s would let nobody move", m), hint: "to stop a policy, give it paused: {reason: …}"})
	}
	if s.TargetVersion != "" && !isVersion(s.TargetVersion) {
		found = append(found, finding{pointer: "/spec/targetVersion", rule: ruleVersion,
			msg: fmt.Sprintf("%s is no version", quote(s.TargetVersion)), hint: versionHint})
	}
	for i, v := range s.RollbackFrom {
		if !isVersion(v) {
			found = append(found, finding{pointer: fmt.Sprintf("/spec/rollbackFrom/%d", i), rule: ruleVersion,
				msg: fmt.Sprintf("%s is no version", quote(v)), hint: versionHint})
		} else if s.TargetVersion != "" && numbers(v) == numbers(s.TargetVersion) {
			found = append(found, finding{pointer: fmt.Sprintf("/spec/rollbackFrom/%d", i), rule: ruleRollbackTarget, warning: true,
				msg:  fmt.Sprintf("%s is the target, and named as a version to come down from", v),
				hint: "take it out of the list if the release is good now; if not, name another target"})
		}
	}
	found = append(found, waveFindings(s.Waves, "/spec/waves")...)
	found = append(found, budgetFindings(s.Budgets, "/spec/budgets")...)
	found = append(found, windowFindings(s.Windows, "/spec/windows")...)
	found = append(found, freezeFindings(s.Freezes, "/spec/freezes")...)
	return append(found, limitFindings(s)...)
}

// limitFindings warn of limits that can never work, whatever the fleet is.
func limitFindings(s *PolicySpec) []finding {
	var found []finding
	warn := func(field, msg, hint string) {
		found = append(found, finding{pointer: "/spec/" + field, rule: ruleLimit, msg: msg, hint: hint, warning: true})
	}
	if s.UpdateTimeout != nil && *s.UpdateTimeout == 0 {
		warn("updateTimeout", "no update can be done in no time: each would count as lost", "leave it out for the default")
	}
	if s.PickupTimeout != nil && *s.PickupTimeout == 0 {
		warn("pickupTimeout", "every assignment would be taken back at once", "leave it out for the default")
	}
	if b := s.Backoff; b != nil && b.Base != nil && b.Cap != nil && *b.Cap < *b.Base {
		warn("backoff/cap", fmt.Sprintf("the cap %s is below the base %s", b.Cap, b.Base), "")
	}
	if s.OfflineGrace != nil && s.AbsentAfter != nil && *s.AbsentAfter <= *s.OfflineGrace {
		warn("offlineGrace", fmt.Sprintf("devices would be absent after %s, before the grace of %s is over", s.AbsentAfter, s.OfflineGrace), "")
	}
	if s.OfflineAfter != nil && s.AbsentAfter != nil && *s.AbsentAfter < *s.OfflineAfter {
		warn("absentAfter", fmt.Sprintf("devices would be absent after %s, before they are offline after %s", s.AbsentAfter, s.OfflineAfter), "")
	}
	if l := s.FailureLimit; l != nil && l.Percent && l.Value == 100 {
		warn("failureLimit", "the policy would never halt, whatever fails", "a small count, such as 1, stops a bad release early")
	}
	if m := s.MinAvailable; m != nil && m.Percent && m.Value == 100 {
		warn("minAvailable", "all devices can never stay available while one moves; one less is what holds", "")
	}
	return found
}

func selectorFindings(s *Selector, at string) []finding {
	if s == nil {
		return nil
	}
	var found []finding
	for i, r := range s.MatchExpressions {
		here := fmt.Sprintf("%s/matchExpressions/%d", at, i)
		switch r.Operator {
		case OpIn, OpNotIn:
			if len(r.Values) == 0 {
				found = append(found, finding{pointer: here, rule: ruleSelector, msg: fmt.Sprintf("the operator %s needs values", r.Operator), hint: "add values: [ … ]"})
			}
		case OpExists, OpDoesNotExist:
			if len(r.Values) > 0 {
				found = append(found, finding{pointer: here + "/values", rule: ruleSelector, msg: fmt.Sprintf("the operator %s takes no values", r.Operator), hint: "remove them, or use In"})
			}
		}
	}
	return found
}
