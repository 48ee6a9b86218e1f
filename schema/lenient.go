package schema

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
)

// DecodeReport is [Decode] for the report of an agent that may be newer than
// its reader: fields that are not known here are left out, with a warning
// each. All else is as strict, so what is read means what the agent meant.
//
// Agents are updated by what they are assigned, and a daemon that refused
// their reports would take each of them for silent.
func DecodeReport(file string, data []byte, r *Report) []Problem {
	return decodeLenient(file, data, reflect.ValueOf(r).Elem(), "a newer agent may have written it")
}

// DecodeStatus is [Decode] for what a daemon wrote to the status branch, and
// for every reader but the device that acts on it: one document that another
// version of this program wrote must not make the whole branch unreadable.
//
// Fields that are not known here are left out, with a warning each; whoever
// writes the document again drops them, so what a fleet could not do without
// takes a new format of the branch, and not a new field. The spec of an
// assignment is taken as the tree that it is, under whatever rules it was
// published, but for the names of its payloads, which become paths. All else
// is as strict as Decode. It panics where v is no pointer to such a kind.
func DecodeStatus(file string, data []byte, v any) []Problem {
	switch v.(type) {
	case *DeviceStatus, *Assignment, *FleetStatus, *FailureMarks:
		return decodeLenient(file, data, reflect.ValueOf(v).Elem(), "a newer gitopsd may have written it")
	}
	panic(fmt.Sprintf("schema.DecodeStatus: a pointer to a kind of the status branch is wanted, not %T", v))
}

func decodeLenient(file string, data []byte, dst reflect.Value, hint string) []Problem {
	kind := kindOf(dst.Type())
	doc, problems := readDocument(data)
	if doc == nil {
		return inFile(file, problems)
	}
	unknown := unknownFields{hint: hint}
	if _, wrong := wrongKind(doc, kind); !wrong {
		unknown.drop(doc, doc.value, dst.Type(), nil)
	}
	fresh := reflect.New(dst.Type()).Elem()
	problems = decodePassedOn(doc, kind, fresh)
	if !hasErrors(problems) {
		dst.Set(fresh)
	}
	return inFile(file, append(problems, unknown.warnings()...))
}

// decodePassedOn is decodeDocument for who does not act on a document: the
// spec of an assignment is taken as it is.
func decodePassedOn(doc *document, kind Kind, dst reflect.Value) []Problem {
	m, _ := doc.value.(map[string]any)
	spec, has := m["spec"].(map[string]any)
	a, isAssignment := dst.Addr().Interface().(*Assignment)
	if !has || !isAssignment {
		return decodeDocument(doc, kind, dst)
	}
	delete(m, "spec")
	problems := decodeDocument(doc, kind, dst)
	m["spec"], a.Spec = spec, spec
	for _, f := range payloadNames(spec) {
		problems = append(problems, doc.place(f))
	}
	return problems
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// payloadNames finds the files of a spec that name no possible payload.
func payloadNames(spec map[string]any) []finding {
	var found []finding
	eachContent(spec, func(keys []string, entry map[string]any) {
		if name, named := entry["payload"]; named && name != nil {
			if text, _ := name.(string); !digestForm.MatchString(text) {
				found = append(found, finding{pointer: "/spec" + joinPointer(append(keys, "payload")...), rule: ruleForm,
					msg: fmt.Sprintf("%s is no digest of a payload", shown(name))})
			}
		}
	})
	return found
}

// unknownFields collects what was dropped.
type unknownFields struct {
	hint  string
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
		if t.Kind() == reflect.Map {
			for _, k := range sortedKeys(v) {
				u.drop(doc, v[k], t.Elem(), &trail{at, k})
			}
			return
		}
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
			p := doc.keyProblem(below.pointer(), ruleUnknownField, fmt.Sprintf("unknown field %s is left out", quote(k)), u.hint)
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
	for _, f := range fieldsOf(t) {
		if is := t.Field(f.index).Type; f.embedded {
			fieldTypes(is, types)
		} else if f.name != "" {
			types[f.name] = is
		}
	}
}
