package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/githubtest"
)

func TestB116_OneCommentFoundByMarkAndAuthor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(3, commit(2))
		mark := comment.Mark{Head: commit(9)}.String() + "\nnot ours"
		for i := range 150 {
			text := fmt.Sprint("talk ", i)
			if i == 20 {
				text = mark // somebody copied it
			}
			w.server.AddComment(3, "mallory", text)
			if i == 70 {
				w.server.AddComment(3, testLogin, "without a mark")
				w.server.AddComment(3, strings.ToUpper(testLogin), mark+", of old")
			}
		}
		s := w.start()
		time.Sleep(10 * time.Second)
		var ours []githubtest.Comment
		for _, c := range w.server.Comments(3) {
			if strings.Contains(c.Body, "plan of") {
				ours = append(ours, c)
			}
		}
		if len(ours) != 1 || !strings.EqualFold(ours[0].Author, testLogin) || len(w.server.Comments(3)) != 152 {
			t.Fatalf("the comment on a later page was not found: %+v of %d", ours, len(w.server.Comments(3)))
		}

		// Five pushes, some at once.
		for n := 3; n < 8; n++ {
			w.open(3, commit(n))
			w.event(s, 3, commit(n))
			if n%2 == 0 {
				time.Sleep(1500 * time.Millisecond)
			}
		}
		time.Sleep(time.Minute)
		if got := w.server.Comments(3); len(got) != 152 || !slices.ContainsFunc(got, func(c githubtest.Comment) bool {
			return c.ID == ours[0].ID && strings.Contains(c.Body, commit(7))
		}) {
			t.Error("after five pushes the one comment does not speak of the last")
		}

		// A person changes it, and the next one removes it.
		w.server.EditComment(ours[0].ID, comment.Mark{Head: commit(7)}.String()+"\nmine now")
		w.open(3, commit(8))
		w.event(s, 3, commit(8))
		time.Sleep(time.Minute)
		w.server.EditComment(ours[0].ID, "")
		w.open(3, commit(9))
		w.event(s, 3, commit(9))
		time.Sleep(time.Minute)
		if got := w.server.Comments(3); len(got) != 152 || !strings.Contains(got[151].Body, commit(9)) {
			t.Errorf("a comment that was removed did not come back: %q", got[len(got)-1].Body)
		}
	})
}

// Two daemons find no comment and write one each at the same time.
func TestB116_TwoDaemonsOneComment(t *testing.T) {
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.open(3, commit(2))
			// Whoever comes second sees nothing of the first before it writes.
			w.server.Fault(func(r githubtest.Request) *githubtest.Answer {
				time.Sleep(time.Duration(seed*37%11+1) * 50 * time.Millisecond)
				return nil
			})
			other := func(c *Config) {
				w.second(c)
				look := c.Look
				c.Look = func(ctx context.Context, p Pull) (Review, error) {
					time.Sleep(time.Duration(seed*17%7) * 100 * time.Millisecond)
					r, err := look(ctx, p)
					r.Comment += "as the other sees it\n"
					return r, err
				}
			}
			a, b := w.start(), w.start(other)
			for n := 3; n < 6; n++ {
				time.Sleep(time.Minute)
				w.wantComment(3, commit(n-1))
				w.open(3, commit(n))
				w.event(a, 3, commit(n))
				w.event(b, 3, commit(n))
			}
			time.Sleep(time.Minute)
			w.wantComment(3, commit(5))
			w.server.Forget()
			time.Sleep(time.Hour)
			w.wantWrites()
		})
	}
}

func TestStaleBanner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		w.open(2, commit(3))
		s := w.start()
		time.Sleep(10 * time.Second)
		s.Swept(FleetState{Commit: commit(1), State: Success, Words: "all well"})
		time.Sleep(time.Minute)
		w.server.Forget()

		w.mu.Lock()
		w.base = commit(4)
		w.mu.Unlock()
		s.Swept(FleetState{Commit: commit(4), State: Success, Words: "all well"})
		time.Sleep(time.Minute)
		w.wantComment(1, "main has moved to `0000000`")
		w.wantComment(2, "main has moved")
		w.server.Forget()
		s.Swept(FleetState{Commit: commit(4), State: Success, Words: "all well"})
		time.Sleep(time.Hour)
		w.wantWrites()

		// A restart knows, and a push takes the banner away.
		w.open(1, commit(5))
		w.event(s, 1, commit(5))
		time.Sleep(time.Minute)
		if text := w.wantComment(1, "plan of"); strings.Contains(text, "moved") {
			t.Errorf("a new look left the banner: %q", text)
		}
		w.server.Forget()
		again := w.start(w.second)
		again.Swept(FleetState{Commit: commit(6), State: Success, Words: "all well"})
		time.Sleep(time.Minute)
		w.wantComment(1, "main has moved")
		// The branch is put back: what was compared with it holds again.
		again.Swept(FleetState{Commit: commit(4), State: Success, Words: "all well"})
		time.Sleep(time.Minute)
		if text := w.wantComment(1, "plan of"); strings.Contains(text, "moved") {
			t.Errorf("the banner stays though the branch is where it was: %q", text)
		}
	})
}

// A sweep that began before a look at a pull request ends after it: the branch
// has not gone back.
func TestSweepBehindALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		s := w.start()
		s.Swept(FleetState{Commit: commit(1), State: Success, Words: "all well"})
		time.Sleep(10 * time.Second)
		w.mu.Lock()
		w.base = commit(4)
		w.mu.Unlock()
		w.open(2, commit(3))
		w.event(s, 2, commit(3))
		time.Sleep(10 * time.Second)
		w.wantComment(1, "main has moved")
		w.server.Forget()
		s.Swept(FleetState{Commit: commit(1), State: Pending, Words: "a device begins"})
		time.Sleep(10 * time.Second)
		w.wantWrites("POST /repos/acme/fleet/statuses/" + commit(1) + " 201")
		s.Swept(FleetState{Commit: commit(4), State: Pending, Words: "a device begins"})
		time.Sleep(10 * time.Second)
		w.wantWrites("POST /repos/acme/fleet/statuses/" + commit(4) + " 201")
		s.Swept(FleetState{Commit: commit(1), State: Success, Words: "put back"}) // it has gone back
		time.Sleep(10 * time.Second)
		w.wantComment(2, "main has moved")
	})
}

// What is found out about an old head is not written once there is a new one.
func TestB116_SupersededIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.look = func(ctx context.Context, p Pull) (Review, error) {
			wait := time.Second
			if p.Head == commit(2) {
				wait = time.Hour
			}
			select {
			case <-time.After(wait):
				return w.review(p), nil
			case <-ctx.Done():
				return Review{}, ctx.Err()
			}
		}
		w.open(1, commit(2))
		s := w.start()
		time.Sleep(time.Minute)
		w.open(1, commit(3))
		w.event(s, 1, commit(3))
		time.Sleep(20 * time.Second)
		w.wantComment(1, "plan of "+commit(3))
		w.wantStatus(commit(2), contextValidate, "")

		// Nobody announced the next one: it is seen before anything is written.
		w.mu.Lock()
		w.look = func(_ context.Context, p Pull) (Review, error) {
			if p.Head == commit(4) {
				w.open(1, commit(5))
			}
			return w.review(p), nil
		}
		w.mu.Unlock()
		w.open(1, commit(4))
		w.event(s, 1, commit(4))
		time.Sleep(time.Minute)
		w.wantStatus(commit(4), contextValidate, "")
		w.wantComment(1, "plan of "+commit(5))
	})
}

// lagging is GitHub with a list of comments that is older than the comments.
type lagging struct {
	forge
	hidden func(note) bool
}

func (l lagging) comments(ctx context.Context, number int, author string) ([]note, error) {
	list, err := l.forge.comments(ctx, number, author)
	return slices.DeleteFunc(list, l.hidden), err
}

// A list that lags may bring a second comment, which the next look removes.
func TestB116_CommentsThatAreListedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		begin := time.Now()
		w.wrap = func(f forge) forge {
			return lagging{f, func(note) bool { return time.Since(begin) < time.Minute }}
		}
		s := w.start(func(c *Config) { c.Interval = time.Hour })
		time.Sleep(30 * time.Second)
		w.wantComment(1, "plan of "+commit(2))
		w.open(1, commit(3))
		w.event(s, 1, commit(3))
		time.Sleep(time.Minute)
		if n := len(w.server.Comments(1)); n != 2 {
			t.Errorf("%d comments: the list did not lag", n)
		}
		w.open(1, commit(4))
		w.event(s, 1, commit(4))
		time.Sleep(time.Minute)
		w.wantComment(1, "plan of "+commit(4))
	})
}
