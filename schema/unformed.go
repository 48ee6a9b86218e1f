package schema

import "strings"

// unformedFindings are what else is wrong in the desired spec of a document that
// has not the form of its kind, so that people need not mend it in stages. It is
// silent around what has not the form: what that should mean, nobody knows.
func unformedFindings(doc *document, kind Kind, known []Problem) []Problem {
	spec, at := mapOf(mapOf(doc.value)["spec"]), "/spec"
	switch kind {
	case KindRelease:
	case KindOverlay, KindDevice:
		spec, at = mapOf(spec["desired"]), "/spec/desired"
	default:
		return nil
	}
	var problems []Problem
	for _, f := range writtenFindings(spec, at) {
		if len(known)+len(problems) >= maxProblems {
			break
		}
		if !isNearProblem(f.pointer, at, known) {
			problems = append(problems, doc.place(f))
		}
	}
	return problems
}

// isNearProblem says whether a pointer leads to what has a problem, around it, or
// into the same unit, file or application, in a spec at another pointer.
func isNearProblem(pointer, at string, known []Problem) bool {
	for i := range known {
		near := known[i].Pointer
		if part, inside := strings.CutPrefix(near, at+"/"); inside {
			if keys := strings.SplitN(part, "/", 3); len(keys) == 3 {
				near = at + "/" + keys[0] + "/" + keys[1]
			}
		}
		if isWithin(pointer, near) || isWithin(near, pointer) {
			return true
		}
	}
	return false
}

func isWithin(pointer, of string) bool {
	return pointer == of || strings.HasPrefix(pointer, of+"/")
}

// formRules are about what a document is before what it says is looked at.
var formRules = map[string]bool{
	ruleSyntax: true, ruleEmpty: true, ruleMultiple: true, ruleDuplicate: true, ruleAlias: true, ruleTag: true, ruleKey: true,
	ruleNumber: true, ruleTooLarge: true, ruleTooDeep: true, ruleKind: true, ruleUnknownField: true, ruleMissingField: true,
	ruleType: true, ruleValue: true, ruleForm: true, ruleSize: true, ruleRange: true, ruleTooMany: true,
}

// Hides says whether a problem keeps a part of its document from being looked
// at, so that more may be found once it is mended.
func (p *Problem) Hides() bool { return p.Severity == SeverityError && formRules[p.Rule] }
