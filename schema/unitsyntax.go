package schema

import (
	"iter"
	"strings"
)

// unitLine is a line of a unit or a quadlet file, with those that it goes on in.
type unitLine struct {
	number  int    // of the first of them, from 1
	section string // in which it stands, or that it begins; "" = before the first
	begins  bool   // it is the header of its section
	isKey   bool   // it gives a value to a key that has a name
	key     string
	value   string
	text    string // all of it
}

// unitLines reads a text as systemd does (systemd.syntax(7)), or as podman does,
// which differs a little: it has no byte order mark, and a line goes on in the
// next one behind any backslash at its end. Comments and empty lines are left out.
func unitLines(text string, isUnit bool) iter.Seq[unitLine] {
	goesOn := podmanGoesOn
	if isUnit {
		text, goesOn = strings.TrimPrefix(text, "\ufeff"), systemdGoesOn
	}
	return func(yield func(unitLine) bool) {
		section := ""
		lines := strings.Split(lineEnds.Replace(text), "\n")
		for i := 0; i < len(lines); i++ {
			l := unitLine{number: i + 1}
			l.text, i = wholeLine(lines, i, goesOn)
			switch {
			case l.text == "" || isINIComment(l.text):
				continue
			case l.text[0] == '[':
				section, l.begins = l.text, true // what does not end is no section that anybody reads
				if strings.HasSuffix(section, "]") {
					section = section[1 : len(section)-1]
				}
			default:
				l.key, l.value, l.isKey = strings.Cut(l.text, "=")
				l.key, l.value = strings.TrimSpace(l.key), strings.Trim(strings.TrimSpace(l.value), `"`)
				l.isKey = l.isKey && l.key != ""
			}
			if l.section = section; !yield(l) {
				return
			}
		}
	}
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// wholeLine joins a line with those that it goes on in, and gives the last of
// them. A comment in between is none of it.
func wholeLine(lines []string, i int, goesOn func(line string) bool) (string, int) {
	if isINIComment(lines[i]) {
		return strings.TrimSpace(lines[i]), i
	}
	for parts := []string(nil); ; {
		line := strings.TrimSpace(lines[i])
		if !goesOn(lines[i]) || i+1 == len(lines) {
			return strings.Join(append(parts, line), " "), i
		}
		parts = append(parts, strings.TrimSpace(strings.TrimSuffix(line, `\`)))
		for i++; isINIComment(lines[i]); i++ {
			if i+1 == len(lines) {
				return strings.Join(parts, " "), i
			}
		}
	}
}

// systemdGoesOn says whether the backslash at the end of a line joins it with the next
// one: two of them are one that stands for itself.
func systemdGoesOn(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func podmanGoesOn(line string) bool { return strings.HasSuffix(strings.TrimSpace(line), `\`) }

func isINIComment(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";")
}

// iniValues are the values of a key of a section of a quadlet file.
func iniValues(text, section, key string) []string {
	var values []string
	for l := range unitLines(text, false) {
		if l.isKey && l.section == section && l.key == key {
			values = append(values, l.value)
		}
	}
	return values
}

// iniSections are the names of the sections of a quadlet file's texts, in their order.
func iniSections(texts [][]byte) []string {
	var names []string
	for _, text := range texts {
		for l := range unitLines(string(text), false) {
			if l.begins {
				names = append(names, l.section)
			}
		}
	}
	return names
}
