package schema

import (
	"fmt"
	"strings"
	"testing"
)

// The parser goes on over line ends and finds something else to complain
// about, or nothing before the text ends.
func TestTemplateMistakesAreToldWhereTheyBegin(t *testing.T) {
	cases := []struct {
		text, part, hint string
		line             int
	}{
		{"a\ndns = {{ .vars.dns\nplace = {{ .vars.place }}\n", "the {{ of this line is not closed", "end it with }}", 2},
		{"a\n{{- .vars.dns }\nplace = {{ .vars.place }}\n", "the {{ of this line is not closed", "end it with }}", 2},
		{"{{ quote \"{{\" }}\n{{ .vars.dns", "the {{ of this line is not closed", "end it with }}", 2},
		{"{{ .vars.dns", "the {{ of this line is not closed", "end it with }}", 1},
		{"a\n{{ if .vars.dns }}\nb\n", "the if of this line has no end", "put {{ end }} where it ends", 2},
		{"{{ if .vars.a }}{{ end }}\n{{- with .vars.dns -}}\n{{ if .vars.b }}{{ end }}\n\n", "the with of this line has no end", "put {{ end }} where it ends", 2},
		{"{{/* {{ if }} */}}\n{{ if `{{ end }}` }}\n\n", "the if of this line has no end", "put {{ end }} where it ends", 2},
	}
	for _, c := range cases {
		_, err := compileTemplate(c.text)
		if err == nil || err.rule != ruleTemplateSyntax || err.line != c.line || err.msg != c.part || err.hint != c.hint {
			t.Errorf("%q: got %+v, want %q in line %d", c.text, err, c.part, c.line)
		}
	}
	// What the parser knows better stays as it says.
	for text, part := range map[string]string{
		"{{ \"abc }}\n{{ .vars.x }}":             "unterminated quoted string",
		"{{/* no end\n{{ .vars.x }}":             "unclosed comment",
		"{{ uper .device.name }}\n{{ if .vars.x": `function "uper" not defined`,
		"{{ if .vars.x }}\n{{ if }}":             "missing value for if",
		"{{ .vars.x }}\n{{ end }}":               "unexpected {{end}}",
	} {
		if _, err := compileTemplate(text); err == nil || !strings.Contains(err.msg, part) {
			t.Errorf("%q: got %+v, want %q", text, err, part)
		}
	}
}

// A guard has to be written before it helps.
func TestTemplateSaysTheGuardOfAMissingValue(t *testing.T) {
	for text, want := range map[string]string{
		"{{ .vars.x }}":                            `set x, or guard it with {{ if has .vars "x" }}`,
		"{{ $.vars.x }}":                           `set x, or guard it with {{ if has $.vars "x" }}`,
		"{{ .device.labels.rack }}":                `set rack, or guard it with {{ if has .device.labels "rack" }}`,
		"{{ with .vars }}{{ .x }}{{ end }}":        `set x, or guard it with {{ if has . "x" }}`,
		`{{ lower .vars.x }}`:                      `set x, or guard it with {{ if has .vars "x" }}`,
		`{{ if eq .vars.x "a" }}{{ else }}{{end}}`: `set x, or guard it with {{ if has .vars "x" }}`,
	} {
		tmpl, failed := compileTemplate(text)
		if failed != nil {
			t.Fatalf("%s: %+v", text, failed)
		}
		if _, err := tmpl.render(testData); err == nil || err.hint != want {
			t.Errorf("%s: got %+v, want %s", text, err, want)
		}
		// The guard is one that can be used.
		guard := want[strings.Index(want, "{{"):]
		if strings.Contains(text, "with") {
			continue
		}
		tmpl, failed = compileTemplate(fmt.Sprintf("%s%s{{ else }}none{{ end }}", guard, text))
		if failed != nil {
			t.Fatalf("%s: %+v", guard, failed)
		}
		if out, err := tmpl.render(testData); err != nil || out != "none" {
			t.Errorf("%s: got %q, %v", guard, out, err)
		}
	}
}
