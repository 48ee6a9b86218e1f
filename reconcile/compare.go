package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// Bounds of a [Comparison].
const (
	maxChanges  = 500
	largestText = 64 << 10 // bytes of one content that is shown
	allTexts    = 2 << 20  // bytes of all of them
)

// Change is one thing that would be done to the device.
type Change struct {
	schema.Difference
	// From and To are the contents of a file, where they differ and may be
	// shown; otherwise Hidden says why not.
	From   *string `json:"from,omitempty"`
	To     *string `json:"to,omitempty"`
	Hidden string  `json:"hidden,omitempty"`
}

// Comparison is what separates a device from one of its specs.
type Comparison struct {
	// To is the spec; Desired says that it is the one that the device is on its
	// way to, Observed that it is only compared with; otherwise what differs is
	// drift.
	To       schema.SpecRef `json:"to"`
	Desired  bool           `json:"desired"`
	Observed bool           `json:"observed,omitempty"`
	Changes  []Change       `json:"changes"`
	// More is how many changes are left out.
	More int `json:"more,omitempty"`
	// Hooks would run, in this order, each with its point.
	Hooks   []string `json:"hooks"`
	Trouble []string `json:"trouble,omitempty"`
}

// Compare says what separates the device from its desired spec, or from the one
// that it observes, or from its current one where that is asked for or there is
// no other. Contents that
// not everybody on the device may read are left out, unless secrets are asked
// for.
func (v *View) Compare(current, secrets bool) (*Comparison, error) {
	s := v.agent.store
	if err := v.openFiles(); err != nil {
		return nil, err
	}
	c := &Comparison{Changes: []Change{}, Hooks: []string{}, Trouble: v.trouble}
	from, err := v.read(currentFile)
	if err != nil {
		return nil, err
	}
	to := from
	c.To = s.current.ref()
	if s.desired != nil && !current {
		if to, err = v.read(desiredFile); err != nil {
			return nil, err
		}
		c.To, c.Desired = s.desired.ref(), true
	}
	if s.desired == nil && s.attempts.Observes != 0 && !current {
		r, err := v.agent.store.whole(observedFile)
		if err == nil {
			to, err = r.tree()
		}
		if err != nil {
			return nil, err
		}
		c.To, c.Observed = r.ref(), true
		return c, v.compare(c, from, to, secrets)
	}
	if !c.Desired && (s.current.Unknown || s.current.Attempt == 0) {
		return c, nil // nothing says what the device should be
	}
	return c, v.compare(c, from, to, secrets)
}

// CompareSpec says what separates a device from a spec that nobody has assigned
// to it; it need not have an agent.
func CompareSpec(c Config, spec map[string]any, secrets bool) (*Comparison, error) {
	if _, err := schema.DecodeSpec(spec); err != nil {
		return nil, fmt.Errorf("the spec cannot be read whole: %w", err)
	}
	v, err := openView(c)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if err := v.openFiles(); err != nil {
		return nil, err
	}
	from, err := v.read(currentFile)
	if err != nil {
		return nil, err
	}
	out := &Comparison{Changes: []Change{}, Hooks: []string{}, Trouble: v.trouble, Desired: true}
	return out, v.compare(out, from, spec, secrets)
}

// compare fills in what a spec would change on the device.
func (v *View) compare(c *Comparison, from, to map[string]any, secrets bool) error {
	spec, err := schema.DecodeSpec(to)
	if err != nil {
		c.Trouble = append(c.Trouble, oneLine("the spec cannot be read whole: "+err.Error()))
		spec = &schema.Spec{}
	} else if err := v.compareFiles(c, spec, secrets); err != nil {
		return err
	}
	if c.Desired || c.Observed {
		if v.seen != nil && c.Observed {
			c.Changes = append(c.Changes, v.seenRest()...)
		} else {
			c.Changes = append(c.Changes, compareRest(from, to)...)
		}
		local, err := hooks.Local(v.agent.root)
		if err != nil {
			c.Trouble = append(c.Trouble, oneLine(err.Error()))
		}
		c.Hooks = hooksOf(spec, local, c.Changes)
	}
	if n := len(c.Changes); n > maxChanges {
		c.Changes, c.More = c.Changes[:maxChanges], n-maxChanges
	}
	return nil
}

// read gives a spec as it was assigned, empty where there is none.
func (v *View) read(p string) (map[string]any, error) {
	r, err := v.agent.store.whole(p)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if tree == nil {
		tree = map[string]any{}
	}
	return tree, err
}

func (v *View) compareFiles(c *Comparison, spec *schema.Spec, secrets bool) error {
	list, err := v.agent.files.Compare(wholeSet(spec), v.agent.payload)
	if err != nil {
		return fmt.Errorf("compare the files: %w", err)
	}
	room := allTexts
	for i := range list {
		d := &list[i]
		one := Change{Difference: differenceOf(d)}
		if !d.Dir && d.Err == nil && len(c.Changes) < maxChanges {
			room = one.contents(d, secrets, room)
		}
		c.Changes = append(c.Changes, one)
	}
	return nil
}

func doOf(d *files.Difference) string {
	switch {
	case d.Err != nil:
		return schema.DoCannot
	case d.To == nil:
		return schema.DoRemove
	case d.Original:
		return schema.DoRestore
	case d.From == nil:
		return schema.DoCreate
	}
	return schema.DoChange
}

// detail is what else than the content changes.
func detail(d *files.Difference) string {
	if d.Err != nil {
		return oneLine(failure.Words(d.Err))
	}
	if d.To == nil {
		return ""
	}
	var words []string
	if d.From == nil || d.From.Mode != d.To.Mode {
		words = append(words, "mode "+between(d.From != nil, func() string { return d.From.Mode }, d.To.Mode))
	}
	owner := func(s *files.Side) string { return fmt.Sprintf("%d:%d", s.UID, s.GID) }
	if d.From != nil && owner(d.From) != owner(d.To) {
		words = append(words, "owner "+between(true, func() string { return owner(d.From) }, owner(d.To)))
	}
	return strings.Join(words, ", ")
}

func between(had bool, from func() string, to string) string {
	if !had {
		return to
	}
	return from() + " → " + to
}

// contents adds what of both sides may be shown; it gives how many bytes are
// left for others.
func (one *Change) contents(d *files.Difference, secrets bool, room int) int {
	limit := int64(min(largestText, room))
	var texts [2]*string
	for i, s := range []*files.Side{d.From, d.To} {
		if s == nil || s.Read == nil {
			continue
		}
		if !secrets && !s.Shown() {
			one.Hidden = "not everybody may read it"
			return room
		}
		data, err := s.Read(limit)
		switch {
		case files.TooLarge(err):
			one.Hidden = "it is large"
		case err != nil:
			one.Hidden = oneLine("it cannot be read: " + failure.Words(err))
		case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
			one.Hidden = "it is no text"
		default:
			text := string(data)
			texts[i] = &text
			continue
		}
		return room
	}
	if texts[0] != nil && texts[1] != nil && *texts[0] == *texts[1] {
		return room // only mode or owner differ
	}
	one.From, one.To = texts[0], texts[1]
	for _, t := range texts {
		if t != nil {
			room -= len(*t)
		}
	}
	return max(room, 0)
}

// seenRest is what the running agent has found beside files and folders.
func (v *View) seenRest() []Change {
	var list []Change
	for _, d := range v.seen.Differences {
		if d.Field != "files" && d.Field != "directories" {
			list = append(list, Change{Difference: d})
		}
	}
	return list
}

// compareRest is what differs between two specs beside files, folders and
// hooks, by field and name; what it means on the device, their controllers
// know.
func compareRest(from, to map[string]any) []Change {
	var list []Change
	fields := map[string]bool{}
	for _, side := range []map[string]any{from, to} {
		for f := range side {
			fields[f] = true
		}
	}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if f == "files" || f == "directories" || f == "hooks" || reflect.DeepEqual(from[f], to[f]) {
			continue
		}
		a, aIs := from[f].(map[string]any)
		b, bIs := to[f].(map[string]any)
		if !(aIs || from[f] == nil) || !(bIs || to[f] == nil) {
			list = append(list, Change{Difference: schema.Difference{Field: f, Do: doBetween(from[f], to[f])}})
			continue
		}
		names := map[string]bool{}
		for _, side := range []map[string]any{a, b} {
			for n := range side {
				names[n] = true
			}
		}
		for _, n := range slices.Sorted(maps.Keys(names)) {
			if reflect.DeepEqual(a[n], b[n]) {
				continue
			}
			one := Change{Difference: schema.Difference{Field: f, Name: n, Do: doBetween(a[n], b[n])}}
			old, oldIs := a[n].(string)
			if now, is := b[n].(string); is {
				one.Detail = oneLine(between(oldIs, func() string { return old }, now))
			}
			list = append(list, one)
		}
	}
	return list
}

func doBetween(from, to any) string {
	switch {
	case from == nil:
		return schema.DoCreate
	case to == nil:
		return schema.DoRemove
	}
	return schema.DoChange
}

// hooksOf lists the hooks that would run, of a spec and of the device itself,
// each in one line.
func hooksOf(spec *schema.Spec, local *schema.Hooks, changes []Change) []string {
	list := []string{}
	var changed []string
	for _, c := range changes {
		if strings.HasPrefix(c.Name, "/") {
			changed = append(changed, c.Name)
		}
	}
	for _, p := range hooks.Points {
		if spec.OS == nil && (p == hooks.BeforeRebooting || p == hooks.AfterRebooting) {
			continue
		}
		for _, h := range []*schema.Hooks{spec.Hooks, local} {
			of := hooks.Of(h, p)
			for _, name := range hooks.Ordered(of) {
				if hook := of[name]; hook != nil && hooks.Due(hook, changed) {
					list = append(list, oneLine(hooks.Element(p, name)+": "+strings.Join(hook.Run, " ")))
				}
			}
		}
	}
	return list
}
