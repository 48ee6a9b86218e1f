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
