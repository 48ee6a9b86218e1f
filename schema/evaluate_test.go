package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"text/template/parse"
)

// reference renders a template that was compiled with package text/template.
func reference(t testing.TB, c *compiledTemplate, data templateData) (string, *templateError) {
	t.Helper()
	if c.tree == nil {
		return c.text, nil
	}
	bounded := func(f func(string) string) func(string) (string, error) {
		return func(s string) (string, error) {
			if s = f(s); len(s) > maxFunctionResult {
				return "", errResultTooLong
			}
			return s, nil
		}
	}
	tmpl, err := template.New(templateName).Option("missingkey=error").Funcs(template.FuncMap{
		"index": func(m map[string]string, key string) (string, error) {
			v, ok := m[key]
			if !ok {
				return "", fmt.Errorf("there is no %s", quote(key))
			}
			return v, nil
		},
		"has": func(m map[string]string, key string) bool { _, ok := m[key]; return ok },
		"default": func(fallback, value string) string {
			if value == "" {
				return fallback
			}
			return value
		},
		"quote":      bounded(strconv.Quote),
		"lower":      bounded(strings.ToLower),
		"upper":      bounded(strings.ToUpper),
		"trim":       strings.TrimSpace,
		"trimPrefix": func(prefix, s string) string { return strings.TrimPrefix(s, prefix) },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"hasPrefix":  func(prefix, s string) bool { return strings.HasPrefix(s, prefix) },
		"hasSuffix":  func(suffix, s string) bool { return strings.HasSuffix(s, suffix) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
	}).AddParseTree(templateName, c.tree)
	if err != nil {
		t.Fatal(err)
	}
	var out boundedText
	if err := tmpl.Execute(&out, map[string]any(data)); err != nil {
		if errors.Is(err, errOutputFull) {
			return "", &templateError{rule: ruleTemplateSize, msg: fmt.Sprintf("it renders to more than %d bytes", maxTemplate)}
		}
		return "", referenceFailure(err.Error())
	}
	return out.String(), nil
}

var (
	executingForm = regexp.MustCompile(`(?s)^template: ` + templateName + `:(\d+):\d+: executing "` + templateName + `" at <(.*?)>: (.*)`)
	missingForm   = regexp.MustCompile(`map has no entry for key "(.*)"$`)
)

func referenceFailure(text string) *templateError {
	e := &templateError{rule: ruleTemplateRender}
	m := executingForm.FindStringSubmatch(text)
	if m == nil {
		e.msg = text
		return e
	}
	e.line, _ = strconv.Atoi(m[1])
	if key := missingForm.FindStringSubmatch(m[3]); key != nil {
		e.msg = clip(m[2]) + " has no value"
		return e
	}
	e.msg = clip(fmt.Sprintf("at %s: %s", clip(m[2]), m[3]))
	return e
}

// sameAsReference compares a template with what package text/template makes of it.
func sameAsReference(t testing.TB, text string) (accepted bool) {
	t.Helper()
	c, err := compileTemplate(text)
	if err != nil {
		return false
	}
	got, failed := c.render(testData)
	want, wantFailed := reference(t, c, testData)
	switch {
	case got != want, (failed == nil) != (wantFailed == nil):
		t.Errorf("%q: got %.200q, %v; want %.200q, %v", text, got, failed, want, wantFailed)
	case failed == nil, strings.Contains(wantFailed.msg, "interface {}"), strings.ContainsAny(text, "<>%"): // said in other words
	case failed.rule != wantFailed.rule, failed.line != wantFailed.line, failed.msg != wantFailed.msg:
		t.Errorf("%q:\ngot  %+v\nwant %+v", text, *failed, *wantFailed)
	}
	return true
}

// Everything of a template means what package text/template says.
func TestTemplatesMeanWhatTheyDoElsewhere(t *testing.T) {
	values := []string{".vars.dns", ".vars.none", ".device.name", ".device.labels", "$", "$.vars", "$.device.name", `"gw-1"`, "`x`", "1", "-2", "2.5", "1e3", "0x1p3", "0x1e", "'a'", "1i", "1_000",
		"18446744073709551615", "9223372036854775808", "true", "false", `""`, "0", "0.0", "(len .device.name)", `(.vars.dns | upper)`, "upper", "(and)", `(index .vars "none")`, "(1 | 2)", "(true)", "((.vars.empty))"}
	functions := append(TemplateFunctions(), values...)
	accepted := 0
	try := func(text string) {
		t.Helper()
		if sameAsReference(t, text) {
			accepted++
		}
	}
	for i, f := range functions {
		try("{{ " + f + " }}")
		for j, a := range values {
			try(fmt.Sprintf("a\n{{ %s %s }}", f, a))
			try(fmt.Sprintf("{{ %s | %s }}", a, f))
			try(fmt.Sprintf("{{ if %s %s }}yes{{ else }}no{{ end }}", f, a))
			const few = 5 // of five pairs one
			for k := (i + j) % few; k < len(values); k += few {
				b := values[k]
				try(fmt.Sprintf("{{ %s %s %s }}", f, a, b))
				try(fmt.Sprintf("{{ %s | %s %s }}", b, f, a))
			}
		}
	}
	for _, a := range values {
		for _, inside := range []string{".", ".name", ".device", ".device.name.x", "$.device.name", "$.device.name.x", ".site", ".dns", "len .", "upper .", `index . "dns"`, "eq . $", "eq . .", "lt . 2", ". | quote", "with .dns"} {
			try(fmt.Sprintf("{{ with %s }}[{{ %s }}]{{ else }}none{{ end }}", a, inside))
			try(fmt.Sprintf("{{ if false }}{{ else with %s }}{{ with . }}{{ %s }}{{ end }}{{ end }}", a, inside))
		}
	}
	for _, text := range []string{"", "{{/* x */}}", "a {{- 1 -}} b", "{{ eq 1 2 3 1 }}", "{{ and 1 0 .vars.none }}", "{{ or 0 1 .vars.none }}", `{{ 0 | and 1 true }}`, `{{ "a" | or 0 "" }}`,
		"{{ quote .vars.long }}", "{{ trim .vars.long }}", "{{ if not .vars.none }}x{{ end }}", "{{ (index .vars `a`) | upper | quote }}"} {
		try(text)
	}
	const least = 10_000 // templates that are neither refused nor all alike
	if accepted < least {
		t.Errorf("only %d templates are rendered", accepted)
	}
}

// What can be parsed and is not allowed never comes to be evaluated.
func TestOtherNodesAreNotEvaluated(t *testing.T) {
	trees, err := parse.Parse(templateName, "{{ range .vars }}x{{ end }}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := (&compiledTemplate{tree: trees[templateName]}).render(testData); err == nil || !strings.Contains(err.msg, "range is not allowed") {
		t.Errorf("got %q, %v", out, err)
	}
}
