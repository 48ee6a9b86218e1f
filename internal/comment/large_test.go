package comment_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// TestLargeChanges is a diff that renames everything: of a fleet, and of what
// its devices get.
func TestLargeChanges(t *testing.T) {
	for _, c := range []struct {
		name       string
		base, head files
		want       []string
	}{
		{
			"devices renamed", manyDevices(2_000, "gw"), manyDevices(2_000, "gx"),
			[]string{"plan: 2000 devices change, 1 moves next, 1 warning\n", "- 2000 devices gone: `gw-00000`, `gw-00001`, `gw-00002` and 1997 more\n", "</summary>\n\n| device |"},
		},
		{
			"files renamed", manyPayloads(3, 1_500, "p"), manyPayloads(3, 1_500, "q"),
			[]string{"plan: 3 devices change,", "`/etc/many/p-00003` removed, and 2996 more", "\n- `/etc/many/p-00000` removed\n- `/etc/many/p-00001` removed\n"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var loader schema.Loader
			side := func(name string, f files) preview.Revision {
				fleet := load(t, &loader, f)
				if !fleet.Valid() {
					t.Fatalf("the fleet is not valid: %+v", fleet.Problems[0])
				}
				return preview.Revision{Place: preview.Place{Name: name}, Fleet: fleet, Plan: sweep.PlanNow(fleet, nil, nil, now, "v9.0.0"), Read: f.blobs()}
			}
			base := side("main", c.base)
			body := comment.Render(preview.Compare(preview.Input{Now: now, Head: side("topic", c.head), Base: &base}), comment.Options{})
			check(t, body, 0, "main has moved")
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("there is no %q in\n%s", want, body)
				}
			}
		})
	}
}

// TestRenderIsBounded looks whether the cost of a comment is that of what it
// shows: with 10,000 devices that wait for reasons of their own, 10,000 files
// that differ, and texts without an end.
func TestRenderIsBounded(t *testing.T) {
	const n = 10_000
	endless := strings.Repeat("endless ", 1<<17)
	p := &preview.Plan{Head: preview.Place{Name: endless}, Base: &preview.Place{Name: endless}, Note: endless}
	lines := []string{"+" + endless, "-" + endless}
	for i := range n {
		id := fmt.Sprintf("gw-%d", i)
		p.Verdicts = append(p.Verdicts, preview.Verdict{Device: id, Code: string(planner.Offline), Reason: "offline since " + id, Version: endless})
		change := preview.Change{
			Section: "files", Name: "/etc/" + id, Op: preview.Changed,
			Fields: []preview.Field{{Name: "mode", From: endless, To: endless}}, Content: &preview.Content{Lines: lines},
		}
		p.Changes = append(p.Changes, preview.Group{Devices: []string{id}, From: endless, To: endless, Changes: []preview.Change{change}, Variants: 1})
		p.Summary.Warnings = append(p.Summary.Warnings, endless)
	}
	problems := []schema.Problem{{File: endless, Message: endless, Rule: endless, Hint: endless, Severity: schema.SeverityError}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body := comment.Render(p, comment.Options{Name: endless, Command: endless})
	invalid := comment.RenderProblems(p.Head, problems, comment.Options{})
	runtime.ReadMemStats(&after)
	const most = 32 << 20 // bytes: some for each row that could be shown, none for what could not
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d bytes were allocated, more than %d", used, most)
	}
	check(t, body, 0, endless)
	check(t, invalid, 0, endless)
	if want := " | 9996 other reasons |\n"; !strings.Contains(body, want) {
		t.Errorf("there is no %q in\n%s", want, body)
	}
}

// TestEveryLimitHolds renders a preview that has too much of everything: what
// there is no room for is named or counted.
func TestEveryLimitHolds(t *testing.T) {
	const n = 300
	p := &preview.Plan{Head: preview.Place{Name: "topic"}, Base: &preview.Place{Name: "main"}, Note: "a note"}
	for i := range n {
		id := fmt.Sprintf("gw-%d-%s", i, strings.Repeat("x", 60))
		change := preview.Change{Section: "files", Name: "/etc/" + id, Op: preview.Changed, Content: &preview.Content{Lines: []string{"+" + id, "+" + id, "```"}}}
		p.Changes = append(p.Changes, preview.Group{Devices: []string{id}, From: "v1", To: "v2", Changes: []preview.Change{change}, Variants: 1})
		p.PolicyChanges = append(p.PolicyChanges, preview.PolicyChange{Policy: id, Op: preview.Added})
		p.Membership.Moved = append(p.Membership.Moved, preview.Move{Device: id, From: id})
		p.WorstCase = append(p.WorstCase, preview.Reach{Policy: id, Of: i, Words: []string{id}})
		p.Verdicts = append(p.Verdicts, preview.Verdict{Device: id, Policy: id, Code: string(planner.Upgrade), Upgrade: true, Reason: id},
			preview.Verdict{Device: id, Policy: id, Code: string(planner.Held), Reason: id})
		p.Summary.Warnings = append(p.Summary.Warnings, id)
	}
	parts := map[string]string{ // how each begins, and what it is called where it is left out
		"\nNote: ": "a note", "\n```sh\n": "the command that shows all of it",
		"<summary>The changes, line by line<": "the changes line by line", "<summary>The verdict for 600 devices<": "the verdict of each device",
	}
	for _, title := range ownTitles {
		if title != "Problems" {
			parts["#### "+title+"\n"] = title
		}
	}
	left := 0
	const step = 397 // bytes, so that limits end anywhere in a row
	for limit := comment.MinBytes; limit <= comment.MaxBytes; limit += step {
		body := comment.Render(p, comment.Options{Limit: limit, Command: "gitopsd plan"})
		for _, b := range []string{body, comment.Stale(body, strings.Repeat("🌈", 119))} {
			if len(b) > limit {
				t.Fatalf("%d bytes, %d may be", len(b), limit)
			}
		}
		_, missing, _ := strings.Cut(body, "Left out for want of room: ")
		for begin, title := range parts {
			if shown, named := strings.Contains(body, begin), strings.Contains(missing, title); shown == named {
				t.Fatalf("with %d bytes %q is shown: %v, and said to be left out: %v, in\n%s", limit, title, shown, named, body)
			} else if named {
				left++
			}
		}
		if list := unbalanced(body); len(list) > 0 {
			t.Fatalf("with %d bytes: %s in\n%s", limit, list, body)
		}
		if n := strings.Count(body, "and "); n < 3 {
			t.Fatalf("with %d bytes the rest of only %d parts is counted in\n%s", limit, n, body)
		}
	}
	if left == 0 {
		t.Error("nothing was ever left out: the limits are no test")
	}
}

// manyDevices is a fleet whose devices have one file.
func manyDevices(n int, name string) files {
	const api = "apiVersion: gitopsd.dev/v1alpha1\n"
	f := files{
		"policies/gw.yaml":        api + "kind: Policy\nmetadata: {name: gw}\nspec: {enabled: true, targetVersion: v1.0.0}\n",
		"releases/gw/v1.0.0.yaml": api + "kind: Release\nmetadata: {name: v1.0.0}\nspec:\n  files:\n    /etc/x: {content: \"{{ .device.name }}\\n\", template: true}\n",
	}
	for i := range n {
		id := fmt.Sprintf("%s-%05d", name, i)
		f["devices/"+id+".yaml"] = api + "kind: Device\nmetadata: {name: " + id + "}\nspec: {}\n"
	}
	return f
}

// manyPayloads is a fleet whose devices have many files.
func manyPayloads(devices, n int, name string) files {
	f := manyDevices(devices, "gw")
	var b strings.Builder
	for i := range n {
		path := fmt.Sprintf("files/%s-%05d.conf", name, i)
		f[path] = strings.Repeat(fmt.Sprintf("line %d\n", i), 20)
		fmt.Fprintf(&b, "    /etc/many/%s-%05d: {source: %s}\n", name, i, path)
	}
	f["releases/gw/v1.0.0.yaml"] += b.String()
	return f
}
