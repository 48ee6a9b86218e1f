package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	// maxSubject is where common tools cut the first line of a message.
	maxSubject = 72
	// maxLines bounds the body: the first pass over a large fleet decides
	// about every device.
	maxLines = 200
	// sourceTrailer names the source commit that a status commit is of.
	sourceTrailer = "Gitopsd-Source"
)

// message tells a person who reads git log what this commit is about.
func (p *pass) message(b *builder) string {
	var text strings.Builder
	text.WriteString(p.subject(b.changes))
	lines := p.bodyLines()
	if len(lines) > 0 {
		text.WriteString("\n\n")
	}
	for i, line := range lines {
		if i == maxLines {
			fmt.Fprintf(&text, "and %d more\n", len(lines)-maxLines)
			break
		}
		text.WriteString(line + "\n")
	}
	if source := b.swept(); source != "" {
		if len(lines) == 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "\n%s: %s\n", sourceTrailer, source)
	}
	return text.String()
}

// subject says the most important thing first.
func (p *pass) subject(changes map[string]string) string {
	var parts []string
	say := func(moves []Move, word string, pick func(Move) bool) {
		byVersion := map[string][]string{}
		for _, m := range moves {
			if pick(m) {
				byVersion[m.Version] = append(byVersion[m.Version], m.Device)
			}
		}
		versions := make([]string, 0, len(byVersion))
		for v := range byVersion {
			versions = append(versions, v)
		}
		slices.Sort(versions)
		for _, v := range versions {
			verb := word
			if word == "gets" && len(byVersion[v]) > 1 {
				verb = "get"
			}
			parts = append(parts, fmt.Sprintf("%s %s %s", names(byVersion[v]), verb, v))
		}
	}
	is := func(o ...schema.Outcome) func(Move) bool {
		return func(m Move) bool { return slices.Contains(o, m.Outcome) }
	}
	for _, s := range p.stops {
		if !p.stood(s) {
			parts = append(parts, "stopped: "+s.reason)
		}
	}
	say(p.result.Ended, "failed", is(schema.OutcomeFailed))
	say(p.result.Ended, "lost on", is(schema.OutcomeLost))
	say(p.result.Ended, "refused", is(schema.OutcomeRefused))
	say(p.result.Ended, "used up the tries for", is(schema.OutcomeExhausted))
	say(p.result.Assigned, "gets", func(Move) bool { return true })
	say(p.started, "started", func(Move) bool { return true })
	say(p.result.Ended, "done:", is(schema.OutcomeOK))
	say(p.result.Ended, "compared with", is(schema.OutcomeObserved))
	say(p.result.Recalled, "recalled from", func(Move) bool { return true })
	say(p.result.Ended, "not begun:", is(schema.OutcomeDeferred, schema.OutcomeUnreached))
	switch {
	case len(parts) > 0:
	case p.rebuilt:
		parts = []string{"status rebuilt from deliveries and reports"}
	case p.tip == "":
		parts = []string{"first sweep"}
	case len(p.stops) == 0 && p.status.Fleet != nil && p.fleet != nil && p.status.Fleet.SourceCommit != p.fleet.commit:
		parts = []string{"swept " + short(p.fleet.commit) + ": " + p.fleet.subject}
	default:
		parts = []string{"status: " + p.smallChange(changes)}
	}
	subject := parts[0]
	for i, part := range parts[1:] {
		if len(subject)+2+len(part) > maxSubject {
			return clip(fmt.Sprintf("%s; and %d more", subject, len(parts)-1-i))
		}
		subject += "; " + part
	}
	return clip(subject)
}

func clip(s string) string {
	if len(s) <= maxSubject {
		return s
	}
	return strings.ToValidUTF8(s[:maxSubject-len("…")], "") + "…"
}

// stood says whether a stop was known before this pass.
func (p *pass) stood(s stop) bool {
	return p.status.Fleet != nil && slices.ContainsFunc(p.status.Fleet.Conditions, func(c schema.Condition) bool {
		return c.Type == s.kind && c.Reason == s.reason
	})
}

func names(ids []string) string {
	slices.Sort(ids)
	const shown = 3 // a subject line holds no more
	if len(ids) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:shown], ", "), len(ids)-shown)
	}
	return strings.Join(ids, ", ")
}

func (p *pass) bodyLines() []string {
	var lines []string
	for _, s := range p.stops {
		if !p.stood(s) {
			lines = append(lines, "stopped: "+oneLine(s.message))
		}
	}
	for _, c := range p.notices {
		if !p.stood(stop{kind: c.Type, reason: c.Reason}) {
			lines = append(lines, c.Type+": "+oneLine(c.Message))
		}
	}
	add := func(moves []Move, word func(Move) string) {
		slices.SortFunc(moves, byDevice)
		for _, m := range moves {
			line := fmt.Sprintf("%s: %s", m, word(m))
			if m.Because != "" {
				line += ", " + oneLine(m.Because)
			}
			lines = append(lines, line)
		}
	}
	add(p.result.Ended, func(m Move) string { return string(m.Outcome) })
	add(p.result.Recalled, func(m Move) string { return "recalled" })
	add(p.result.Assigned, func(m Move) string { return "assigned" })
	return append(lines, p.verdictLines()...)
}

// verdictLines are the verdicts that changed, but those that a move explains.
func (p *pass) verdictLines() []string {
	var lines []string
	for _, dr := range p.drafts {
		v := dr.status.Verdict
		if dr.moved || (dr.old != nil && dr.old.Status.Verdict == v) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %s", dr.id, v.Code, v.Reason))
	}
	slices.Sort(lines)
	return lines
}
