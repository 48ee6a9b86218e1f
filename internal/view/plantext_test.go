package view

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/preview"
)

// evil is what a repository may have in any of its texts.
const evil = "\x1b]0;x\x07\x1b[2J\r\u202eevil\n@everyone\tend"

// hostilePlan has the text in every field.
func hostilePlan(text string) *preview.Plan {
	change := preview.Change{
		Pointer: text, Section: "files", Name: text, Op: preview.Changed, Varies: true,
		Fields:  []preview.Field{{Name: text, From: text, To: text}},
		Content: &preview.Content{From: 1, To: 2_000_000, Inserted: 1, Lines: []string{"@@ -1,1 +1,1 @@ " + text, "-" + text, "+" + text, text, ""}, More: 3},
	}
	hook := change
	hook.Section, hook.Op, hook.Content = "hooks", preview.Added, &preview.Content{From: -1, To: 5, Hidden: text}
	return &preview.Plan{
		Head: preview.Place{Name: text, Commit: "0123456789"}, Base: &preview.Place{Name: text}, Note: text,
		Changes: []preview.Group{{
			Devices: []string{text, text, text, text}, From: text, To: text + "2", Changes: []preview.Change{change, hook}, Variants: 4, Example: text,
			Before: preview.BeforeRuns, Wanted: text, Counts: map[string]int{text: 4},
			Effect: preview.Effect{Hooks: []string{text}, Starts: []string{text}, Restarts: []string{text}, Reloads: []string{text}, Stops: []string{text}, Removes: []string{text}, PutsBack: []string{text}, Reboot: text, Again: true, Download: preview.Download{Total: 99, Least: 1, Most: 50, Bound: true}},
		}},
		PolicyChanges: []preview.PolicyChange{{Policy: text, Op: preview.Changed, MayGo: 5, Fields: []preview.PolicyField{{Words: text, Careful: "less"}}}},
		Membership: preview.Membership{Added: []string{text}, Removed: []string{text}, Moved: []preview.Move{{Device: text, From: text, To: text}},
			NoTarget: []preview.NoTarget{{Device: text, Reason: text}}, Settings: []preview.DeviceSetting{{Device: text, Field: text, Words: text}}},
		WorstCase: []preview.Reach{{Policy: text, Target: text, Devices: 1, Of: 2, Words: []string{text}}},
		Verdicts:  []preview.Verdict{{Device: text, Policy: text, Code: text, Reason: text, Version: text, Target: text, Wave: text, Position: 1}},
		Recalls:   []preview.Recall{{Device: text, Because: text}},
		Summary: preview.Summary{Counts: map[string]int{"Queued": 3, text: 1},
			Policies: []preview.PolicyState{{Policy: text, Target: text, Halted: true, HaltedBy: []string{text}}}},
	}
}

// texts writes everything that there is of a plan.
func texts(t *testing.T, text string, look Look) map[string]string {
	t.Helper()
	plan := hostilePlan(text)
	out := map[string]string{}
	for _, wide := range []bool{false, true} {
		var b bytes.Buffer
		if err := WritePlan(&b, plan, look, wide); err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprintf("plan wide=%v", wide)] = b.String()
	}
	var b bytes.Buffer
	g := &plan.Changes[0]
	d := &preview.Device{Device: text, Head: plan.Head, Base: plan.Base, Note: text, From: preview.SpecRef{Policy: text, Version: text, Digest: text},
		To: preview.SpecRef{Policy: "p", Version: text, Digest: "sha256:00"}, Runs: &preview.SpecRef{Version: text, Digest: text}, Changes: g.Changes,
		Effect: g.Effect, Verdict: &plan.Verdicts[0], NoTarget: text}
	for i := range d.Changes {
		d.Changes[i].Fields[0].FromOrigin, d.Changes[i].Fields[0].ToOrigin = text, text
		d.Changes[i].Content.ToOrigin = text
	}
	if err := WriteDiff(&b, d, look); err != nil {
		t.Fatal(err)
	}
	out["diff"] = b.String()
	return out
}

func TestPlanTextIsHarmless(t *testing.T) {
	for name, text := range texts(t, evil, Look{}) {
		for _, r := range text {
			if r != '\n' && !harmless(r) {
				t.Errorf("%s: the character %U reaches the terminal:\n%q", name, r, text)
				break
			}
		}
		if strings.Contains(text, "\n@everyone") {
			t.Errorf("%s: a text makes a line of its own:\n%s", name, text)
		}
	}
}

func TestPlanTextFits(t *testing.T) {
	long := "a-name-of-which-there-is-rather-much-0123456789 and-another-word"
	for _, text := range []string{"short", long, strings.Repeat("x", 500), evil} {
		for width := 40; width <= 200; width += 7 {
			for name, out := range texts(t, text, Look{Width: width}) {
				for _, line := range strings.Split(out, "\n") {
					if n := utf8.RuneCountInString(line); n > width {
						t.Fatalf("%s: %d columns on a terminal of %d: %q", name, n, width, line)
					}
				}
			}
		}
	}
}

// Colours must not be broken by wrapping, nor leak into what follows.
func TestPlanTextColours(t *testing.T) {
	for name, out := range texts(t, "some words that have to be wrapped somewhere", Look{Width: 44, Color: true}) {
		if strings.Count(out, "\x1b[") == 0 || strings.Count(out, "\x1b[0m")*2 != strings.Count(out, "\x1b[") {
			t.Errorf("%s: colours are not closed:\n%q", name, out)
		}
		plain := strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(out)
		if strings.Contains(plain, "\x1b") || plain != texts(t, "some words that have to be wrapped somewhere", Look{Width: 44})[name] {
			t.Errorf("%s: colours change the text:\n%q", name, out)
		}
	}
}

// Shares of a policy are of the devices that limits count; where these are not
// all, the plan says so.
func TestPlanTextTellsWhatLimitsCount(t *testing.T) {
	p := &preview.Plan{Summary: preview.Summary{Policies: []preview.PolicyState{{Policy: "gateways", Target: "v1", Devices: 1, Slots: 1}, {Policy: "sensors", Target: "v1", Devices: 1, Slots: 1}}}}
	for i, policy := range []string{"gateways", "gateways", "gateways", "sensors"} {
		p.Verdicts = append(p.Verdicts, preview.Verdict{Device: fmt.Sprint("gw-", i), Policy: policy, Code: "NeverSeen"})
	}
	var b bytes.Buffer
	if err := WritePlan(&b, p, Look{}, false); err != nil {
		t.Fatal(err)
	}
	wantText(t, b.String(), "limits of gateways count 1 of its 3 devices: the others have never reported, or are absent\n")
	if strings.Contains(b.String(), "limits of sensors") {
		t.Errorf("all of sensors count in\n%s", b.String())
	}
}
