package schema

import (
	"bytes"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Whatever divides two values is counted, so that no document has more nodes
// than it weighs.
func FuzzWeight(f *testing.F) {
	for _, text := range []string{"", "a", "{a,b,c}", "{:,:,}", "?\n?\n?\n", ":\n:\n", "-\n-\n", "- - - a: b\n", "- ? - ? a\n", "[a: b, c: d]", "[[a: b],[c: d]]",
		`{"a":1,"b":"c":d}`, "{a: {b: {c: {}}}}", "[[[[]]]]", "- #a\n- #b\n", "a: |\n  x, y\nb: >\n  - z\n", "[? a : b, ? , ?]", "{? , ?,?}", "a:\n- b\n- c:\n  - d\n",
		"&a b: *a\n", "!x [!y z,!w]", "\"a\": 'b'\n", "a: b\n...\n", "--- {a,b}\n", "? a\n: b\n", "[:,:,:]", "{a:b,c:,d}", "- -\n  -\n", "a:\r- b\r- c\r", "{a\t:\tb}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var root yaml.Node
		if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&root); err != nil {
			return
		}
		if nodes := countNodes(&root); nodes > weight(data) {
			t.Errorf("%q: %d nodes, weight %d", data, nodes, weight(data))
		}
	})
}

func countNodes(n *yaml.Node) int {
	nodes := 1
	for _, c := range n.Content {
		nodes += countNodes(c)
	}
	return nodes
}

// The largest documents that people could keep are far from too heavy: what is
// counted is what divides values, and texts have words between that.
func TestWeightOfTexts(t *testing.T) {
	head := "apiVersion: gitopsd.dev/v1alpha1\nkind: Release\nmetadata: {name: v1.0.0}\nspec:\n  files:\n    /etc/a:\n      content: |\n"
	for name, line := range map[string]string{
		"prose":    "        Nothing is counted in this line but the one comma, and its end.\n",
		"JSON":     "        {\"name\":\"cpu\",\"unit\":\"%\",\"value\":12.5,\"tags\":[\"a\",\"b\"]},\n",
		"numbers":  "        12.5,13.25,14.75,15.0,16.5,17.25,18.5,19.75,20.0\n",
		"a script": "        if [ -n \"$1\" ]; then echo \"$1\" # say it\n",
		"comments": "        # of what may be set\n",
	} {
		text := head + strings.Repeat(line, (maxDocument-len(head))/len(line))
		var r Release
		if problems := Decode("v1.0.0.yaml", []byte(text), &r); len(problems) > 0 {
			t.Errorf("%s: weight %d of %d: %s", name, weight([]byte(text)), maxWeight, lines(problems))
		}
	}
}
