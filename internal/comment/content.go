package comment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/view"
)

// Bounds of what one row shows of a change.
const (
	shownElements = 4  // by name, in the table
	shownFields   = 12 // of one element
)

// changes is a table of what changes alike.
func (d *document) changes(groups []preview.Group) {
	const most = 20 // groups; more are no overview
	d.table(keepChanges, "Changes", []string{"devices", "version", "what", "effect on each", "next sweep"}, most, len(groups), func(i int) []string {
		g := &groups[i]
		who := fmt.Sprintf("%d: %s", len(g.Devices), names(g.Devices))
		return []string{who, versions(g.From, g.To), elements(g), view.EffectText(&g.Effect, len(g.Devices), names), codes(g.Counts)}
	})
}

// elements names what differs, and from what it does where that is to be told.
func elements(g *preview.Group) string {
	var words []string
	if none := view.NoChangesText(g); none != "" && len(g.Changes) == 0 {
		words = append(words, none)
	}
	for i := range g.Changes[:min(len(g.Changes), shownElements)] {
		ch := &g.Changes[i]
		text := element(ch)
		if ch.Op != preview.Changed {
			text += " " + ch.Op
		}
		words = append(words, text)
	}
	if more := len(g.Changes) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	text := strings.Join(words, ", ")
	if g.Variants > 1 {
		text += fmt.Sprintf(" (%d variants)", g.Variants)
	}
	if before := view.BeforeText(g); before != "" {
		text = strings.TrimPrefix(text+"; "+prose(before), "; ")
	}
	return text
}

// element is what an element of a spec is called: a file by its path.
func element(ch *preview.Change) string {
	name := code(clip(ch.Name, longestName))
	switch {
	case ch.Section == "files" && ch.Name != "":
		return name
	case ch.Name == "":
		return prose(ch.Section)
	case ch.Section == "directories":
		return "directory " + name
	}
	return prose(strings.TrimSuffix(ch.Section, "s")) + " " + name
}

// everyChange shows the changes line by line, folded.
func (d *document) everyChange(groups []preview.Group) {
	// ends counts the changes up to and with each group.
	ends := make([]int, len(groups))
	total := 0
	for i := range groups {
		total += len(groups[i].Changes)
		ends[i] = total
	}
	open, closing := fold("The changes, line by line")
	d.add(part{
		keep: keepEveryChange, title: "the changes line by line", open: open, close: closing, more: "\n",
		rows: total, row: func(i int) string {
			at, _ := slices.BinarySearch(ends, i+1)
			g := &groups[at]
			first := ends[at] - len(g.Changes)
			text := elementLines(&g.Changes[i-first])
			switch {
			case i > first:
				return text
			case i > 0:
				return "\n" + groupLine(g) + text
			}
			return groupLine(g) + text
		},
	})
}

// groupLine introduces the changes of a group.
func groupLine(g *preview.Group) string {
	text := "**" + counted(len(g.Devices), "device") + "** " + versions(g.From, g.To) + ": " + names(g.Devices)
	if g.Variants > 1 {
		text += fmt.Sprintf("; %d variants of one change, shown as it is on %s", g.Variants, code(clip(g.Example, longestName)))
	}
	return text + "\n\n"
}

// elementLines shows one element with its values and its content.
func elementLines(ch *preview.Change) string {
	var words []string
	for _, f := range ch.Fields[:min(len(ch.Fields), shownFields)] {
		words = append(words, field(ch.Op, f))
	}
	if more := len(ch.Fields) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	if ch.Content != nil {
		words = append(words, view.ContentText(ch.Content, prose))
	}
	text := "- " + element(ch)
	switch {
	case ch.Op == preview.Removed:
		text += " removed"
		words = nil
	case ch.Op == preview.Added:
		text += " added"
	case len(words) == 0:
		words = append(words, "the same content, delivered in another way")
	}
	if len(words) > 0 {
		text += ": " + strings.Join(words, ", ")
	}
	if ch.Varies {
		text += " (varies)"
	}
	return text + "\n" + difference(ch)
}

func field(op string, f preview.Field) string {
	name := ""
	if f.Name != "" {
		name = prose(clip(f.Name, longestName)) + " "
	}
	value := func(s string) string {
		if s == "" {
			return "unset"
		}
		return code(clip(s, longestName))
	}
	if op == preview.Added {
		return name + value(f.To)
	}
	return name + value(f.From) + " → " + value(f.To)
}

// difference is a block with the lines of a content that differ.
func difference(ch *preview.Change) string {
	if ch.Op == preview.Removed || ch.Content == nil || len(ch.Content.Lines) == 0 {
		return ""
	}
	lines := make([]string, 0, len(ch.Content.Lines)+1)
	for _, l := range ch.Content.Lines {
		lines = append(lines, clipLine(l))
	}
	if ch.Content.More > 0 {
		lines = append(lines, "… "+counted(ch.Content.More, "more line"))
	}
	return "\n" + fenced("diff", lines)
}
