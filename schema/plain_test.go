package schema

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// plainTexts are documents around what is read without the parser.
var plainTexts = []string{
	"a: b\n", "a:\n", "a: b", "", "\n", "# x\n", "---\na: b\n", "--- \na: b\n", "a: b\n---\nc: d\n", "a: b\n...\n", "...: a\n", "a: ...\n",
	"a: 1\nb: -5\nc: 0644\nd: 1.5\ne: 1e3\nf: true\ng: ~\nh: null\ni: -0\nj: +1\nk: 9007199254740993\nl: .inf\nm: 0x1f\n",
	"a: b # c\nb: c#d\nc: 'd # e'\nd: \"e # f\" # g\n", "a: b:\n", "a: b: c\n", "a: http://x\n", "a: -x\nb: --y\nc: - z\n", "a: - b\n",
	"a: |\n  x\n\n    y\n  # z\n\nb: |-\n  c\n", "a: |\n\n  x\n", "a: |\n  x\n y\n", "a: |\nb: c\n", "a: |\n  x\n  \nb: c\n", "a: |\n  x", "a: |2\n   x\n", "a: |+\n  x\n\n",
	"a: |\n  x\n# c\nb: d\n", "a: |\n   x\n  # c\nb: d\n", "a: |\n   x\n # c\n  b: d\n", "a: >\n  x\n  y\n", "a:\n  b: |\n    x\n  c: d\n",
	"a:\n- b\n- c\nd: e\n", "a:\n  - b: c\n    d: e\n  - f\n  -  g: h\n     i: j\n", "a:\n  - b\n  c: d\n", "a:\n  - b\n    c\n", "- a\n", "a:\n  -\n    b: c\n", "a:\n  - - b\n", "a:\n  - b:\n    - c\n  - d:\n  - e: |\n      f\n",
	"a: {b: c, d: [e, 1, \"f\"], g: {}}\n", "a: {b: c,}\n", "a: {b:c}\n", "a: {b: c d}\n", "a: [b: c]\n", "a: [b, c\n  , d]\n", "a: [b,c]\n", "a: {b: }\n", "a: {b}\n", "a: {b: c}: d\n", "a: [b#c, d]\n", "a: { b: c }\n", "a: [ ]\n", "a: {'b': 'c'}\n", "a: {\"b\": c}\n",
	"'a': b\n\"c\": d\n", "'a''b': c\n", "\"a\\n\": b\n", "a: 'b''c'\n", "a: \"b\\n\\t\\\"\\\\c\"\n", "a: \"\\x41\"\n", "a: \"b\n  c\"\n", "a: 'b\n  c'\n", "a: \"b\" c\n", "a: \"b\"\"c\"\n", "a: 'b'#c\n",
	"a: b\na: c\n", "a: {b: c, b: d}\n", "1: a\n", "true: a\n", "null: a\n", "'1': a\n", "<<: a\n", "? a\n: b\n", "a : b\n", "a b: c\n", "a: &b c\n", "a: *b\n", "a: !!str b\n", "&a b: c\n", "%YAML 1.2\n---\na: b\n",
	"a: b\n  c\n", "a: b\n\n  c\n", "a: b\n # c\n  d\n", "a:\n    b: c\n   d: e\n", "a:\n    b: c\n  d: e\n", "  a: b\n", "a:\n\n# c\n  b: d\n\n", "a: b\n  # c\nd: e\n", "a: [b]\n  c: d\n", "a: {}\n  c: d\n",
	"a:\tb\n", "a: b\r\n", "\ufeffa: b\n", "a: ä\nß: é\n", "a: \u0085\n", "a: \u00a0b\n", "a: \u2028\n", "a: \xff\n", "a: \xc3\n", "a: b\x00\n", "a: b\x7f\n", "a: …\n",
	"a: b  \nc: d \n", "a:  b\n", "a:   # c\n  b: d\n", "a:# c\n", "a: #\n", "a: |#\n  x\n", "a: | # c\n  x\n", "a: `b\n", "a: @b\n", "a: %b\n", "a: ,b\n", "a: b]\n", "a: .5\n", "a: $x\nb: _y\nc: /z\n",
	strings.Repeat("a: {", 20) + strings.Repeat("}", 20) + "\n",
}

// The parser agrees with whatever is read without it.
func samePlain(t *testing.T, data []byte) (read bool) {
	t.Helper()
	var used scratch // its maps have held something
	_, _ = readPlain(data, &used)
	used.reset()
	value, ok := readPlain(data, &used)
	if !ok {
		return false
	}
	doc, problems := parseDocument(data)
	if doc == nil || len(doc.odd) > 0 {
		t.Fatalf("%q is read as %v, and the parser refuses it: %v", data, value, problems)
	}
	if !reflect.DeepEqual(value, doc.value) {
		t.Fatalf("%q is read as %#v, and by the parser as %#v", data, value, doc.value)
	}
	return true
}

func TestPlainReaderAgreesWithTheParser(t *testing.T) {
	for _, text := range plainTexts {
		samePlain(t, []byte(text))
	}
	for _, r := range Rules() {
		for _, text := range repoOf("\n" + r.Wrong + r.Right).files {
			samePlain(t, []byte(text))
		}
	}
}

// What people write is what is read plainly: else nothing would be gained.
func TestPlainReaderReadsTheExamples(t *testing.T) {
	read, all := 0, 0
	for _, top := range []string{"policies", "releases", "overlays", "devices"} {
		err := filepath.WalkDir(filepath.Join("../examples/fleet-repo", top), func(p string, d os.DirEntry, err error) error {
			if err != nil || filepath.Ext(p) != extension {
				return err
			}
			data, err := os.ReadFile(p)
			if all++; samePlain(t, data) {
				read++
			} else {
				t.Logf("left to the parser: %s", p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if all == 0 || read < all*9/10 {
		t.Errorf("%d of %d documents are read plainly", read, all)
	}
	for path, text := range bigFleet(1).files {
		if filepath.Ext(path) == extension && !samePlain(t, []byte(text)) {
			t.Errorf("%s is left to the parser:\n%s", path, text)
		}
	}
}

func FuzzPlainReader(f *testing.F) {
	for _, text := range plainTexts {
		f.Add([]byte(text))
	}
	for _, text := range bigFleet(1).files {
		f.Add([]byte(text))
	}
	for _, s := range awkward {
		f.Add([]byte("a:\n  b: " + s + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) { samePlain(t, data) })
}
