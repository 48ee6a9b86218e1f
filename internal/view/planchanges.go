package view

import (
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
)

// Bounds of what the text shows of the changes; the JSON has all of them.
const (
	shownGroups  = 20 // kinds of change
	shownChanges = 30 // elements of one spec, and names of one effect
)

// changes writes what devices get: those that change alike together.
func (t *planText) changes(p *preview.Plan) {
	if p.Base == nil {
		return
	}
	t.section("CHANGES")
	if len(p.Changes) == 0 {
		t.line(0, "none in what a device should be")
	}
	for i := range p.Changes {
		if i == shownGroups {
			t.line(0, "and "+counted(len(p.Changes)-i, "more group")+" of changes: -o json has them")
			return
		}
		g := &p.Changes[i]
		text := counted(len(g.Devices), "device") + "  " + versionsText(g.From, g.To) + "  " + namesText(g.Devices)
		t.line(0, text)
		if g.Variants > 1 {
			t.line(2, fmt.Sprintf("%d variants of one change; the values are those of %s", g.Variants, Clean(g.Example)))
		}
		if text := BeforeText(g); text != "" {
			t.line(2, Clean(text))
		}
		t.spec(g.Changes, NoChangesText(g))
		if text := EffectText(&g.Effect, len(g.Devices), effectNames); text != "" {
			t.line(2, "effect: "+text)
		}
		if !g.Effect.Already {
			t.line(2, "next sweep: "+codesText(g.Counts))
		}
	}
}

// spec writes the elements that differ, or why there are none.
func (t *planText) spec(list []preview.Change, none string) {
	if len(list) == 0 && none != "" {
		t.line(2, none)
	}
	for i := range list {
		if i == shownChanges {
			t.line(2, fmt.Sprintf("and %d more: -o json has them", len(list)-i))
			return
		}
		t.element(&list[i])
	}
}

func (t *planText) element(ch *preview.Change) {
	name := elementName(ch)
	var words []string
	for _, f := range ch.Fields {
		words = append(words, fieldText(ch.Op, f))
	}
	if c := ch.Content; c != nil {
		words = append(words, ContentText(c, Clean))
	}
	text := name
	switch ch.Op {
	case preview.Added, preview.Removed:
		text += " " + ch.Op
		if len(words) > 0 && ch.Op == preview.Added {
			text += ": " + strings.Join(words, ", ")
		}
	default:
		if len(words) == 0 {
			words = append(words, "the same content, delivered in another way")
		}
		text += "  " + strings.Join(words, ", ")
	}
	if ch.Varies {
		text += " (varies)"
	}
	t.line(2, text)
	if ch.Op != preview.Removed && ch.Content != nil {
		t.lines(6, ch.Content)
	}
}

// elementName is what an element is called: a file by its path.
func elementName(ch *preview.Change) string {
	switch {
	case ch.Section == "files":
		return Clean(ch.Name)
	case ch.Name == "":
		return Clean(ch.Section)
	case ch.Section == "directories":
		return "directory " + Clean(ch.Name)
	}
	return Clean(strings.TrimSuffix(ch.Section, "s") + " " + ch.Name)
}

func fieldText(op string, f preview.Field) string {
	name := Clean(f.Name)
	if name != "" {
		name += " "
	}
	switch op {
	case preview.Added:
		return name + Clean(f.To)
	case preview.Removed:
		return name + Clean(f.From)
	}
	return name + Clean(or(f.From, "unset")) + " → " + Clean(or(f.To, "unset"))
}

// ContentText says what becomes of the content of a file; escape is for where it
// is shown.
func ContentText(c *preview.Content, escape func(string) string) string {
	var text string
	switch {
	case c.From < 0:
		text = BytesText(c.To)
	case c.To < 0:
		text = "no content any more"
	case c.From == c.To:
		text = "content of " + BytesText(c.To)
	default:
		text = "content " + BytesText(c.From) + " → " + BytesText(c.To)
	}
	switch {
	case c.Binary:
		text = "binary, " + text
	case c.Hidden != "":
		text += ", not shown: " + escape(c.Hidden)
	case c.From >= 0 && c.Inserted+c.Deleted > 0:
		text += fmt.Sprintf(" (+%d −%d)", c.Inserted, c.Deleted)
	}
	return text
}

// lines writes a difference.
func (t *planText) lines(indent int, c *preview.Content) {
	for _, l := range c.Lines {
		color := ""
		switch {
		case strings.HasPrefix(l, "+"):
			color = colorGood
		case strings.HasPrefix(l, "-"):
			color = colorBad
		case strings.HasPrefix(l, "@"):
			color = colorFaint
		}
		for _, part := range t.broken(Clean(l), indent) {
			fmt.Fprintf(t.b, "%s%s\n", strings.Repeat(" ", indent), t.look.paint(color, part))
		}
	}
	if c.More > 0 {
		t.line(indent, "… "+counted(c.More, "more line"))
	}
}

// broken breaks a line of a difference, each part of it coloured by itself.
func (t *planText) broken(l string, indent int) []string {
	const least = 12 // of less room nobody makes anything
	if t.look.Width-indent < least {
		return []string{l}
	}
	return Wrap(l, t.look.Width-indent)
}

func versionsText(from, to string) string {
	if from == to {
		return Clean(to)
	}
	return Clean(or(from, "nothing")) + " → " + Clean(or(to, "nothing"))
}
