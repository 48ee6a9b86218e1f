package schema

import (
	"os"
	"strings"
	"testing"
)

var testData = newTemplateData("gw-1", map[string]string{"site": "berlin", "example.com/rack": "r7"}, map[string]string{"dns": "192.0.2.53", "empty": "", "long": strings.Repeat("x", maxFunctionResult)}, nil)

func TestTemplateRenders(t *testing.T) {
	cases := map[string]string{
		"plain":                   "plain",
		"{{ .device.name }}":      "gw-1",
		"{{.device.labels.site}}": "berlin",
		`{{ index .device.labels "example.com/rack" }}`: "r7",
		"{{ .vars.dns }}": "192.0.2.53",
		`{{ if eq .device.labels.site "berlin" }}a{{ else if ne .vars.dns "x" }}b{{ else }}c{{ end }}`: "a",
		"{{ with .vars.dns }}<{{ . }}>{{ end }}":                                                       "<192.0.2.53>",
		"{{ with .vars.empty }}x{{ else }}none{{ end }}":                                               "none",
		"{{ with .vars.dns }}{{ $.device.name }}{{ end }}":                                             "gw-1",
		`{{ if and (has .vars "dns") (not (has .vars "x")) }}yes{{ end }}`:                             "yes",
		`{{ .vars.empty | default "d" }}`:                                                              "d",
		`{{ default "d" .vars.dns | upper | lower | trim }}`:                                           "192.0.2.53",
		`{{ trimPrefix "gw-" .device.name }}{{ trimSuffix "-1" .device.name }}`:                        "1gw",
		`{{ if hasPrefix "gw" .device.name }}p{{ end }}{{ if hasSuffix "2" .device.name }}s{{ end }}{{ if contains "w-" .device.name }}c{{ end }}`: "pc",
		`{{ quote .device.name }}`:                   `"gw-1"`,
		`{{ len .device.name }}`:                     "4",
		"a {{- /* comment */ -}} b":                  "ab",
		"{{ `raw` }}":                                "raw",
		`{{ if gt (len .vars.dns) 3 }}long{{ end }}`: "long",
	}
	for text, want := range cases {
		tmpl, err := compileTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := tmpl.render(testData); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestTemplateRefuses(t *testing.T) {
	cases := []struct{ text, rule, part string }{
		{"{{ range .vars }}{{ end }}", ruleTemplateForbidden, "range"},
		{`{{ define "x" }}a{{ end }}{{ template "x" }}`, ruleTemplateForbidden, "define"},
		{`{{ block "x" . }}a{{ end }}`, ruleTemplateForbidden, ""},
		{`{{ define "t" }}a{{ end }}b`, ruleTemplateSyntax, ""},
		{"{{ $x := .vars.dns }}", ruleTemplateForbidden, "variables"},
		{"{{ with $x := .vars.dns }}{{ $x }}{{ end }}", ruleTemplateForbidden, "variables"},
		{"{{ . }}", ruleTemplateForbidden, "dot"},
		{"{{ .secret }}", ruleTemplateForbidden, "no .secret"},
		{"{{ .device.id }}", ruleTemplateForbidden, "no .device.id"},
		{"{{ .vars.a.b }}", ruleTemplateForbidden, "no .vars.a.b"},
		{"{{ $.x }}", ruleTemplateForbidden, "no .x"},
		{`{{ printf "%1000000d" 1 }}`, ruleTemplateForbidden, "printf"},
		{`{{ html "x" }}`, ruleTemplateForbidden, "html"},
		{`{{ call .vars.x }}`, ruleTemplateForbidden, "call"},
		{`{{ slice .device.name 1 }}`, ruleTemplateForbidden, "slice"},
		{`{{ uper .device.name }}`, ruleTemplateForbidden, "not defined"},
		{`{{ (index .device.labels "site").x }}`, ruleTemplateForbidden, "field of an expression"},
		{"{{ if }}", ruleTemplateSyntax, "missing value"},
		{"a\n{{ .vars.", ruleTemplateSyntax, ""},
		{"{{ end }}", ruleTemplateSyntax, ""},
		{"{{ break }}", ruleTemplateSyntax, ""},
		{strings.Repeat("x", maxTemplate+1), ruleTemplateSize, "bytes"},
		{strings.Repeat("{{ 1 }}", maxTemplateActions+1), ruleTemplateSize, "actions"},
		{"{{ " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + " }}", ruleTemplateSyntax, ""},
	}
	for _, c := range cases {
		_, err := compileTemplate(c.text)
		if err == nil || err.rule != c.rule || !strings.Contains(err.msg, c.part) {
			t.Errorf("%.100s: got %+v, want %s with %q", c.text, err, c.rule, c.part)
		}
	}
}

func TestTemplateFailsAtRendering(t *testing.T) {
	cases := []struct {
		text, rule, part string
		line             int
	}{
		{"a\nb {{ .vars.x }}", ruleTemplateRender, ".vars.x has no value", 2},
		{"{{ .device.labels.rack }}", ruleTemplateRender, ".device.labels.rack has no value", 1},
		{`{{ index .vars "x" }}`, ruleTemplateRender, `there is no "x"`, 1},
		{"{{ with .vars.dns }}{{ .x }}{{ end }}", ruleTemplateRender, "x", 1},
		{`{{ lt .device.name 1 }}`, ruleTemplateRender, "incompatible types", 1},
		{`{{ upper 7 }}`, ruleTemplateRender, "", 1},
		{`{{ .vars.long | quote }}`, ruleTemplateRender, "the result of a function", 1},
		{strings.Repeat("{{ .vars.long }}", 20), ruleTemplateSize, "renders to more", 0},
	}
	for _, c := range cases {
		tmpl, err := compileTemplate(c.text)
		if err != nil {
			t.Errorf("%.100s: %+v", c.text, err)
			continue
		}
		if out, err := tmpl.render(testData); err == nil || err.rule != c.rule || err.line != c.line || !strings.Contains(err.msg, c.part) {
			t.Errorf("%.100s: got %.50q, %+v, want %s with %q in line %d", c.text, out, err, c.rule, c.part, c.line)
		}
	}
	// Quoting quotes doubles what is quoted: it must not go on for ever.
	tmpl, err := compileTemplate(`{{ .device.name ` + strings.Repeat("| quote ", 60) + `}}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.render(testData); err == nil {
		t.Error("quote grew without limit")
	}
	// Cutting may leave half a letter; in a document that is no text any more.
	tmpl, err = compileTemplate("{{ trimPrefix \"\\xc3\" \"\u00e4\" }}")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := tmpl.renderText(testData); err == nil {
		t.Errorf("%q is no text", out)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"{{ .device.name }}", "{{ if eq .vars.dns `x` }}a{{ else }}b{{ end }}", "{{ with .vars.dns }}{{ . }}{{ end }}",
		"{{ range . }}{{ end }}", "{{ define `x` }}{{ end }}", "{{ index .device.labels \"a.b\" | quote }}", "{{ $ }}", "{{ .vars }}", "{{- 1 -}}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := compileTemplate(text)
		if err != nil {
			if err.msg == "" || strings.ContainsAny(err.msg, "\n\r") {
				t.Errorf("message %q", err.msg)
			}
			return
		}
		first, err1 := tmpl.render(testData)
		second, err2 := tmpl.render(testData)
		if first != second || (err1 == nil) != (err2 == nil) || len(first) > maxTemplate {
			t.Errorf("%q: %q and %q, %v and %v", text, first, second, err1, err2)
		}
	})
}

// Nowhere else can one read what there is to call.
func TestTemplateFunctionsAreOnTheirPage(t *testing.T) {
	page, err := os.ReadFile("../docs/howto/fill-in-values.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range TemplateFunctions() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}
