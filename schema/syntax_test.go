package schema

import (
	"strings"
	"testing"
)

// The line of a syntax error is the one that a person has to change, and not
// the one where the mapping around it begins.
func TestSyntaxErrorsHaveTheirLine(t *testing.T) {
	const head = "# a device\napiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata:\n  name: gw-1\n"
	const first = 6 // the line after head
	cases := []struct {
		name, text string
		line       int // from the first line of text
		hint       string
	}{
		{"a field below an empty mapping", "spec: {}\n  hold: {reason: disk}\n", 2, "{}"},
		{"more below an empty mapping", "spec: {}\n  hold:\n    reason: disk\nfoo: bar\n", 2, "{}"},
		{"comments between", "spec: {}\n# one\n\n  # two\n  hold:\n    reason: disk\n", 5, "{}"},
		{"indented less", "spec:\n    pin: v1.0.0\n  hold: {reason: disk}\n", 3, "column"},
		{"indented more", "spec:\n  hold: {reason: disk}\n   pin: v1.0.0\n", 3, "column"},
		{"text after a quoted one", "spec:\n  vars:\n    a: b\n    c: \"x\" y\n    d: e\n", 4, "column"},
		{"a list that moves left", "spec:\n  run:\n    - a\n  - b\n", 4, "column"},
		{"a key in a list", "spec:\n  - a\n  pin: c\n", 3, "-"},
		{"a brace too many", "spec:\n  vars: {a: b}}\n", 2, ""},
		{"an open brace", "spec:\n  hold: {reason: disk\n  pin: v1.0.0\n", 2, "close the {"},
		{"an open bracket", "spec:\n  run: [sh, -c\n  pin: v1.0.0\n", 2, "close the ["},
		{"an open quote", "spec:\n  pin: \"v1.0.0\n  vars: {}\n", 2, "close the quote"},
		{"a colon in a text", "spec:\n  pin: a: b\n", 2, "quote"},
		{"a key without colon", "spec:\n  pin: v1.0.0\n  hold\n", 3, "colon"},
		{"a key without colon in the middle", "spec:\n  pin: v1.0.0\n  hold\nfoo: bar\n", 3, "colon"},
		{"a quote that the next one ends", "spec:\n  pin: \"v1.0.0\n  # a comment\n  hold: {reason: \"disk\"}\n", 2, "close the quote in this line"},
		{"a single quote that the next one ends", "spec:\n  - 'v1.0.0\n  - a\n  - 'x'\n", 2, "close the quote in this line"},
		{"an open brace at the end", "spec: {", 1, ""},
		{"an open brace at the end of the last line", "spec: {\n", 1, ""},
		{"a tab", "spec:\n\tpin: v1.0.0\n", 2, "spaces"},
		{"a tab below a value", "spec:\n  pin: v1.0.0\n\thold: x\n", 3, "spaces"},
		{"an at sign", "spec:\n  pin: @x\n", 2, "quote"},
		{"a closing brace as value", "spec:\n  a: b\n  pin: }\n  x: y\n", 3, "quote"},
		{"a list in the line of its key", "spec:\n  run: - a\n", 2, "line of its own"},
		{"an unknown escape", "spec:\n  a: \"x\n    y\n    \\q\"\n", 4, "backslash"},
		{"an unfinished merge", "<<<<<<< HEAD\nspec: {}\n=======\nspec: {pin: v1.0.0}\n>>>>>>> other\n", 1, "decide"},
		{"a control character", "spec:\n  a: \"x\x07\"\n", 2, "escape"},
		{"an undefined tag", "spec:\n  a: b\n  x: !y!z w\n", 3, "!"},
	}
	for _, c := range cases {
		for _, v := range []struct {
			name, text string
			above      int
		}{
			{"", head + c.text, first - 1},
			{" at the beginning", c.text, 0},
			{" of a file with a byte order mark", "\ufeff" + head + c.text, first - 1},
			{" of a file with CRLF", strings.ReplaceAll(head+c.text, "\n", "\r\n"), first - 1},
		} {
			t.Run(c.name+v.name, func(t *testing.T) {
				_, problems := readDocument([]byte(v.text))
				if len(problems) != 1 || problems[0].Rule != ruleSyntax {
					t.Fatalf("%q: %+v", v.text, problems)
				}
				p := problems[0]
				if p.Line != v.above+c.line || !strings.Contains(p.Hint, c.hint) {
					t.Errorf("line %d of the text, want %d: %s\nhint: %s, want %q\n%s",
						p.Line-v.above, c.line, p.Message, p.Hint, c.hint, v.text)
				}
			})
		}
	}
}

// In a second document the line is counted from the beginning of the file.
func TestSyntaxErrorInSecondDocument(t *testing.T) {
	_, problems := readDocument([]byte("a: b\n---\nc: {}\n  d: e\n"))
	if len(problems) != 1 || problems[0].Line != 4 || problems[0].Rule != ruleSyntax {
		t.Errorf("%+v", problems)
	}
}

// A tab cannot be seen, so it is named, with its place.
func TestSyntaxNamesATab(t *testing.T) {
	for text, column := range map[string]int{"spec:\n\tpin: v1.0.0\n": 1, "spec:\n  \tpin: v1.0.0\n  a: b\n": 3, "spec:\n  vars:\n  \t  a: b\n": 3} {
		_, problems := readDocument([]byte(text))
		if len(problems) != 1 {
			t.Fatalf("%q: %+v", text, problems)
		}
		if p := problems[0]; p.Message != "a tab indents nothing in YAML" || p.Column != column || p.Hint != "indent with spaces" {
			t.Errorf("%q: got %+v, want column %d", text, p, column)
		}
	}
}
