package view

import (
	"bytes"
	"fmt"
	"io"

	"github.com/gitopsd/gitopsd/internal/preview"
)

// WriteDiff writes what a change would do to one device, with the place of
// each value.
func WriteDiff(w io.Writer, d *preview.Device, look Look) error {
	var b bytes.Buffer
	t := planText{b: &b, look: look}
	t.head(d.Head, d.Base, d.Note)
	t.line(0, Clean(d.Device)+"  "+refText(d.From)+" → "+refText(d.To))
	switch {
	case d.Effect.Already:
		t.line(0, "it runs that already: listed is what differs between the two sides")
	case d.Runs != nil && d.Runs.Digest != d.To.Digest && d.Runs.Digest != d.From.Digest:
		t.line(0, "it runs "+refText(*d.Runs)+", which is neither side")
	}
	if d.From.Policy != d.To.Policy {
		t.line(0, "from "+policyText(d.From.Policy)+" to "+policyText(d.To.Policy))
	}
	if d.NoTarget != "" {
		t.line(0, "nothing to go to: "+Clean(d.NoTarget))
	}
	switch {
	case d.Unknown:
		t.line(0, "from a spec that cannot be read here")
	case d.To.Digest == "":
		t.line(0, "it keeps what it runs")
	case d.From.Digest == d.To.Digest:
		t.line(0, "no change in what it should be")
	}
	for i := range d.Changes {
		t.diffElement(&d.Changes[i])
	}
	if len(d.Changes) > 0 {
		b.WriteByte('\n')
	}
	if text := EffectText(&d.Effect, 1, effectNames); text != "" {
		t.line(0, "effect: "+text)
	}
	if v := d.Verdict; v != nil {
		t.line(0, "next sweep: "+Clean(v.Code)+", "+Clean(or(v.Detail, v.Reason)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func refText(r preview.SpecRef) string {
	if r.Version == "" && r.Digest == "" {
		return "nothing"
	}
	text := Clean(or(r.Version, "version unknown"))
	if r.Digest != "" {
		text += " (" + shortDigest(r.Digest) + ")"
	}
	return text
}

// shortDigest is the beginning of a digest, for people. Without its algorithm
// it would look like a commit.
func shortDigest(digest string) string {
	const shown = len("sha256:") + 12 // as much as tells two apart, and fits on a line
	return Clean(digest[:min(len(digest), shown)])
}

// diffElement writes an element with a line for each value and its place.
func (t *planText) diffElement(ch *preview.Change) {
	mark, color := "~", colorBusy
	switch ch.Op {
	case preview.Added:
		mark, color = "+", colorGood
	case preview.Removed:
		mark, color = "-", colorBad
	}
	t.b.WriteByte('\n')
	fmt.Fprintln(t.b, t.look.paint(color, t.look.hang(mark+" "+elementName(ch), 2)))
	for _, f := range ch.Fields {
		if f.From != "" || ch.Op != preview.Added {
			t.value("- ", f.Name, f.From, f.FromOrigin, ch.Op == preview.Added)
		}
		if f.To != "" || ch.Op != preview.Removed {
			t.value("+ ", f.Name, f.To, f.ToOrigin, ch.Op == preview.Removed)
		}
	}
	c := ch.Content
	if c == nil {
		return
	}
	t.line(4, ContentText(c, Clean))
	for _, o := range []struct{ mark, place string }{{"- ", c.FromOrigin}, {"+ ", c.ToOrigin}} {
		if o.place != "" {
			t.line(4, o.mark+Clean(o.place))
		}
	}
	t.lines(4, c)
}

// value writes one side of a value; skip leaves it out.
func (t *planText) value(mark, name, value, place string, skip bool) {
	if skip || value == "" {
		return
	}
	text := mark + Clean(name)
	if name != "" {
		text += " "
	}
	text += Clean(value)
	if place != "" {
		text += "   " + Clean(place)
	}
	t.line(4, text)
}
