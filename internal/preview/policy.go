package preview

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// horizon is how far ahead times are counted: what happens until tomorrow is
// what whoever merges today will see.
const horizon = 24 * time.Hour

// policies compares every policy, field by field.
func (c *comparer) policies() []PolicyChange {
	list := []PolicyChange{}
	before, after := specsOf(c.Base.Fleet), specsOf(c.Head.Fleet)
	goBefore, soonBefore := mayGo(c.Base.Plan, c.Now)
	goAfter, soonAfter := mayGo(c.Head.Plan, c.Now)
	counts := map[string]int{}
	for _, s := range c.Head.Plan.Policies {
		counts[s.Policy] = s.N
	}
	if change := c.fleetWide(); change != nil {
		list = append(list, *change)
	}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		change := PolicyChange{Policy: name, Op: Changed, MayGoBefore: goBefore[name], MayGo: goAfter[name], SoonBefore: soonBefore[name], Soon: soonAfter[name]}
		switch {
		case before[name] == nil:
			change.Op = Added
		case after[name] == nil:
			change.Op = Removed
		}
		d := &settings{n: counts[name]}
		d.object("", before[name], after[name])
		change.Fields = d.fields
		if change.Op != Changed {
			change.Fields = []PolicyField{}
		} else if len(d.fields) == 0 {
			continue
		}
		list = append(list, change)
	}
	return list
}

// fleetWide compares the settings of the whole fleet; nil = they are the same.
func (c *comparer) fleetWide() *PolicyChange {
	tree := func(f *schema.Fleet) map[string]any {
		if f.Document == nil {
			return nil
		}
		return treeOf(f.Document.Spec)
	}
	d := &settings{n: len(c.Head.Fleet.Devices), fleet: true}
	d.object("", tree(c.Base.Fleet), tree(c.Head.Fleet))
	if len(d.fields) == 0 {
		return nil
	}
	change := &PolicyChange{Op: Changed, Fields: d.fields}
	before, soonBefore := mayGo(c.Base.Plan, c.Now)
	after, soonAfter := mayGo(c.Head.Plan, c.Now)
	for total, counts := range map[*int]map[string]int{&change.MayGoBefore: before, &change.MayGo: after, &change.SoonBefore: soonBefore, &change.Soon: soonAfter} {
		for _, n := range counts {
			*total += n
		}
	}
	return change
}

// specsOf are the specs of all policies as the trees that their documents
// hold, so that a field that this package does not know is compared as well.
func specsOf(f *schema.Fleet) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, p := range f.Policies {
		out[p.Metadata.Name] = treeOf(p.Spec)
	}
	return out
}

func treeOf(v any) map[string]any {
	tree := map[string]any{}
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		return map[string]any{"": err.Error()} // cannot be: it was decoded from there
	}
	return tree
}

// mayGo counts for each policy the devices that its gates let through now, and
// those that wait for a time that is known and comes within the horizon. Who
// comes through otherwise depends on how the others fare: where soaks are short
// it may be everybody.
func mayGo(r planner.Result, now time.Time) (atOnce, soon map[string]int) {
	atOnce, soon = map[string]int{}, map[string]int{}
	allocation := allocations()
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		switch {
		case allocation[v.Code]:
			atOnce[v.Device.Policy]++
		case !v.NotBefore.IsZero() && v.NotBefore.Before(now.Add(horizon)):
			soon[v.Device.Policy]++
		}
	}
	return atOnce, soon
}

// allocations are the codes of devices that have come past all gates: only
// slots, the guard and budgets are between them and their update.
func allocations() map[planner.Code]bool {
	codes := map[planner.Code]bool{}
	for _, c := range planner.Codes() {
		if len(codes) > 0 || c.Code == planner.Queued {
			codes[c.Code] = true
		}
	}
	return codes
}

// settings collects what differs between two trees of settings.
type settings struct {
	n      int  // devices that a percentage is of
	fleet  bool // of the whole fleet, where other values hold without a setting
	fields []PolicyField
}

func (d *settings) object(at string, from, to map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(union(from, to))) {
		name := key
		if at != "" {
			name = at + "." + key
		}
		d.value(name, from[key], to[key])
	}
}

func (d *settings) value(name string, from, to any) {
	if equal(from, to) {
		return
	}
	x, xObject := from.(map[string]any)
	y, yObject := to.(map[string]any)
	a, xList := from.([]any)
	b, yList := to.([]any)
	switch {
	case isSelector(name):
		d.add(name, from, to)
	case (xObject || from == nil) && (yObject || to == nil):
		if name != "backoff" && (from == nil || to == nil || isReason(x) || isReason(y)) {
			d.add(name, from, to)
			return
		}
		d.object(name, x, y)
	case (xList || from == nil) && (yList || to == nil) && (areObjects(a) && areObjects(b)):
		d.list(name, a, b)
	default:
		d.add(name, from, to)
	}
}

func isSelector(name string) bool {
	return name == "selector" || strings.HasSuffix(name, ".selector")
}

// isReason says whether an object is only there to carry a reason.
func isReason(o map[string]any) bool {
	_, has := o["reason"]
	return has && len(o) == 1
}

func areObjects(list []any) bool {
	for _, v := range list {
		if _, ok := v.(map[string]any); !ok {
			return false
		}
	}
	return true
}

// list compares two lists of objects: by name where they have names, else by
// what they are, and what is left over in the order that it stands in.
func (d *settings) list(name string, from, to []any) {
	named := func(list []any) map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, v := range list {
			o, _ := v.(map[string]any)
			out[labelOf(name, o)] = o
		}
		return out
	}
	before, after := named(from), named(to)
	var gone, come []string
	for _, v := range from {
		o, _ := v.(map[string]any)
		label := labelOf(name, o)
		if other := after[label]; other == nil {
			gone = append(gone, label)
		} else if !equal(o, other) {
			d.object(name+"["+label+"]", o, other)
		}
	}
	for _, v := range to {
		o, _ := v.(map[string]any)
		if label := labelOf(name, o); before[label] == nil {
			come = append(come, label)
		}
	}
	for len(gone) > 0 && len(come) > 0 {
		d.words(name, before[gone[0]], after[come[0]], gone[0], come[0])
		gone, come = gone[1:], come[1:]
	}
	for _, label := range gone {
		d.words(name, before[label], nil, label, "")
	}
	for _, label := range come {
		d.words(name, nil, after[label], "", label)
	}
	if len(from) == len(to) && maps.EqualFunc(before, after, func(map[string]any, map[string]any) bool { return true }) {
		d.order(name, from, to)
	}
}

// order tells of entries that change places: of waves, the first match wins.
func (d *settings) order(name string, from, to []any) {
	labels := func(list []any) string {
		var words []string
		for _, v := range list {
			o, _ := v.(map[string]any)
			words = append(words, labelOf(name, o))
		}
		return strings.Join(words, ", ")
	}
	if a, b := labels(from), labels(to); a != b {
		d.fields = append(d.fields, PolicyField{Field: name, Words: "order of the " + wordsOf(name) + ": " + a + " → " + b, From: a, To: b})
	}
}
