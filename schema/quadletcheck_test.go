package schema

import (
	"slices"
	"testing"
)

func TestQuadletFileFindings(t *testing.T) {
	for text, want := range map[string][]string{
		"[Container]\nImage=reg/web:1\n":                               nil,
		"[Container]\nRootfs=/var/lib/web\n":                           nil,
		"# a comment\n; another\n[Unit]\n[Container]\nImage=reg/web:1": nil,
		"":                                {ruleQuadletContent},
		"nonsense":                        {ruleQuadletContent},
		"[Containr]\nImage=reg/web:1\n":   {ruleQuadletContent},
		"[Container]\n":                   {ruleQuadletContent},
		"[Container]\nImage=\n":           {ruleQuadletContent},
		"[Unit]\nImage=reg/web:1\n":       {ruleQuadletContent},
		"#[Container]\nImage=reg/web:1\n": {ruleQuadletContent},
		"[Service]\nExecStart=a \\\n[Container]\nImage=reg/web:1\n": {ruleQuadletContent}, // the line goes on
	} {
		texts := [][]byte{[]byte(text)}
		var got []string
		for _, f := range quadletFileFindings("web.container", texts, "") {
			got = append(got, f.rule)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for file, text := range map[string]string{
		"a.volume": "", "b.network": "# nothing to say\n", "c.pod": "[Unit]\nDescription=pods\n", // podman makes units of these
		"d.kube": "[Unit]\nDescription=a \\\n[Kube]\n", "e.build": "", // and none of these
	} {
		wrong := file >= "d"
		if got := quadletFileFindings(file, [][]byte{[]byte(text)}, ""); (len(got) == 1) != wrong {
			t.Errorf("%s: %q: %v", file, text, got)
		}
	}
}
