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
	isKey   bool   // it gives a value to a key
	key     string
	value   string
	text    string // all of it
}

// unitLines reads a text in the form of systemd.syntax(7): lines that end with a
// backslash go on in the next one. Comments and empty lines are left out.
func unitLines(text string) iter.Seq[unitLine] {
	return func(yield func(unitLine) bool) {
		section := ""
		lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
		for i := 0; i < len(lines); i++ {
			l := unitLine{number: i + 1}
			l.text, i = wholeLine(lines, i)
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
			}
			if l.section = section; !yield(l) {
				return
			}
		}
	}
}

// wholeLine joins a line with those that it goes on in, and gives the last of
// them. A comment in between is none of it.
func wholeLine(lines []string, i int) (string, int) {
	line := strings.TrimSpace(lines[i])
	if isINIComment(line) {
		return line, i
	}
	for parts := []string(nil); ; {
		more, goesOn := strings.CutSuffix(line, `\`)
		if !goesOn || i+1 == len(lines) {
			return strings.Join(append(parts, line), " "), i
		}
		parts = append(parts, strings.TrimSpace(more))
		for i++; i+1 < len(lines) && isINIComment(lines[i]); i++ {
		}
		line = ""
		if !isINIComment(lines[i]) {
			line = strings.TrimSpace(lines[i])
		}
	}
}

func isINIComment(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";")
}

// iniValues are the values of a key of a section.
func iniValues(text, section, key string) []string {
	var values []string
	for l := range unitLines(text) {
		if l.isKey && l.section == section && l.key == key {
			values = append(values, l.value)
		}
	}
	return values
}

// iniSections are the names of the sections of texts, in their order.
func iniSections(texts [][]byte) []string {
	var names []string
	for _, text := range texts {
		for l := range unitLines(string(text)) {
			if l.begins {
				names = append(names, l.section)
			}
		}
	}
	return names
}
