package edit

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitopsd/gitopsd/schema"
)

// author writes documents as people do: every collection in one of its forms,
// comments and blank lines anywhere, line ends of one kind.
type author struct {
	t  *rapid.T
	b  strings.Builder
	br string
}

func (a *author) chance(percent int, label string) bool {
	return rapid.IntRange(1, 100).Draw(a.t, label) <= percent
}

func (a *author) line(indent int, text string) {
	a.b.WriteString(strings.Repeat(" ", indent) + text + a.br)
}

// noise is what stands between lines.
func (a *author) noise(indent int) {
	for a.chance(25, "noise") {
		switch rapid.IntRange(0, 3).Draw(a.t, "kind of noise") {
		case 0:
			a.line(0, "")
		case 1:
			a.line(indent, "# a comment: {x")
		case 2:
			a.line(indent+3, "#pin: v1")
		case 3:
			a.line(0, "# 'at the margin")
		}
	}
}

func (a *author) beside() string {
	if a.chance(20, "beside") {
		return "  # beside: [it"
	}
	return ""
}

var texts = []string{"v1.0.0", `"v1.0.0" `, `'it''s # no comment'`, `"a \" b: c"`, "a b  c", "\"ä → 7\"", "5", "true", "~", "a'b"}

// scalar writes a value behind a key, with or without lines of its own.
func (a *author) scalar(indent int, key string) {
	switch rapid.IntRange(0, 9).Draw(a.t, "form of a value") {
	case 0:
		a.line(indent, key+": |"+rapid.SampledFrom([]string{"", "-", "+"}).Draw(a.t, "chomping"))
		a.line(indent+2, "# no comment")
		a.line(0, "")
		a.line(indent+4, "deeper: x")
		a.line(indent+2, "- y")
	case 1:
		a.line(indent, key+": >2"+a.beside())
		a.line(indent+3, "folded")
		a.line(indent+2, "text")
	case 2:
		a.line(indent, key+": several words")
		a.line(indent+1, "over")
		a.line(indent+5, "lines"+a.beside())
	case 3:
		a.line(indent, key+": \"quoted")
		a.line(indent+1, "# no comment\"")
	default:
		a.line(indent, key+":"+strings.Repeat(" ", rapid.IntRange(1, 3).Draw(a.t, "spaces"))+strings.TrimSpace(rapid.SampledFrom(texts).Draw(a.t, "text"))+a.beside())
	}
}

func (a *author) flow(fields []string) string {
	var items []string
	for _, f := range fields {
		items = append(items, f+": "+strings.TrimSpace(rapid.SampledFrom(texts).Draw(a.t, "text")))
	}
	pad := rapid.SampledFrom([]string{"", " "}).Draw(a.t, "pad")
	return "{" + pad + strings.Join(items, ","+rapid.SampledFrom([]string{" ", "  ", ""}).Draw(a.t, "gap")) + pad + "}"
}

// mapping writes some of the fields of a kind.
func (a *author) mapping(indent, step int, fields []string) {
	for _, f := range fields {
		if !a.chance(60, f) {
			continue
		}
		switch f {
		case "hold", "paused", "vars", "selector", "desired":
			inner := []string{"reason", "two"}[:rapid.IntRange(1, 2).Draw(a.t, "size")]
			if a.chance(40, "flow") {
				a.line(indent, f+": "+a.flow(inner)+a.beside())
				break
			}
			a.line(indent, f+":"+a.beside())
			a.noise(indent + step)
			for _, i := range inner {
				a.scalar(indent+step, i)
				a.noise(indent + step)
			}
		case "rollbackFrom":
			if a.chance(40, "flow") {
				a.line(indent, f+": [v1.0.0, 'v2']"+a.beside())
				break
			}
			a.line(indent, f+":"+a.beside())
			dash := indent + rapid.IntRange(0, 2).Draw(a.t, "dash")
			a.line(dash, "- v1.0.0"+a.beside())
			a.line(dash, "-   'v2'")
		default:
			a.scalar(indent, f)
		}
		a.noise(indent)
	}
}

// document draws a whole document of a kind.
func document(t *rapid.T, kind string, fields []string) string {
	a := &author{t: t, br: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")}
	step := rapid.IntRange(2, 4).Draw(t, "step")
	if rapid.Bool().Draw(t, "mark") {
		a.line(0, "---")
	}
	a.noise(0)
	a.line(0, "apiVersion: gitopsd.dev/v1alpha1")
	a.line(0, "kind: "+kind+a.beside())
	a.line(0, "metadata:")
	a.line(step, "name: x")
	a.noise(0)
	switch rapid.IntRange(0, 4).Draw(t, "form of spec") {
	case 0:
		a.line(0, "spec: {}")
	case 1:
		a.line(0, "spec: "+a.flow([]string{"pin", "release"}[:rapid.IntRange(1, 2).Draw(t, "size")])+a.beside())
	case 2:
		if kind == "Policy" { // which needs one
			a.line(0, "spec: {}")
		}
	default:
		before := a.b.Len()
		a.line(0, "spec:"+a.beside())
		begun := a.b.Len()
		a.noise(step)
		a.mapping(step, step, rapid.Permutation(fields).Draw(t, "order"))
		if text := a.b.String(); !hasKeys(text[begun:]) {
			a.b.Reset()
			a.b.WriteString(text[:before])
			a.line(0, "spec: {}")
		}
	}
	a.noise(0)
	doc := a.b.String()
	if rapid.Bool().Draw(t, "no last line end") {
		doc = strings.TrimSuffix(doc, a.br)
	}
	return doc
}

func hasKeys(s string) bool {
	for line := range strings.Lines(s) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			return true
		}
	}
	return false
}

func treeOf(t interface{ Fatalf(string, ...any) }, doc []byte) any {
	read, err := read(doc)
	if err != nil {
		t.Fatalf("cannot read it: %v\n%s", err, doc)
	}
	return compared(read.root)
}

var someValues = []any{"v1.2.0", "disk: broken #7, [see]", "", "it's", "no", true, 7, []string{"a", "b, c"}, "ä"}

// TestEdits: an edit changes the one value, keeps every other line as it is,
// and is undone to the byte.
func TestEdits(t *testing.T) {
	kinds := []struct {
		kind string
		form Form
	}{{"Policy", policyForm(t)}, {"Device", deviceForm(t)}}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		fields := k.form.order["spec"]
		doc := []byte(document(t, k.kind, fields))
		before := treeOf(t, doc)
		where := []string{"spec", rapid.SampledFrom(fields).Draw(t, "field")}
		if rapid.Bool().Draw(t, "deeper") {
			where = append(where, "reason")
		}
		value := rapid.SampledFrom(someValues).Draw(t, "value")
		old, there := at(before, where)
		if !there && len(where) == 3 {
			if up, ok := at(before, where[:2]); ok {
				if _, isMap := up.(map[string]any); !isMap && up != (scalar{"!!null", ""}) {
					if _, err := k.form.Set(doc, where, value); err == nil {
						t.Fatalf("a value was set below %v", up)
					}
					return
				}
			}
		}
		edited, err := k.form.Set(doc, where, value)
		if err != nil && openText(doc) {
			return
		}
		if err != nil {
			t.Fatalf("set %v to %#v: %v\n%s", where, value, err, doc)
		}
		want, _ := valueOf(value)
		if got := treeOf(t, edited); !reflect.DeepEqual(got, put(before, where, want)) {
			t.Fatalf("set %v to %#v: got %v\n%s\n%s", where, value, got, doc, edited)
		}
		if again, err := k.form.Set(edited, where, value); err != nil || !bytes.Equal(again, edited) {
			t.Fatalf("set twice: %v\n%s\n%s", err, edited, again)
		}
		if there {
			if reflect.DeepEqual(old, want) && !bytes.Equal(edited, doc) {
				t.Fatalf("the same value has changed the document")
			}
			return
		}
		onlyAdded(t, doc, edited)
		// What was added is the first part of the path that was not there.
		added := where
		if _, ok := at(treeOf(t, doc), where[:len(where)-1]); !ok && len(where) == 3 {
			added = where[:2]
		}
		back, err := k.form.Remove(edited, added)
		if err != nil || !bytes.Equal(back, doc) {
			t.Fatalf("set %v and removed again: %v\nbefore\n%q\nedited\n%q\nafter\n%q", where, err, doc, edited, back)
		}
	})
}

// TestRemovals: what is removed is gone, and nothing else is.
func TestRemovals(t *testing.T) {
	form := policyForm(t)
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(document(t, "Policy", form.order["spec"]))
		where := []string{"spec", rapid.SampledFrom(form.order["spec"]).Draw(t, "field")}
		before := treeOf(t, doc)
		out, err := form.Remove(doc, where)
		if err != nil && (openText(doc) || bytes.Contains(doc, []byte(": |+"))) {
			return // what would follow the text then is blank lines, which it keeps
		}
		if err != nil {
			t.Fatalf("remove %v: %v\n%s", where, err, doc)
		}
		if _, there := at(before, where); !there {
			if !bytes.Equal(doc, out) {
				t.Fatalf("nothing was to be removed\n%s\n%s", doc, out)
			}
			return
		}
		if got := treeOf(t, out); !reflect.DeepEqual(got, without(before, where)) {
			t.Fatalf("removed %v: got %v\n%s\n%s", where, got, doc, out)
		}
		if len(out) >= len(doc) {
			t.Fatalf("nothing went\n%s\n%s", doc, out)
		}
	})
}

// openText says whether a document may end with a text below a | or > that has no
// last line break: nothing can be added behind it without giving it one.
func openText(doc []byte) bool {
	return doc[len(doc)-1] != '\n' && (bytes.Contains(doc, []byte(": |")) || bytes.Contains(doc, []byte(": >")))
}

// onlyAdded: each line of the document is there, in order, but for one that
// something was added to.
func onlyAdded(t *rapid.T, doc, edited []byte) {
	same := 0
	for same < len(doc) && same < len(edited) && doc[same] == edited[same] {
		same++
	}
	if !bytes.HasSuffix(edited[same:], doc[same:]) && !bytes.HasSuffix(edited, doc[same:]) {
		t.Fatalf("more than an addition:\n%q\n%q", doc, edited)
	}
}

// FuzzSet: no document makes an edit panic, and an edit that is given can be
// read and undone.
func FuzzSet(f *testing.F) {
	files, err := filepath.Glob("../../examples/fleet-repo/*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("found no examples: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "paused", "reason", "fair")
	}
	for _, doc := range []string{"spec: {}", "spec: {hold: {a: b}, c: [d, {e: f}, g: h]}\r\n", "? a\n: b\nspec:\n- |2+\n   x\n\n", "spec:\n  a: >-\n   b\n\n   # c\n", "\ufeff---\nspec: 'a\n  b'\n...\n"} {
		f.Add([]byte(doc), "hold", "reason", "a: b #c")
	}
	form, err := FormOf(schema.KindPolicy, schema.Policy{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, doc []byte, one, two, value string) {
		where := []string{"spec", one, two}
		edited, err := form.Set(doc, where, value)
		if err != nil {
			return
		}
		if got, ok := at(treeOf(t, edited), where); !ok || got != (scalar{"!!str", value}) {
			t.Fatalf("set %q to %q: got %v in\n%q", where, value, got, edited)
		}
		if out, err := form.Append(doc, where, value); err == nil {
			treeOf(t, out)
		}
		for i := len(where); i > 0; i-- {
			if out, err := form.Remove(edited, where[:i]); err == nil {
				if _, still := at(treeOf(t, out), where[:i]); still {
					t.Fatalf("removed %q, and it is there in\n%q", where[:i], out)
				}
			}
		}
		Diff("f", doc, edited)
	})
}
