package doctest

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	page := strings.ReplaceAll(`# a page
'''sh
echo one
'''
and it prints
'''text
one
'''
'''
a diagram
'''
<!-- doctest: exit 3 -->
'''sh
exit 3
'''
<!-- doctest: skip: it needs a network -->
'''sh
git clone far
'''
`, "'''", "```")
	got, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{Line: 2, Language: "sh", Text: "echo one\n", Output: "one\n", Shown: true},
		{Line: 9, Text: "a diagram\n"},
		{Line: 13, Language: "sh", Text: "exit 3\n", Exit: 3},
		{Line: 17, Language: "sh", Text: "git clone far\n", Skip: "it needs a network"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d blocks, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("block %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, page := range map[string]string{
		"unknown directive":         "<!-- doctest: maybe -->\n```sh\ntrue\n```\n",
		"directive without a fence": "<!-- doctest: exit 1 -->\n",
		"directive for a diagram":   "<!-- doctest: exit 1 -->\n```\nx\n```\n",
		"fence without an end":      "```sh\ntrue\n",
	} {
		if blocks, err := Parse(page); err == nil {
			t.Errorf("%s: accepted as %+v", name, blocks)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		shown, got string
		want       bool
	}{
		{"one\n", "one\n", true},
		{"one\n", "one\ntwo\n", false},
		{"one\n…\n", "one\ntwo\nthree\n", true},
		{"…\nthree\n", "three\n", true},
		{"a  b\n", "a      b  \n", true},
		{"took … s\n", "took 3.1 s\n", true},
		{"took … s\n", "took 3.1\ns\n", false},
		{"a.b\n", "axb\n", false},
		{"(x) [y]*\n", "(x) [y]*\n", true},
		{"", "", true},
		{"", "x\n", false},
	} {
		if got := Match(c.shown, c.got); got != c.want {
			t.Errorf("Match(%q, %q) = %v, want %v", c.shown, c.got, got, c.want)
		}
	}
}
