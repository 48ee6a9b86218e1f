package schema

import (
	"fmt"
	"reflect"
	"strconv"
)

// DecodeReport is [Decode] for the report of an agent that may be newer than
// its reader: fields that are not known here are left out, with a warning
// each. All else is as strict, so what is read means what the agent meant.
//
// Agents are updated by what they are assigned, and a daemon that refused
// their reports would take each of them for silent.
func DecodeReport(file string, data []byte, r *Report) []Problem {
	doc, problems := readDocument(data)
	if doc != nil {
		var unknown unknownFields
		if _, wrong := wrongKind(doc, KindReport); !wrong {
			unknown.drop(doc, doc.value, reflect.TypeFor[Report](), nil)
		}
		var fresh Report
		problems = decodeDocument(doc, KindReport, reflect.ValueOf(&fresh).Elem())
		if !hasErrors(problems) {
			*r = fresh
		}
		problems = append(problems, unknown.warnings()...)
	}
	return inFile(file, problems)
}

// unknownFields collects what was dropped.
type unknownFields struct {
	found []Problem
	more  int // beyond maxProblems
}

// drop removes from a value the fields that its Go type does not have.
func (u *unknownFields) drop(doc *document, value any, t reflect.Type, at *trail) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct || t == timeType {
			return
		}
		types := map[string]reflect.Type{}
		fieldTypes(t, types)
		for _, k := range sortedKeys(v) {
			below := &trail{at, k}
			if field, known := types[k]; known {
				u.drop(doc, v[k], field, below)
				continue
			}
			delete(v, k)
			if len(u.found) >= maxProblems {
				u.more++
				continue
			}
			p := doc.keyProblem(below.pointer(), ruleUnknownField, fmt.Sprintf("unknown field %s is left out", quote(k)), "a newer agent may have written it")
			p.Severity = SeverityWarning
			u.found = append(u.found, p)
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i := range v {
			u.drop(doc, v[i], t.Elem(), &trail{at, strconv.Itoa(i)})
		}
	}
}

func (u *unknownFields) warnings() []Problem {
	if u.more == 0 {
		return u.found
	}
	rest := unlisted(u.more)
	rest.Severity = SeverityWarning
	return append(u.found, rest)
}

func fieldTypes(t reflect.Type, types map[string]reflect.Type) {
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			fieldTypes(sf.Type, types)
		} else if name := jsonName(sf); name != "" {
			types[name] = sf.Type
		}
	}
}
