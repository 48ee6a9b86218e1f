package comment

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// note says why there is no other base.
func (d *document) note(text string) {
	if text == "" {
		return
	}
	d.add(part{keep: keepNote, title: "a note", open: "\n", rows: 1, row: func(int) string { return "Note: " + prose(text) + "\n" }})
}

func (d *document) warnings(list []string) {
	const most = 20 // warnings
	d.list(keepWarnings, "Warnings", most, len(list), func(i int) string { return prose(list[i]) })
}

// policies are the settings that differ, in words.
func (d *document) policies(list []preview.PolicyChange) {
	var rows []func() string
	for i := range list {
		p := &list[i]
		name := "the whole fleet"
		if p.Policy != "" {
			name = code(clip(p.Policy, longestName))
		}
		if p.Op != preview.Changed {
			rows = append(rows, func() string { return name + " " + p.Op })
		}
		for _, f := range p.Fields {
			rows = append(rows, func() string { return name + ": " + setting(f) })
		}
		for _, l := range view.MayGo(p) {
			rows = append(rows, func() string { return name + ": " + l })
		}
	}
	const most = 40 // settings
	d.list(keepPolicies, "Policies", most, len(rows), func(i int) string { return rows[i]() })
}

func setting(f preview.PolicyField) string {
	text := prose(f.Words)
	if f.Careful != "" {
		text += " (**" + prose(f.Careful) + " careful**)"
	}
	return text
}

// membership is who comes, goes, and changes sides.
func (d *document) membership(m *preview.Membership) {
	var rows []string
	for _, l := range []struct {
		what string
		ids  []string
	}{{"new", m.Added}, {"gone", m.Removed}} {
		if len(l.ids) > 0 {
			rows = append(rows, counted(len(l.ids), "device")+" "+l.what+": "+names(l.ids))
		}
	}
	for _, w := range m.Ways() {
		rows = append(rows, fmt.Sprintf("%s from %s to %s: %s", counted(len(w.Devices), "device"), policyName(w.From), policyName(w.To), names(w.Devices)))
	}
	if len(m.NoTarget) > 0 {
		var ids []string
		for _, v := range m.NoTarget {
			ids = append(ids, v.Device)
		}
		rows = append(rows, counted(len(ids), "device")+" with nothing to go to any more: "+names(ids))
	}
	for list := m.Settings; len(list) > 0; {
		alike := preview.AlikeSettings(list)
		rows = append(rows, names(alike)+": "+prose(list[0].Words))
		list = list[len(alike):]
	}
	const most = 20 // ways to come, go and move
	d.list(keepMembership, "Who", most, len(rows), func(i int) string { return rows[i] })
}

func policyName(name string) string {
	if name == "" {
		return "no policy"
	}
	return "policy " + code(clip(name, longestName))
}

func (d *document) worstCase(list []preview.Reach) {
	const most = 20 // policies
	d.list(keepWorstCase, "Worst case", most, len(list), func(i int) string {
		r := &list[i]
		target := "release"
		if r.Target != "" {
			target = code(clip(r.Target, longestName))
		}
		text := fmt.Sprintf("%s: a bad %s reaches %d of %s: %s", orDash(r.Policy), target, r.Devices, counted(r.Of, "device"), prose(strings.Join(r.Words, "; ")))
		switch {
		case r.NeverSeen == r.Of:
			text += " (once they have reported; none has yet)"
		case r.NeverSeen > 0:
			text += fmt.Sprintf(" (once all have reported; %d never did)", r.NeverSeen)
		}
		return text
	})
}

// problems are those of a head that is not valid, errors first.
func (d *document) problems(list []schema.Problem) {
	order := make([]*schema.Problem, 0, len(list))
	for _, wanted := range []bool{true, false} {
		for i := range list {
			if (list[i].Severity == schema.SeverityError) == wanted {
				order = append(order, &list[i])
			}
		}
	}
	const most = 100 // problems; who has more begins with these
	d.table(keepProblems, "Problems", []string{"where", "what", "rule"}, most, len(order), func(i int) []string {
		p := order[i]
		where := p.File
		if p.Line > 0 {
			where += fmt.Sprintf(":%d", p.Line)
		}
		if p.Line > 0 && p.Column > 0 {
			where += fmt.Sprintf(":%d", p.Column)
		}
		what := prose(p.Message)
		if p.Severity != schema.SeverityError {
			what = "warning: " + what
		}
		if p.Hint != "" {
			what += " (" + prose(p.Hint) + ")"
		}
		return []string{code(tailOf(where)), what, orDash(p.Rule)}
	})
}

// tailOf shortens a place at its front: the end of a path tells most.
func tailOf(where string) string {
	const longest = 120 // runes
	short := len(where) > longest*utf8.UTFMax
	if short {
		where = where[len(where)-longest*utf8.UTFMax:]
	}
	runes := []rune(view.Clean(where))
	if short || len(runes) > longest {
		return "…" + string(runes[max(0, len(runes)-longest):])
	}
	return string(runes)
}
