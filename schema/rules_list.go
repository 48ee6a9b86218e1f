package schema

import (
	_ "embed"
	"fmt"
	"reflect"
)

// Rule is one thing that validation looks at.
type Rule struct {
	Name     string   `json:"name"` // stable, as in [Problem.Rule]
	Severity Severity `json:"severity,omitempty"`
	Summary  string   `json:"summary"` // what holds where the rule finds nothing
	// Wrong and Right are files of a fleet repository, each after a line
	// "-- path --", or a description in angle brackets.
	Wrong string `json:"wrong"`
	Right string `json:"right"`
}

//go:embed rules.yaml
var rulesText []byte

// Rules lists every rule, from a single file to the whole fleet.
func Rules() []Rule {
	doc, problems := readDocument(rulesText)
	if doc == nil {
		panic(fmt.Sprintf("schema: rules.yaml: %v", problems))
	}
	var list struct {
		Rules []Rule `json:"rules"`
	}
	var f filler
	f.fill(reflect.ValueOf(&list).Elem(), doc.value, "")
	if len(f.problems) > 0 {
		panic(fmt.Sprintf("schema: rules.yaml: %v", f.problems[0].err))
	}
	for i := range list.Rules {
		if list.Rules[i].Severity == "" {
			list.Rules[i].Severity = SeverityError
		}
	}
	return list.Rules
}
