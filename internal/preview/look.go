package preview

import (
	"fmt"

	"github.com/gitopsd/gitopsd/schema"
)

// deviceLines is how many lines of a difference one device is shown.
const deviceLines = 400

// Device is what a change would do to one device. Its JSON is that of gitopsd
// diff.
type Device struct {
	schema.TypeMeta
	Device   string   `json:"device"`
	Head     Place    `json:"head"`
	Base     *Place   `json:"base,omitempty"`
	Note     string   `json:"note,omitempty"`
	From     SpecRef  `json:"from"`
	To       SpecRef  `json:"to"`
	Runs     *SpecRef `json:"runs,omitempty"` // by its last report
	Changes  []Change `json:"changes"`
	Unknown  bool     `json:"unknown,omitempty"`
	Effect   Effect   `json:"effect"` // on what the device runs, as far as that is known
	Verdict  *Verdict `json:"verdict,omitempty"`
	NoTarget string   `json:"noTarget,omitempty"`
}

// SpecRef names a desired spec; without a digest there is none.
type SpecRef struct {
	Policy  string `json:"policy,omitempty"`
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// Look says what the head would do to one device that is in the head or in
// what it is compared with; nil where it is in neither.
func Look(in Input, id string) *Device {
	c := newComparer(in)
	m := in.Head.Fleet.Member(id)
	from, policy := c.wanted(id)
	had, _ := c.was(id)
	if m == nil && !had {
		return nil
	}
	to := in.Head.side(m)
	d := &Device{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "DeviceDiff"},
		Device:   id, Head: in.Head.Place, Note: in.Note,
		From: SpecRef{Version: from.Version, Digest: from.Digest}, To: SpecRef{Version: to.Version, Digest: to.Digest},
		Changes: []Change{}, Unknown: unknown(from), Effect: Effect{Hooks: []string{}},
	}
	of := &comparison{from: from, to: to, mask: c.maskFor(id), literal: c.literalFor(id, from), contents: c.contents, lines: deviceLines}
	switch {
	case in.Base != nil:
		base := in.Base.Place
		d.Base = &base
		of.origins[0] = originsOf(in.Base.Fleet, id)
	case in.Present != nil:
		d.Base = &Place{Name: "what was assigned"}
	}
	d.From.Policy = policy
	of.origins[1] = originsOf(in.Head.Fleet, id)
	if p, known := in.Present[id]; known && p.Version != "" {
		d.Runs = &SpecRef{Version: p.Version, Digest: p.Digest}
	}
	if m != nil {
		d.To.Policy, d.NoTarget = m.Policy, m.NoTarget
	}
	if to.Spec != nil && from.Digest != to.Digest && !d.Unknown {
		d.Changes = of.changes()
	}
	if m != nil && m.Rendered != nil && !sameSpec(from, to) {
		b := c.before(m, to)
		d.Effect = of.masked(b.effect(to, b.isAgain(m, to)))
		if !b.already {
			load := c.download(m, b.side, to)
			d.Effect.Download = Download{Total: load.bytes, Least: load.bytes, Most: load.bytes, Bound: load.bound}
		}
	}
	p := &Plan{}
	p.verdicts(in)
	for i := range p.Verdicts {
		if p.Verdicts[i].Device == id {
			d.Verdict = &p.Verdicts[i]
		}
	}
	return d
}

// originsOf says for each value of a device's spec where it was written.
func originsOf(f *schema.Fleet, id string) map[string]string {
	out := map[string]string{}
	for _, o := range f.Origins(id) {
		out[o.Pointer] = fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return out
}
