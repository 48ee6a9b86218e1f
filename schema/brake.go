package schema

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Brake is what a person stops at once and without a review. It can only hold
// back: nothing in it starts anything. Read it with [ReadBrake], which is as
// forgiving as that allows.
type Brake struct {
	TypeMeta
	All      *BrakeReason           `json:"all,omitempty"`      // everything is paused
	Policies map[string]BrakeReason `json:"policies,omitempty"` // paused, by name
	Devices  map[string]BrakeReason `json:"devices,omitempty"`  // held, by id
}

// BrakeReason says why something is stopped. A document has it as a mapping or
// as the plain text, for whoever types it in a hurry.
type BrakeReason struct {
	Reason string `json:"reason,omitempty"`
}

// UnmarshalJSON reads a mapping, or the reason alone.
func (r *BrakeReason) UnmarshalJSON(b []byte) error {
	if strings.HasPrefix(string(b), `"`) {
		return json.Unmarshal(b, &r.Reason)
	}
	type plain BrakeReason
	return json.Unmarshal(b, (*plain)(r))
}

// Empty says whether the brake holds nothing back.
func (b *Brake) Empty() bool {
	return b.All == nil && len(b.Policies) == 0 && len(b.Devices) == 0
}

// noReason stands for a reason that was left out.
const noReason = "no reason given"

// BrakeReading is what a brake.yaml says.
type BrakeReading struct {
	// Brake holds all that could be made out, every reason filled in. Where
	// something could not, it stops everything: see Unreadable.
	Brake Brake
	// Unreadable says why the document does not tell what its writer wanted
	// to stop; "" = it does.
	Unreadable string
	// Misnamed is the file that was probably meant to be the brake, where the
	// branch has one under another name only.
	Misnamed string
	// Problems are what should be written otherwise; they are warnings where
	// it applies all the same.
	Problems []Problem
}

// ReadBrake reads a brake.yaml. What parses applies, however it is written: a
// reason may be a mapping, a text or missing, names may be a list, apiVersion
// and kind may be left out. Whatever is not understood stops everything,
// because somebody wanted to stop something: Brake.All is then set. An entry
// that says false, as in "all: false", stops nothing.
func ReadBrake(file string, data []byte) BrakeReading {
	doc, problems := readDocument(data)
	if doc == nil {
		return unreadableBrake(file, Brake{}, problems, problems[0])
	}
	strict := Brake{}
	problems = Decode(file, data, &strict)
	r := brakeReader{doc: doc}
	tree, ok := doc.value.(map[string]any)
	if !ok {
		r.refuse("", fmt.Sprintf("a mapping is wanted, not %s", typeName(doc.value)))
	}
	r.brake.APIVersion, r.brake.Kind = APIVersion, KindBrake
	for _, key := range sortedKeys(tree) {
		r.entry(key, tree[key])
	}
	if r.unknown != nil {
		return unreadableBrake(file, r.brake, problems, *r.unknown)
	}
	for i := range problems {
		problems[i].Severity = SeverityWarning // it applies all the same
		if hint := boolBrakeHint(doc, &problems[i]); hint != "" {
			problems[i].Hint = hint
		}
	}
	return BrakeReading{Brake: r.brake, Problems: inFile(file, problems)}
}

// boolBrakeHint is the hint for true or false where a reason is wanted; ""
// where it is something else. In quotes false would be a reason, and stop.
func boolBrakeHint(doc *document, p *Problem) string {
	keys := splitPointer(p.Pointer)
	_, at, exact := doc.locate(keys)
	switch {
	case p.Rule != ruleType || !exact || at.ShortTag() != "!!bool":
		return ""
	case strings.EqualFold(at.Value, "false") && keys[len(keys)-1] != "reason":
		return "remove the line; to stop it, write a reason"
	}
	return "write the reason in its place"
}

// StoppedBrake is the reading of a brake that stands but cannot be looked at:
// everything is stopped, because somebody wanted to stop something.
func StoppedBrake(file, why string) BrakeReading {
	return unreadableBrake(file, Brake{}, nil, Problem{Rule: ruleForm, Message: why, Severity: SeverityError})
}

// BrakeLikeness says how much a path looks like that of a brake which has
// another name than it should: 2 = it is called brake, 1 = it is YAML, 0 = it
// is something else, as a README.
func BrakeLikeness(file string) int {
	name := strings.ToLower(path.Base(file))
	switch {
	case name == "brake" || strings.HasPrefix(name, "brake."):
		return 2
	case slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)):
		return 1
	}
	return 0
}

// MisnamedBrake is the reading of a branch that has no brake but a file that
// looks like one: everything is stopped, because somebody wanted to stop
// something.
func MisnamedBrake(file, instead string) BrakeReading {
	r := unreadableBrake(file, Brake{}, nil, Problem{
		Rule: ruleForm, Severity: SeverityError, Message: fmt.Sprintf("it is not there, but %s is", quote(instead)),
		Hint: fmt.Sprintf("rename %s to %s; to stop nothing, delete it", oneLine(instead), file),
	})
	r.Misnamed = instead
	return r
}

// unreadableBrake stops everything, beside what could be made out.
func unreadableBrake(file string, b Brake, problems []Problem, why Problem) BrakeReading {
	at := file
	if why.Line > 0 {
		at = fmt.Sprintf("%s:%d", file, why.Line)
	}
	text := fmt.Sprintf("%s: %s", at, why.Message)
	hint := "correct the file; to stop nothing, delete it"
	b.APIVersion, b.Kind = APIVersion, KindBrake
	reason := "the brake cannot be read, so everything is stopped (" + text + ")"
	if b.All != nil {
		reason = b.All.Reason
	}
	b.All = &BrakeReason{Reason: reason}
	if len(problems) == 0 {
		problems = []Problem{why}
	}
	for i := range problems {
		if problems[i].Hint == "" {
			problems[i].Hint = hint
		}
	}
	return BrakeReading{Brake: b, Unreadable: text, Problems: inFile(file, problems)}
}

// brakeReader makes out what it can.
type brakeReader struct {
	doc     *document
	brake   Brake
	unknown *Problem // the first thing that was not understood
}

func (r *brakeReader) refuse(pointer, msg string) {
	if r.unknown == nil {
		p := r.doc.keyProblem(pointer, ruleForm, msg, "")
		r.unknown = &p
	}
}

func (r *brakeReader) entry(key string, v any) {
	at := "/" + escapePointer(key)
	switch key {
	case "apiVersion":
		if v != nil && v != APIVersion {
			r.refuse(at, fmt.Sprintf("apiVersion %s is wanted, not %s", APIVersion, shown(v)))
		}
	case "kind":
		if v != nil && v != string(KindBrake) {
			r.refuse(at, fmt.Sprintf("kind %s is wanted, not %s", KindBrake, shown(v)))
		}
	case "all":
		if reason, on := brakeReason(v); on {
			r.brake.All = &reason
		}
	case "policies":
		r.brake.Policies = r.names(at, v)
	case "devices":
		r.brake.Devices = r.names(at, v)
	default:
		hint := ""
		if near := Nearest(key, []string{"all", "policies", "devices"}); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		r.refuse(at, fmt.Sprintf("unknown field %s%s", quote(key), hint))
	}
}

// names are what is stopped by name: the keys of a mapping, the items of a
// list, or a single name.
func (r *brakeReader) names(at string, v any) map[string]BrakeReason {
	out := map[string]BrakeReason{}
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for name, why := range v {
			if reason, on := brakeReason(why); on {
				out[name] = reason
			}
		}
	case []any:
		for _, item := range v {
			name, ok := item.(string)
			if !ok {
				r.refuse(at, fmt.Sprintf("names are wanted, not %s", typeName(item)))
				continue
			}
			out[name] = BrakeReason{Reason: noReason}
		}
	case string:
		out[v] = BrakeReason{Reason: noReason}
	default:
		r.refuse(at, fmt.Sprintf("names are wanted, not %s", typeName(v)))
	}
	return out
}

// brakeReason reads why something is stopped, and whether it is: only false
// says that it is not.
func brakeReason(v any) (reason BrakeReason, on bool) {
	switch v := v.(type) {
	case bool:
		on = v
	case string:
		reason.Reason, on = oneLine(v), true
	case map[string]any:
		text, _ := v["reason"].(string)
		reason.Reason, on = oneLine(text), true
	default:
		on = true
	}
	if reason.Reason == "" {
		reason.Reason = noReason
	}
	return reason, on
}
