package preview

import (
	"fmt"
	"strings"
	"testing"
)

func TestRestarts(t *testing.T) {
	type tree = map[string]any
	file := func(content string, restart ...any) tree { return tree{"content": content, "restart": restart} }
	for _, c := range []struct {
		what     string
		from, to tree
		want     string
	}{
		{"nothing", tree{"units": tree{"a.service": tree{"content": "x"}}}, tree{"units": tree{"a.service": tree{"content": "x"}}}, "[]"},
		{"a unit's file", tree{"units": tree{"a.service": tree{"content": "x"}}}, tree{"units": tree{"a.service": tree{"content": "y"}}}, "[a.service]"},
		{"only its links", tree{"units": tree{"a.service": tree{"content": "x"}}}, tree{"units": tree{"a.service": tree{"content": "x", "enabled": true}}}, "[]"},
		{"it goes", tree{"units": tree{"a.service": tree{"state": "started"}}}, tree{}, "[a.service]"},
		{"a template", tree{"units": tree{"a@.service": tree{"content": "x"}, "a@1.service": tree{"state": "started"}}},
			tree{"units": tree{"a@.service": tree{"content": "y"}, "a@1.service": tree{"state": "started"}}}, "[a@1.service]"},
		{"a file with a reader", tree{"files": tree{"/a": file("x", "b.service")}}, tree{"files": tree{"/a": file("y", "a.service")}}, "[a.service b.service]"},
		{"a file that goes", tree{"files": tree{"/a": file("x", "b.service")}}, tree{}, "[b.service]"},
		{"what the device stands on", tree{}, tree{"units": tree{"sysinit.target": tree{"dropIns": tree{"a": tree{"content": "x"}}}}}, "[]"},
		{"only its readers", tree{"files": tree{"/a": file("x")}}, tree{"files": tree{"/a": file("x", "a.service")}}, "[]"},
	} {
		if got := fmt.Sprint(restarts(c.from, c.to)); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// Units are compared as files are: line by line, each drop-in for itself, and
// without what looks like a secret.
func TestUnitsAreComparedByLine(t *testing.T) {
	type tree = map[string]any
	unit := func(text, dropIn string) tree {
		return tree{"units": tree{"a.service": tree{"content": text, "state": "started", "dropIns": tree{"b": tree{"content": dropIn}, "same": tree{"content": "x\n"}}}}}
	}
	c := comparison{
		from: Side{Spec: unit("[Service]\nExecStart=/a\n", "[Service]\nMemoryMax=1G\n")}, to: Side{Spec: unit("[Service]\nExecStart=/b\nEnvironment=DB_PASSWORD=hunter22\n", "[Service]\nMemoryMax=2G\n")},
		contents: newContents(), lines: 20,
	}
	changes := c.changes()
	text := jsonText(changes)
	if len(changes) != 2 || changes[0].Name != "a.service" || changes[1].Name != "a.service.d/b.conf" || !strings.Contains(text, "+MemoryMax=2G") || !strings.Contains(text, "+ExecStart=/b") {
		t.Errorf("the changes are %s", text)
	}
	if strings.Contains(text, "hunter22") {
		t.Errorf("a secret is shown: %s", text)
	}
}

// The agent goes on as another program where that is another one, wherever it
// comes from.
func TestNextAgent(t *testing.T) {
	type tree = map[string]any
	agent := func(version, url, sum string) tree {
		return tree{"agent": tree{"version": version, "url": url, "sha256": sum}}
	}
	one := agent("v1.5.0", "https://a.example.com/x", strings.Repeat("4e07", 16))
	for _, c := range []struct {
		from, to tree
		want     string
	}{
		{one, one, "[]"},
		{tree{}, tree{}, "[]"},
		{one, agent("v1.5.0", "https://b.example.com/x", strings.Repeat("4e07", 16)), "[]"},
		{one, agent("v1.6.0", "https://a.example.com/x", strings.Repeat("9f86", 16)), "[the agent as v1.6.0]"},
		{one, tree{"agent": tree{"version": "v1.6.0", "payload": "sha256:" + strings.Repeat("9f86", 16)}}, "[the agent as v1.6.0]"},
		{one, tree{}, "[the agent of the package]"},
	} {
		if got := fmt.Sprint(effectOf(Side{Spec: c.from}, Side{Spec: c.to}).Restarts); got != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.from, c.to, got, c.want)
		}
	}
	c := comparison{from: Side{Spec: one}, to: Side{Spec: agent("v1.6.0", "https://a.example.com/y", strings.Repeat("9f86", 16))}, contents: newContents(), lines: 20}
	if text := jsonText(c.changes()); !strings.Contains(text, "v1.6.0") || !strings.Contains(text, "a.example.com/y") {
		t.Errorf("the changes are %s", text)
	}
}
