package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/reconcile/internal/apps"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// Bounds of a [Comparison].
const (
	maxChanges  = 500
	largestText = 64 << 10 // bytes of one content that is shown
	allTexts    = 2 << 20  // bytes of all of them
	// largestInPlace is for one file of a unit or an application, in bytes.
	largestInPlace = 1 << 20
)

// Change is one thing that would be done to the device.
type Change struct {
	schema.Difference
	// From and To are the contents of a file, where they differ and may be
	// shown; otherwise Hidden says why not.
	From   *string `json:"from,omitempty"`
	To     *string `json:"to,omitempty"`
	Hidden string  `json:"hidden,omitempty"`
	// Path is that of the contents where Name is not it: of a unit's own file.
	Path string `json:"path,omitempty"`

	file *files.Difference // nil = it is of no path
}

// File is the path whose contents differ, or "".
func (one *Change) File() string {
	if strings.HasPrefix(one.Name, "/") {
		return one.Name
	}
	return one.Path
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
// no other. Contents that not everybody on the device may read are left out,
// unless secrets are asked for.
func (v *View) Compare(ctx context.Context, current, secrets bool) (*Comparison, error) {
	s := v.agent.store
	if err := v.openRecords(); err != nil {
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
		return c, v.compare(ctx, c, from, to, secrets)
	}
	if !c.Desired && (s.current.Unknown || s.current.Attempt == 0) {
		return c, nil // nothing says what the device should be
	}
	return c, v.compare(ctx, c, from, to, secrets)
}

// CompareSpec says what separates a device from a spec that nobody has assigned
// to it; it need not have an agent.
func CompareSpec(ctx context.Context, c Config, spec map[string]any, secrets bool) (*Comparison, error) {
	decoded, err := schema.DecodeSpec(spec)
	if err != nil {
		return nil, fmt.Errorf("the spec cannot be read whole: %w", err)
	}
	v, err := openView(c)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if err := v.openRecords(); err != nil {
		return nil, err
	}
	v.agent.payloads = v.inPlace(decoded)
	from, err := v.read(currentFile)
	if err != nil {
		return nil, err
	}
	out := &Comparison{Changes: []Change{}, Hooks: []string{}, Trouble: v.trouble, Desired: true}
	return out, v.compare(ctx, out, from, spec, secrets)
}

// inPlace gives the payloads of units and applications that stand where they
// are wanted: what has not been delivered can be looked at there.
func (v *View) inPlace(spec *schema.Spec) map[string][]byte {
	held := map[string][]byte{}
	for _, all := range []map[string]*schema.File{units.Files(spec), apps.Files(spec)} {
		for p, f := range all {
			if f.Payload == "" {
				continue
			}
			if data, err := v.agent.root.ReadFile(p, largestInPlace); err == nil && schema.PayloadDigest(data) == f.Payload {
				held[f.Payload] = data
			}
		}
	}
	return held
}

// compare fills in what a spec would change on the device, or what of it the
// device is not.
func (v *View) compare(ctx context.Context, c *Comparison, from, to map[string]any, secrets bool) error {
	cur, err := schema.DecodeSpec(from)
	if err != nil {
		return fmt.Errorf("the current spec cannot be read whole: %w", err)
	}
	spec, err := schema.DecodeSpec(to)
	if err != nil {
		c.Trouble = append(c.Trouble, oneLine("the spec cannot be read whole: "+err.Error()))
		return nil
	}
	if v.agent.units == nil && len(spec.Units)+len(spec.Applications) > 0 {
		c.Trouble = append(c.Trouble, "how units and applications are cannot be told: systemd answers root only, and on the device itself")
	}
	var list []Change
	if c.Desired || c.Observed {
		list, err = v.agent.differences(ctx, cur, spec)
	} else {
		list, err = v.agent.drifted(ctx, cur)
	}
	if err != nil {
		c.Trouble = append(c.Trouble, oneLine(err.Error()))
	}
	c.show(list, secrets)
	if c.Desired || c.Observed {
		local, err := hooks.Local(v.agent.root)
		if err != nil {
			c.Trouble = append(c.Trouble, oneLine(err.Error()))
		}
		c.Hooks = hooksOf(spec, local, list)
	}
	return nil
}

// show takes over what there is room for. What is encrypted in the repository is
// shown to nobody, whoever may read it on the device.
func (c *Comparison) show(list []Change, secrets bool) {
	c.More = max(len(list)-maxChanges, 0)
	room := allTexts
	for _, one := range list[:len(list)-c.More] {
		switch f := one.file; {
		case f == nil || f.Dir || f.Err != nil:
		case f.Secret:
			one.Hidden = "it is a secret"
		default:
			room = one.contents(f, secrets, room)
		}
		c.Changes = append(c.Changes, one)
	}
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

func differenceOf(d *files.Difference) schema.Difference {
	one := schema.Difference{Field: "files", Name: d.Path, Do: doOf(d), Detail: detail(d)}
	if d.Dir {
		one.Field = "directories"
	}
	return one
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

// hooksOf lists the hooks that would run, of a spec and of the device itself,
// each in one line.
func hooksOf(spec *schema.Spec, local *schema.Hooks, changes []Change) []string {
	list := []string{}
	var changed []string
	for _, c := range changes {
		if p := c.File(); p != "" {
			changed = append(changed, p)
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
