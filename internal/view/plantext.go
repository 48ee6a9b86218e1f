package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
)

// shownNames is how many devices are named before they are only counted; the
// JSON has all of them.
const shownNames = 3

// WritePlan writes what a change would do: its content, the policies, who
// comes and goes, the worst case, and every device's verdict. wide tells more
// of each device.
func WritePlan(w io.Writer, p *preview.Plan, look Look, wide bool) error {
	var b bytes.Buffer
	t := planText{b: &b, look: look}
	t.head(p.Head, p.Base, p.Note)
	t.changes(p)
	t.policies(p.PolicyChanges)
	t.membership(&p.Membership)
	t.worstCase(p.WorstCase)
	if err := t.sweep(p, wide); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// planText writes the parts of a preview.
type planText struct {
	b    *bytes.Buffer
	look Look
}

// section begins a part, after an empty line.
func (t *planText) section(name string) {
	if t.b.Len() > 0 {
		t.b.WriteByte('\n')
	}
	fmt.Fprintln(t.b, t.look.paint(colorHead, name))
}

// line writes one line that is indented, and its further lines a bit more.
func (t *planText) line(indent int, text string) {
	const more = 2
	pad := strings.Repeat(" ", indent)
	fmt.Fprintf(t.b, "%s%s\n", pad, t.look.hang(text, indent+more))
}

func (t *planText) head(head preview.Place, base *preview.Place, note string) {
	switch {
	case base != nil:
		t.line(0, placeText(head)+" against "+placeText(*base))
		if note != "" {
			t.line(0, "note: "+Clean(note))
		}
	case note != "":
		t.line(0, placeText(head)+", compared with nothing: "+Clean(note))
	}
}

func placeText(p preview.Place) string {
	if p.Commit != "" && strings.HasPrefix(p.Commit, p.Name) {
		return Clean(Short(p.Name))
	}
	name := Clean(p.Name)
	if p.Commit == "" {
		return name
	}
	return name + " (" + Short(p.Commit) + ")"
}

func (t *planText) policies(list []preview.PolicyChange) {
	if len(list) == 0 {
		return
	}
	t.section("POLICIES")
	for i := range list {
		p := &list[i]
		name := Clean(or(p.Policy, "the whole fleet"))
		if p.Op != preview.Changed {
			name += " " + p.Op
		}
		t.line(0, name)
		for _, f := range p.Fields {
			text := Clean(f.Words)
			if f.Careful != "" {
				text += " (" + f.Careful + " careful)"
			}
			t.line(2, text)
		}
		for _, l := range MayGo(p) {
			t.line(2, l)
		}
	}
}

// MayGo says in words how many devices more, or fewer, the gates of a policy let
// go.
func MayGo(p *preview.PolicyChange) []string {
	var list []string
	say := func(one, several string, before, after int) {
		n, more := after-before, "more"
		if n < 0 {
			n, more = -n, "fewer"
		}
		switch n {
		case 0:
			return
		case 1:
			several = one
		}
		list = append(list, fmt.Sprintf("%d %s %s: %d instead of %d", n, more, several, after, before))
	}
	const atOnce = "may start at once, as slots get free"
	say(atOnce, atOnce, p.MayGoBefore, p.MayGo)
	say("waits for a time that comes within a day", "wait for a time that comes within a day", p.SoonBefore, p.Soon)
	return list
}

func (t *planText) membership(m *preview.Membership) {
	if len(m.Added)+len(m.Removed)+len(m.Moved)+len(m.NoTarget)+len(m.Settings) == 0 {
		return
	}
	t.section("WHO")
	for _, l := range []struct {
		what string
		ids  []string
	}{{"new", m.Added}, {"gone", m.Removed}} {
		if len(l.ids) > 0 {
			t.line(0, counted(len(l.ids), "device")+" "+l.what+"  "+namesText(l.ids))
		}
	}
	for _, w := range m.Ways() {
		t.line(0, fmt.Sprintf("%s from %s to %s  %s", counted(len(w.Devices), "device"), policyText(w.From), policyText(w.To), namesText(w.Devices)))
	}
	if n := len(m.NoTarget); n > 0 {
		var ids []string
		for _, v := range m.NoTarget {
			ids = append(ids, v.Device)
		}
		t.line(0, counted(n, "device")+" with nothing to go to any more  "+namesText(ids))
	}
	for list := m.Settings; len(list) > 0; {
		alike := preview.AlikeSettings(list)
		t.line(0, Clean(list[0].Words)+"  "+namesText(alike))
		list = list[len(alike):]
	}
}

func policyText(name string) string {
	if name == "" {
		return "no policy"
	}
	return "policy " + Clean(name)
}

func (t *planText) worstCase(list []preview.Reach) {
	if len(list) == 0 {
		return
	}
	t.section("WORST CASE")
	for _, r := range list {
		text := fmt.Sprintf("%s  a bad %s reaches %d of %s: %s", Clean(r.Policy), Clean(or(r.Target, "release")), r.Devices, counted(r.Of, "device"),
			Clean(strings.Join(r.Words, "; ")))
		switch {
		case r.NeverSeen == r.Of:
			text += " (once they have reported; none has yet)"
		case r.NeverSeen > 0:
			text += fmt.Sprintf(" (once all have reported; %d never did)", r.NeverSeen)
		}
		t.line(0, text)
	}
}

// namesText names the first few and counts the others.
func namesText(ids []string) string {
	shown := make([]string, 0, shownNames)
	for _, id := range ids[:min(len(ids), shownNames)] {
		shown = append(shown, Clean(id))
	}
	text := strings.Join(shown, ", ")
	if more := len(ids) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
