package comment_test

import (
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/preview"
)

// TestB116 is how a comment is found again: by its mark, which whoever looks for it
// compares beside the author, and which a banner does not touch.
func TestB116(t *testing.T) {
	p := &preview.Plan{Head: preview.Place{Name: "topic", Commit: "abc123"}, Base: &preview.Place{Name: "main", Commit: "def456"}}
	for name, want := range map[string]string{"": "", "fleets/eu-1": "fleets/eu-1", "x --> y": comment.MarkName("x --> y")} {
		body := comment.Render(p, comment.Options{Name: name})
		mark, found := comment.Find(body)
		if !found || mark != (comment.Mark{Name: want, Head: "abc123", Base: "def456"}) {
			t.Errorf("the mark of the comment named %q is %+v, %v:\n%s", name, mark, found, body)
		}
		stale := comment.Stale(body, "main has moved to 1a2b3c4")
		if again, _ := comment.Find(stale); again != mark || !strings.Contains(stale, "**Stale:** main has moved to `1a2b3c4`.") {
			t.Errorf("the stale comment has the mark %+v:\n%s", again, stale)
		}
		if twice := comment.Stale(stale, "main has moved to 1a2b3c4"); twice != stale {
			t.Errorf("stale twice is not stale once:\n%s", twice)
		}
		if back := comment.Stale(stale, ""); back != body {
			t.Errorf("a comment that is true again differs:\n%s\nwant\n%s", back, body)
		}
	}
}

// A change that is of holds and pins alone does something, one that is of pages
// does nothing, and a commit that was named by its whole hash is abbreviated.
func TestTitlesOfChangesThatNoSpecShows(t *testing.T) {
	const head, base = "c7a6b03ff77f7e63482d5f9dff875df7a022cd39", "2c20f2cd6f2c51fab3c0941a6237ffdcbb96e35c"
	for name, c := range map[string]struct {
		settings []preview.DeviceSetting
		want     []string
	}{
		"a page": {nil, []string{"### gitopsd plan: nothing changes, 1 moves next\n", "\n`c7a6b03` against `2c20f2c`.\n"}},
		"a hold": {[]preview.DeviceSetting{{Device: "gw-1", Field: "hold", Words: "held: fan"}},
			[]string{"### gitopsd plan: no device changes, 1 hold or pin changes, 1 moves next\n", "\n- `gw-1`: held: fan\n"}},
		"a hold and a pin of two": {[]preview.DeviceSetting{{Device: "gw-1", Field: "hold", Words: "held: fan"}, {Device: "gw-2", Field: "hold", Words: "held: fan"},
			{Device: "gw-1", Field: "pin", Words: "pinned to v1.0.0"}},
			[]string{": no device changes, 3 holds or pins change, 1 moves next\n", "\n- `gw-1`, `gw-2`: held: fan\n- `gw-1`: pinned to `v1.0.0`\n"}},
		"what is forgotten": {[]preview.DeviceSetting{{Device: "gw-1", Field: "forgetFailuresBefore", Words: "failures count that were forgotten"}},
			[]string{": no device changes, 1 moves next\n", "\n- `gw-1`: failures count that were forgotten\n"}},
	} {
		body := comment.Render(&preview.Plan{
			Head: preview.Place{Name: head, Commit: head}, Base: &preview.Place{Name: base, Commit: base},
			Membership: preview.Membership{Settings: c.settings}, Summary: preview.Summary{Upgrades: 1},
		}, comment.Options{})
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in\n%s", name, want, body)
			}
		}
	}
}
