package schema

import (
	"fmt"
	"maps"
	"sort"
	"strings"
)

// findingKey is one thing that is wrong, at its place. What many devices run
// into, such as a variable that a template lacks, is one problem that names
// the first of them.
type findingKey struct {
	file         string
	line, column int
	pointer      string
	rule         string
	msg          string
	hint         string
	warning      bool
}

type spreadFinding struct {
	devices []string // the first few
	count   int
}

// maxNamed is how many devices a problem names before it only counts.
const maxNamed = 3

func (p *pass) collect(k findingKey, device string) {
	s := p.spread[k]
	if s == nil {
		s = &spreadFinding{}
		p.spread[k] = s
	}
	s.count++
	if len(s.devices) < maxNamed {
		s.devices = append(s.devices, device)
	}
}

// note adds a finding to those of a device. What many devices have in common
// is kept once, and what one device answers with is bounded: one document that
// all of them share may have ten thousand things wrong for each.
func (p *pass) note(s *deviceState, k findingKey) {
	s.wrong = s.wrong || !k.warning
	if len(s.findings) >= maxProblems {
		s.more++
		return
	}
	shared := p.known[k]
	if shared == nil {
		shared = &k
		p.known[k] = shared
	}
	s.findings = append(s.findings, shared)
}

// noteMerged is note for what is wrong in the merged spec of a device. Its
// document is only looked for where the finding is kept.
func (p *pass) noteMerged(s *deviceState, found finding) {
	if len(s.findings) >= maxProblems {
		p.note(s, findingKey{warning: found.warning})
		return
	}
	p.note(s, p.attribute(s, found))
}

// unlistedOf stands for the findings of a device that were only counted.
func unlistedOf(s *deviceState) Problem {
	prob := Problem{File: s.file.path, Rule: ruleTooMany, Severity: SeverityWarning,
		Message: count(s.more, "more problem") + " in the spec of this device"}
	if s.wrong {
		prob.Severity = SeverityError
	}
	return prob
}

// spreadAt notes a finding that concerns no device in particular.
func (p *pass) spreadAt(k findingKey) {
	if p.spread[k] == nil {
		p.spread[k] = &spreadFinding{}
	}
}

// ruleConditionMet is no rule: it marks the place of a condition that is met on
// some device. It never becomes a problem.
const ruleConditionMet = ""

// met gives the places of conditions that are met on some device, so that what
// is not met on others is no warning.
func (p *pass) met() map[findingKey]bool {
	met := map[findingKey]bool{}
	for k := range p.spread {
		if k.rule == ruleConditionMet {
			met[findingKey{file: k.file, pointer: k.pointer}] = true
		}
	}
	return met
}

func (p *pass) spreadProblems() []Problem {
	var problems []Problem
	met := p.met()
	for k, s := range p.spread {
		if k.rule == ruleConditionMet || k.rule == ruleCondition && met[findingKey{file: k.file, pointer: k.pointer}] {
			continue
		}
		prob := Problem{File: k.file, Line: k.line, Column: k.column, Pointer: k.pointer, Rule: k.rule,
			Severity: SeverityError, Message: k.msg, Hint: k.hint}
		if k.warning {
			prob.Severity = SeverityWarning
		}
		if s.count > 0 {
			prob.Message += " (" + named(s.devices, s.count) + ")"
		}
		problems = append(problems, prob)
	}
	return problems
}

// named lists devices: "gw-1, gw-2, gw-3 and 7 more".
func named(first []string, count int) string {
	sort.Strings(first)
	list := strings.Join(first, ", ")
	if rest := count - len(first); rest > 0 {
		return fmt.Sprintf("%s and %d more", list, rest)
	}
	return list
}

// maxPositions bounds the node trees that are kept for positions; each is
// about twenty times the size of its text.
const maxPositions = 64

// document is the node tree of a file, read again when a problem needs it.
func (p *pass) document(f *file) *document {
	if d, ok := p.documents[f]; ok {
		return d
	}
	d, _ := readDocument(f.content.data)
	if len(p.documents) >= maxPositions {
		clear(p.documents)
	}
	p.documents[f] = d
	return d
}

// located gives a finding in a file its position.
func (p *pass) located(f *file, found finding) findingKey {
	k := findingKey{file: f.path, pointer: found.pointer, rule: found.rule, msg: found.msg, hint: found.hint, warning: found.warning}
	if d := p.document(f); d != nil {
		prob := d.place(found)
		k.line, k.column, k.msg = prob.Line, prob.Column, prob.Message
	}
	return k
}

// find reports a finding that makes a file unusable in this revision.
func (p *pass) find(f *file, found finding) {
	p.spreadAt(p.located(f, found))
	if !found.warning {
		p.unusable[f] = true
	}
}

func (p *pass) warnAt(f *file, pointer, rule, msg, hint string) {
	p.find(f, finding{pointer: pointer, rule: rule, msg: msg, hint: hint, warning: true})
}

func (p *pass) usable(f *file) bool { return !f.broken && !p.unusable[f] }

// sourcePaths is the set of all paths that documents name as sources.
func (p *pass) sourcePaths() map[string]bool {
	set := map[string]bool{}
	maps.Copy(set, p.sources)
	for _, group := range [][]*file{p.releases, p.overlays, p.devices} {
		for _, f := range group {
			for _, s := range f.sources {
				set[s.path] = true
			}
		}
	}
	return set
}
