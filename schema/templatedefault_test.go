package schema

import "testing"

// Whoever writes a default means it for a value that is missing, too.
func TestDefaultStandsInForWhatIsMissing(t *testing.T) {
	for text, want := range map[string]string{
		`{{ default "d" .vars.none }}`:                                          "d",
		`{{ .vars.none | default "d" }}`:                                        "d",
		`{{ default "d" $.vars.none | upper }}`:                                 "D",
		`{{ default "d" .device.labels.none }}`:                                 "d",
		`{{ default "d" (index .device.labels "a.b") }}`:                        "d",
		`{{ index .vars "a-b" | default "d" }}`:                                 "d",
		`{{ default "d" (index .vars "dns") }}`:                                 "192.0.2.53",
		`{{ default .vars.dns .vars.none }}`:                                    "192.0.2.53",
		`{{ default (default "d" .vars.none) .vars.none }}`:                     "d",
		`{{ if eq (default "a" .vars.none) "a" }}yes{{ end }}`:                  "yes",
		`{{ with default "d" .vars.none }}{{ . }}{{ end }}`:                     "d",
		`{{ with .vars.dns }}{{ default "d" $.vars.none }}{{ end }}`:            "d",
		`{{ default "d" .vars.empty }}{{ .vars.dns | default "d" }}`:            "d192.0.2.53",
		`{{ if has .vars "none" }}x{{ end }}{{ default "d" .vars.none | len }}`: "1",
	} {
		tmpl, failed := compileTemplate(text)
		if failed != nil {
			t.Errorf("%s: %+v", text, failed)
			continue
		}
		if got, err := tmpl.render(testData); err != nil || got != want {
			t.Errorf("%s: got %q, %+v; want %q", text, got, err, want)
		}
	}
	// It stands in for the value alone that it is given.
	for _, text := range []string{
		`{{ .vars.none }}{{ default "d" .vars.none }}`,
		`{{ default .vars.none "d" }}`,
		`{{ default "d" (lower .vars.none) }}`,
		`{{ .vars.none | lower | default "d" }}`,
		`{{ with .vars }}{{ default "d" .none }}{{ end }}`,
		`{{ index .vars "none" }}`,
		`{{ "d" | default .vars.none }}`,
	} {
		tmpl, failed := compileTemplate(text)
		if failed != nil {
			t.Errorf("%s: %+v", text, failed)
			continue
		}
		if got, err := tmpl.render(testData); err == nil {
			t.Errorf("%s: got %q, want an error", text, got)
		}
	}
	for _, text := range []string{`{{ indexOrEmpty .vars "x" }}`, `{{ default "d" (indexOrEmpty .vars "x") }}`} {
		if _, failed := compileTemplate(text); failed == nil {
			t.Errorf("%s can be called", text)
		}
	}
}
