package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// maxUnitSlips bounds what one text answers with, and maxOddKeys how many keys
// that are not known are compared with those that are.
const (
	maxUnitSlips = 20
	maxOddKeys   = 100
)

// textForm is what the text of a unit, a quadlet file or a drop-in may hold.
type textForm struct {
	name     string // of the unit or the quadlet file
	isDropIn bool
	own      string   // the section of its type
	sections []string // that somebody reads
	isFile   bool     // it stands in files, where only what it takes away is looked at
}

// unitSections are those that systemd knows; quadletSections are those in a
// quadlet file beside that of its type.
var (
	unitSections    = []string{"Unit", "Install", "Service", "Socket", "Timer", "Path", "Mount", "Automount", "Swap", "Slice", "Target"}
	quadletSections = []string{"Unit", "Install", "Service", "Quadlet"}
)

// textFormOf is the form of what has content in a spec; ok = it is of a unit or
// of a quadlet file.
func textFormOf(keys []string) (form textForm, ok bool) {
	switch {
	case isQuadlet(keys):
		form.name, form.isDropIn = QuadletOf(keys[3])
		form.own = quadletSection(form.name)
		form.sections = append([]string{form.own}, quadletSections...)
		return form, IsQuadlet(form.name)
	case len(keys) > 1 && keys[0] == "units":
		form.name, form.isDropIn = keys[1], len(keys) > 2
		form.own, form.sections = quadletSection(form.name), unitSections
		return form, slices.Contains(unitTypes, path.Ext(form.name))
	case len(keys) == 2 && keys[0] == "files":
		form, ok = fileFormOf(keys[1])
		form.isFile = true
		return form, ok
	}
	return form, false
}

// isUnit says whether systemd reads the text, and not podman.
func (f textForm) isUnit() bool { return slices.Contains(unitTypes, path.Ext(f.name)) }

// needsSection says whether nothing is made of a text without a section of its
// type: systemd refuses such a unit. The others are made by their name alone.
func (f textForm) needsSection() bool {
	return !f.isDropIn && slices.Contains([]string{"Service", "Socket", "Timer", "Path", "Mount"}, f.own)
}

// unitSlip is what is wrong in a line of a text.
type unitSlip struct {
	line      int
	rule      string
	msg, hint string
	warning   bool
}

// unitSlips looks for what systemd or podman would refuse in a text, which is an
// error, and what they would pass over. What it does not know, they may.
func unitSlips(form textForm, text string) []unitSlip {
	taken := takenUnits(form, text)
	if form.isFile {
		return taken
	}
	r := textReading{form: form, compared: map[string]bool{}}
	sections := map[string]bool{}
	for l := range unitLines(text, form.isUnit()) {
		if r.line(l); l.begins {
			sections[l.section] = true
		}
		if len(r.slips) == maxUnitSlips-maxTaken {
			break
		}
	}
	switch {
	case !form.needsSection() || sections[form.own]:
	case len(sections) == 0 && len(r.slips) == 0:
		r.refused(1, "begin it with a line ["+form.own+"]", "%s has no section", quote(form.name))
	default: // the section of its type is the one that is misspelled
		for i := range r.slips {
			if s := &r.slips[i]; s.hint == meantSection(form.own) {
				s.rule, s.warning = ruleUnitSyntax, false
			}
		}
	}
	return append(r.slips, taken...)
}

// textReading is one text while it is looked at.
type textReading struct {
	form     textForm
	slips    []unitSlip
	outside  bool            // the text before the first section was told of
	compared map[string]bool // keys that were
}

func (r *textReading) refused(line int, hint, format string, args ...any) {
	r.slips = append(r.slips, unitSlip{line: line, rule: ruleUnitSyntax, msg: fmt.Sprintf(format, args...), hint: hint})
}

func (r *textReading) unread(line int, hint, format string, args ...any) {
	r.slips = append(r.slips, unitSlip{line: line, rule: ruleUnitUnread, msg: fmt.Sprintf(format, args...), hint: hint, warning: true})
}

// noKey tells of a line that systemd passes over and podman refuses.
func (r *textReading) noKey(line int, hint, format string, args ...any) {
	if r.form.isUnit() {
		r.unread(line, hint, format, args...)
	} else {
		r.refused(line, hint, format, args...)
	}
}

func (r *textReading) line(l unitLine) {
	switch own := strings.HasPrefix(l.section, "X-"); {
	case l.begins && l.section == l.text:
		r.refused(l.number, "write it as "+clip(strings.TrimSpace(l.text)+"]"), "the section %s has no ] at its end", quote(clip(l.text)))
	case l.begins && !own:
		r.section(l)
	case l.begins:
	case l.section == "":
		if !r.outside {
			r.noKey(l.number, "begin the text with a line ["+r.form.own+"]", "%s stands before the first section", quote(clip(l.text)))
		}
		r.outside = true
	case !l.isKey && !(own && r.form.isUnit()):
		r.noKey(l.number, `a line that goes on in the next one ends with \`, "%s is neither a section nor a key with a value", quote(clip(l.text)))
	case !own:
		r.key(l)
	}
}

func (r *textReading) section(l unitLine) {
	if slices.Contains(r.form.sections, l.section) {
		return
	}
	if near := misspelled(l.section, r.form.sections); near != "" {
		r.unread(l.number, meantSection(near), "nothing reads the section [%s]", clip(l.section))
	}
}

func meantSection(name string) string { return "did you mean [" + name + "]?" }

func (r *textReading) key(l unitLine) {
	if l.key == "ExecStart" && l.section != "Service" && r.form.own == "Service" && slices.Contains(r.form.sections, l.section) {
		r.unread(l.number, "put it below a line [Service]", "ExecStart stands in [%s], where systemd does not read it", clip(l.section))
		return
	}
	known := knownKeys(r.form, l.section)
	if known == nil || slices.Contains(known, l.key) || r.compared[l.key] || len(r.compared) == maxOddKeys {
		return
	}
	r.compared[l.key] = true
	if near := misspelled(l.key, known); near != "" {
		r.unread(l.number, "did you mean "+near+"?", "the key %s of [%s] is not known", quote(clip(l.key)), l.section)
	}
}

// misspelled is the known word that one was surely meant to be, or "". It is
// stricter than [Nearest]: newer versions of systemd and podman have words that
// are not known here.
func misspelled(word string, known []string) string {
	for most := range 1 + max(1, min(2, len(word)/5)) {
		for _, k := range known {
			if strings.EqualFold(k, word) || EditDistance(word, k, most) <= most {
				return k
			}
		}
	}
	return ""
}

// textFindings are those of a text that stands in a document and is no template.
func textFindings(keys []string, entry map[string]any, at string) []finding {
	form, ok := textFormOf(keys)
	if !ok || entry["template"] == true {
		return nil
	}
	text, isText := entry["content"].(string)
	field := "content"
	if encoded, ok := entry["contentBase64"].(string); ok && !isText {
		data, err := decodeBase64(encoded)
		text, field, isText = string(data), "contentBase64", err == nil
	}
	if !isText {
		return nil
	}
	var found []finding
	for _, s := range unitSlips(form, text) {
		found = append(found, finding{pointer: at + "/" + field, rule: s.rule, msg: s.msg, hint: s.hint, line: s.line, warning: s.warning})
	}
	return found
}

// checkTextSource looks at a text that is a file of the repository, and reports
// what is wrong in it there.
func (p *pass) checkTextSource(f *file, s sourceRef, pl *payload) {
	form, ok := textFormOf(s.keys)
	if !ok || s.template || len(pl.text) < int(pl.size) { // larger ones are not kept
		return
	}
	for _, slip := range unitSlips(form, pl.text) {
		p.spreadAt(findingKey{file: s.path, line: slip.line, rule: slip.rule, msg: slip.msg, hint: slip.hint, warning: slip.warning})
		if !slip.warning {
			p.unusable[f] = true
		}
	}
}

// filled looks at what a template has become for one device.
func (r *rendering) filled(keys []string, entry map[string]any, text string) {
	r.compose(keys, entry, text)
	form, ok := textFormOf(keys)
	if !ok || text == "" { // why it is empty was told
		return
	}
	field := contentsOf(entry)[0]
	for _, s := range unitSlips(form, text) {
		r.pass.noteMerged(r.state, finding{pointer: joinPointer(keys...) + "/" + field, rule: s.rule, hint: s.hint, warning: s.warning,
			msg: fmt.Sprintf("%s (line %d of what the template renders to)", s.msg, s.line)})
	}
}
