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
		"[Service]\nExecStart=a \\\n[Container]\nImage=reg/web:1\n":     {ruleQuadletContent}, // the line goes on
		"[Container]\nImage=reg/web:1\nVolume=dat.volume:/d\n":          {ruleQuadletMissing},
		"[Container]\nImage=reg/web:1\nVolume=data.volume:/d\n":         nil,
		"[Container]\nImage=reg/web:1\nNetwork=back.network\nPod=a.pod": {ruleQuadletMissing, ruleQuadletMissing},
		"[Container]\nImage=reg/web:1\nVolume=/srv/x.volume:/d\n":       nil, // a path
	} {
		texts := [][]byte{[]byte(text)}
		var got []string
		for _, f := range append(quadletFileFindings("web.container", texts, ""), referFindings("web.container", texts, "", map[string]bool{"data.volume": true})...) {
			got = append(got, f.rule)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	goesOn := [][]byte{[]byte("[Unit]\nDescription=a \\\n[Volume]\n")}
	if got := quadletFileFindings("data.volume", goesOn, ""); len(got) != 1 {
		t.Errorf("the end of a line that goes on is taken for a section: %v", got)
	}
}
