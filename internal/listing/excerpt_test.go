package listing

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("0123456789", 20)
	for _, c := range []struct {
		line          string
		column, width int
		text          string
		caret         int
	}{
		{"  maxInflight: 1", 3, 40, "  maxInflight: 1", 2},
		{"whole line", 0, 40, "whole line", -1},
		{"a\tb: x", 3, 40, "a b: x", 2},
		{"end", 4, 40, "end", 3},
		{"past", 400, 40, "past", 4},
		{"", 1, 40, "", 0},
		{"名前: x", 5, 40, "名前: x", 6},
		{"e\u0301a: x", 3, 40, "e\u0301a: x", 1},
		{"a\x1b[31mb: x", 7, 40, `a\x1b[31mb: x`, 9},
		{long, 1, 22, long[:20] + "…", 0},
		{long, 101, 22, "…" + long[87:107] + "…", 14},
		{long, 200, 22, "…" + long[186:200], 14},
	} {
		text, caret := excerpt(c.line, c.column, c.width)
		if text != c.text || caret != c.caret {
			t.Errorf("%q column %d in %d: got %q and %d, want %q and %d", c.line, c.column, c.width, text, caret, c.text, c.caret)
		}
	}
}

// Whatever a line holds, its excerpt fits, and the caret is in it.
func FuzzExcerpt(f *testing.F) {
	for _, s := range []string{"", "a: b", "\x1b[31m", "日本語", "\x00\xff", strings.Repeat("\x01", 100), "\u202e"} {
		f.Add(s, 3, 30)
	}
	f.Fuzz(func(t *testing.T, line string, column, width int) {
		if width < leastExcerpt || width > 1000 || column < 0 {
			return
		}
		text, caret := excerpt(line, column, width)
		n := 0
		for _, r := range text {
			n += cells(r)
		}
		if n > width || caret > n || caret >= width || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q column %d in %d: %q (%d columns), caret at %d", line, column, width, text, n, caret)
		}
	})
}

type source map[string]string

func (s source) Entries() ([]schema.Entry, error)             { return nil, nil }
func (s source) Read(e schema.Entry, _ int64) ([]byte, error) { return []byte(s[e.Path]), nil }

func TestLines(t *testing.T) {
	l := NewLines(source{"a": "one\r\ntwo\n", "bin": "x\x00y", "latin": "\xff"}, []schema.Entry{{Path: "a"}, {Path: "bin"}, {Path: "latin"}})
	for _, c := range []struct {
		file string
		line int
		want string
		has  bool
	}{{"a", 1, "one", true}, {"a", 2, "two", true}, {"a", 3, "", true}, {"a", 4, "", false}, {"a", 0, "", false}, {"bin", 1, "", false}, {"latin", 1, "", false}, {"none", 1, "", false}, {"a", 1, "one", true}} {
		if got, has := l.at(c.file, c.line); got != c.want || has != c.has {
			t.Errorf("%s:%d: got %q %t, want %q %t", c.file, c.line, got, has, c.want, c.has)
		}
	}
	var none *Lines
	if _, has := none.at("a", 1); has {
		t.Error("no lines have a line")
	}
}

// A line with what should not be in a repository is not shown, whatever else is
// wrong with it.
func TestSecretLinesAreNotShown(t *testing.T) {
	for rule := range secretRules {
		if !slices.ContainsFunc(schema.Rules(), func(r schema.Rule) bool { return r.Name == rule }) {
			t.Errorf("there is no rule %s", rule)
		}
		r := &Result{Lines: NewLines(source{"a": "first: one\npassword: hunter2\n"}, []schema.Entry{{Path: "a"}}), Problems: []schema.Problem{
			{File: "a", Line: 1, Column: 1, Rule: "unknown-field"}, {File: "a", Line: 2, Column: 1, Rule: "unknown-field"}, {File: "a", Line: 2, Column: 11, Rule: rule},
		}}
		var b strings.Builder
		if err := WriteText(&b, r, view.Look{Width: 60}); err != nil || !strings.Contains(b.String(), "first: one") || strings.Contains(b.String(), "hunter2") {
			t.Errorf("%s: %v\n%s", rule, err, b.String())
		}
	}
}

// What stands under the name of a secret is not shown of a document that is no
// YAML either, where no problem says what it was meant to be.
func TestSecretLinesAreNotShown_NoYAML(t *testing.T) {
	for text, shown := range map[string]bool{
		"secret: *hunter2": false, "a: {secret: hunter2, mode: 0644}": false, `{"secret":"hunter2"}`: false, "  joinPassword : hunter2": false, "- apiToken: hunter2": false,
		"secret:\n  hunter2": false, "secret: |\n  x\n\n  hunter2": false, "  secret: |\nhunter2": false, "  secret:\n\thunter2": false, "  secret: a\n  hunter2": false,
		"secret: |\n  a: b\n  hunter2": false, "secret: |\n  a: b\n  c: hunter2": false, "secrets: {secret:\n  hunter2}": false,
		"password:\n  a:\n    token: x\n  b:\n    hunter2": false, "secret: |" + strings.Repeat("\nx", secretReach) + "\nhunter2": false,
		"  secret: x\n  mode: hunter2": true, "  secret: x\nhooks:\n  hunter2": true, "  secret: x\n  mode:\n    hunter2": true, "    secret: x\n  /etc/x:\n    mode: hunter2": true,
		"  secret: x\n# hunter2: x": false, "secrets: hunter2": true, "hunter2": true, "a: x\n\n  hunter2": true,
	} {
		line := 1 + strings.Count(text, "\n")
		r := &Result{Lines: NewLines(source{"a": text + "\n"}, []schema.Entry{{Path: "a"}}), Problems: []schema.Problem{{File: "a", Line: line, Rule: "yaml-syntax"}}}
		var b strings.Builder
		if err := WriteText(&b, r, view.Look{Width: 60}); err != nil || strings.Contains(b.String(), "hunter2") != shown {
			t.Errorf("%.40q: want it shown %t, got (%v)\n%s", text, shown, err, b.String())
		}
	}
}
