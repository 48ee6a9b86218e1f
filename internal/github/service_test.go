package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/githubtest"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	testToken = "github_pat_Secret0123"
	testLogin = "fleet-writer"
)

// commit is a commit for tests, by a number.
func commit(n int) string { return fmt.Sprintf("%040x", n) }

// world is one repository at GitHub with daemons that write to it. All of it
// runs in a bubble of synctest: an hour costs nothing.
type world struct {
	t      *testing.T
	server *githubtest.Server
	dir    string
	wrap   func(forge) forge // nil = the client alone

	mu    sync.Mutex
	base  string // the newest commit of the branch
	looks []Pull
	look  func(ctx context.Context, p Pull) (Review, error) // nil = all is well
	logs  lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, server: githubtest.New(t, "acme", "fleet", nil), dir: t.TempDir(), base: commit(1)}
	w.server.AddToken(testToken, testLogin, nil)
	return w
}

// write makes a file with a secret.
func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) config() Config {
	return Config{
		Repository: "acme/fleet", Branch: "main", TokenFile: w.write("token", testToken+"\n"), Look: w.lookAt,
		Transport: w.server.Transport(), Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
	}
}

// review is what a valid pull request gets.
func (w *world) review(p Pull) Review {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Review{
		Head: p.Head, Base: w.base, Validate: Verdict{Success, "valid"}, Plan: Verdict{Success, "1 device changes"},
		Comment: comment.Mark{Head: p.Head, Base: w.base}.String() + "\n### plan of " + p.Head + "\n",
	}
}

func (w *world) lookAt(ctx context.Context, p Pull) (Review, error) {
	w.mu.Lock()
	w.looks = append(w.looks, p)
	look := w.look
	w.mu.Unlock()
	if look != nil {
		return look(ctx, p)
	}
	return w.review(p), nil
}

func (w *world) looked() []Pull {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.looks)
}

// start runs a daemon's service until the test's bubble ends.
func (w *world) start(edits ...func(*Config)) *Service {
	w.t.Helper()
	cfg := w.config()
	for _, edit := range edits {
		edit(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.wrap != nil {
		s.forge = w.wrap(s.forge)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run ended with %v", err)
		}
		for _, wrong := range w.server.Wrongs() {
			w.t.Errorf("GitHub does not want: %s", wrong)
		}
		w.noSecrets()
	})
	return s
}

// noSecrets looks for tokens in everything that was said or sent.
func (w *world) noSecrets() {
	w.t.Helper()
	said := w.logs.String()
	for _, r := range w.server.Requests() {
		said += r.Path + r.Body
	}
	for n := range 5 {
		for _, c := range w.server.Comments(n) {
			said += c.Body
		}
	}
	for _, secret := range []string{"Secret", "PRIVATE KEY", "Bearer"} {
		if i := strings.Index(said, secret); i >= 0 {
			w.t.Errorf("B124: %q was said: …%s", secret, said[max(0, i-100):min(len(said), i+100)])
		}
	}
}

// second gives another daemon a token of its own.
func (w *world) second(c *Config) {
	w.server.AddToken("github_pat_Secret9", testLogin, nil)
	c.TokenFile = w.write("other", "github_pat_Secret9")
}

// open opens pull request n with a head, or moves it there.
func (w *world) open(n int, head string) {
	w.server.SetPull(githubtest.Pull{Number: n, Base: "main", BaseSHA: commit(1), Branch: "topic", Head: head})
}

func (w *world) event(s *Service, n int, head string) {
	w.t.Helper()
	if err := s.PullRequest(Event{Number: n, Action: "synchronize", Head: head}); err != nil {
		w.t.Error(err)
	}
}

// writes are the requests that changed something, in short.
func (w *world) writes() []string {
	var list []string
	for _, r := range w.server.Writes() {
		list = append(list, r.String())
	}
	return list
}

func (w *world) wantWrites(want ...string) {
	w.t.Helper()
	got := w.writes()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("the writes were\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	w.server.Forget()
}

// wantComment wants one comment, by the daemon, and gives it.
func (w *world) wantComment(n int, holds string) string {
	w.t.Helper()
	var own []string
	for _, c := range w.server.Comments(n) {
		if strings.HasPrefix(c.Author, "fleet-") {
			own = append(own, c.Body)
		}
	}
	if len(own) != 1 || !strings.Contains(own[0], holds) {
		w.t.Errorf("the comments of the daemon at %d are %q, want one with %q", n, own, holds)
		return ""
	}
	return own[0]
}

func (w *world) wantStatus(head, context, want string) {
	w.t.Helper()
	if got := w.server.Status(head, context); got != want {
		w.t.Errorf("the status %s of %s is %q, want %q", context, short(head), got, want)
	}
}

func TestOnePullRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(7, commit(2))
		s := w.start()
		time.Sleep(10 * time.Second)
		w.wantWrites("POST /repos/acme/fleet/statuses/"+commit(2)+" 201", "POST /repos/acme/fleet/statuses/"+commit(2)+" 201",
			"POST /repos/acme/fleet/issues/7/comments 201")
		w.wantStatus(commit(2), contextValidate, "success: valid")
		w.wantStatus(commit(2), contextPlan, "success: 1 device changes")
		w.wantComment(7, "plan of "+commit(2))

		// A push: the same comment says something else.
		w.open(7, commit(3))
		w.event(s, 7, commit(3))
		time.Sleep(10 * time.Second)
		w.wantWrites("POST /repos/acme/fleet/statuses/"+commit(3)+" 201", "POST /repos/acme/fleet/statuses/"+commit(3)+" 201",
			"PATCH /repos/acme/fleet/issues/comments/1001 200")
		w.wantComment(7, "plan of "+commit(3))

		// Nothing new: nothing is written, and asking costs nothing.
		time.Sleep(time.Hour)
		w.event(s, 7, commit(3))
		time.Sleep(time.Hour)
		w.wantWrites()
		free := 0
		for _, r := range w.server.Requests() {
			if r.Status == http.StatusNotModified {
				free++
			}
		}
		w.open(7, commit(3)) // the time of its change moves
		w.server.SetPull(githubtest.Pull{Number: 7, Base: "main", Head: commit(3), Closed: true})
		time.Sleep(time.Hour)
		w.wantWrites()
	})
}

func TestUnchangedListsAreFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		w.start()
		time.Sleep(10 * time.Second)
		w.server.Forget()
		time.Sleep(time.Hour)
		requests := w.server.Requests()
		if len(requests) != 30 {
			t.Errorf("%d requests in an hour, want one each two minutes", len(requests))
		}
		for _, r := range requests {
			if r.Status != http.StatusNotModified {
				t.Errorf("an unchanged list was sent whole: %s", r)
			}
		}
	})
}

// A restart does not write what stands there, and does not even look.
func TestRestartWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(7, commit(2))
		w.start()
		time.Sleep(10 * time.Second)
		w.server.Forget()
		before := len(w.looked())
		w.start(w.second)
		time.Sleep(time.Hour)
		w.wantWrites()
		if n := len(w.looked()) - before; n != 0 {
			t.Errorf("a second daemon looked %d times at what was looked at", n)
		}
	})
}

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

func TestFleetStatusOnlyWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.start(func(c *Config) { c.Interval = 24 * time.Hour })
		tell := func(state State, words string) {
			s.Swept(FleetState{Commit: commit(1), State: state, Words: words})
			time.Sleep(time.Second)
		}
		tell(Pending, "1 of 9")
		w.wantStatus(commit(1), contextFleet, "pending: 1 of 9")
		w.server.Forget()
		for range 60 {
			tell(Pending, "1 of 9")
		}
		w.wantWrites()
		// Numbers are written at their leisure, a state at once.
		tell(Pending, "2 of 9")
		tell(Pending, "3 of 9")
		w.wantStatus(commit(1), contextFleet, "pending: 1 of 9")
		time.Sleep(fleetEvery)
		w.wantStatus(commit(1), contextFleet, "pending: 3 of 9")
		tell(Failure, "halted")
		time.Sleep(2 * time.Second)
		w.wantStatus(commit(1), contextFleet, "failure: halted")
		w.server.Forget()

		// A restart reads what stands there.
		seldom := func(c *Config) { c.Interval = 24 * time.Hour }
		other := w.start(seldom, w.second)
		other.Swept(FleetState{Commit: commit(1), State: Failure, Words: "halted"})
		time.Sleep(time.Hour)
		w.wantWrites()
		for _, one := range []*Service{s, other} {
			one.Swept(FleetState{Commit: commit(1), State: Success, Words: "9 of 9"})
			time.Sleep(5 * time.Second)
		}
		w.wantWrites("POST /repos/acme/fleet/statuses/" + commit(1) + " 201")

		// However long a rollout goes on, GitHub's thousand are not used up.
		for i := range 1500 {
			s.Swept(FleetState{Commit: commit(1), State: Pending, Words: fmt.Sprint(i)})
			time.Sleep(fleetEvery)
		}
		for _, r := range w.server.Requests() {
			if r.Status >= 400 {
				t.Fatalf("GitHub refused %s", r)
			}
		}
	})
}

func TestB117_WordsFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		long := strings.Repeat("日本語 ", 500) + "\x1b[2J\n\u202e"
		w.look = func(_ context.Context, p Pull) (Review, error) {
			r := w.review(p)
			r.Validate.Words, r.Plan.Words = strings.Repeat("x ", 500), long
			r.Problems = []schema.Problem{{File: "x", Message: strings.Repeat(long, 50), Rule: long}}
			return r, nil
		}
		w.open(1, commit(2))
		s := w.start(w.asApp(nil))
		s.Swept(FleetState{Commit: commit(1), State: Failure, Words: long})
		time.Sleep(time.Minute)
		for commit, context := range map[string]string{commit(2): contextPlan, commit(1): contextFleet} {
			if got := w.server.Status(commit, context); !strings.Contains(got, ": 日本語 ") || !strings.HasSuffix(got, "…") {
				t.Errorf("%s: %q", context, got)
			}
		}
		if got := w.server.Status(commit(2), contextValidate); !strings.HasPrefix(got, "success: x x") {
			t.Errorf("%s: %q", contextValidate, got)
		}
		if n := len(w.server.Checks(commit(2))); n != 1 {
			t.Errorf("%d check runs", n)
		}
		w.server.Forget()
		s.Swept(FleetState{Commit: commit(1), State: Failure, Words: long})
		w.event(s, 1, commit(2))
		time.Sleep(time.Hour)
		w.wantWrites()
	})
}

// What could not be planned for a reason outside of the pull request is planned
// as soon as it can be.
func TestNoPlanForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.look = func(_ context.Context, p Pull) (Review, error) {
			r := w.review(p)
			r.Plan, r.Comment = Verdict{Failure, "there is no plan: the status is in doubt"}, ""
			return r, nil
		}
		w.open(1, commit(2))
		w.start()
		time.Sleep(time.Hour)
		w.wantStatus(commit(2), contextPlan, "failure: there is no plan: the status is in doubt")
		if n := len(w.server.Writes()); n != 2 || len(w.looked()) < 20 {
			t.Errorf("%d writes, %d looks", n, len(w.looked()))
		}
		w.mu.Lock()
		w.look = nil
		w.mu.Unlock()
		time.Sleep(3 * time.Minute)
		w.wantStatus(commit(2), contextPlan, "success: 1 device changes")
		w.wantComment(1, "plan of")
	})
}

func TestOtherPullRequestsAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.server.SetPull(githubtest.Pull{Number: 1, Base: "release", Head: commit(2)})
		w.server.SetPull(githubtest.Pull{Number: 2, Base: "main", Head: commit(3), Closed: true})
		s := w.start()
		for n := 1; n < 4; n++ { // 3 is not there at all
			for _, action := range []string{"synchronize", "edited", "labeled", "closed"} {
				if err := s.PullRequest(Event{Number: n, Action: action}); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
			}
		}
		if err := s.PullRequest(Event{Number: -1}); err == nil {
			t.Error("a number below zero was taken")
		}
		w.wantWrites()
		if n := len(w.looked()); n != 0 {
			t.Errorf("%d looks at pull requests that are none of ours", n)
		}
	})
}

func TestProblemsBecomeAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := w.write("key.pem", string(w.server.AddApp(t, 12, 34, "fleet-app", nil, 0)))
		w.look = func(_ context.Context, p Pull) (Review, error) {
			r := w.review(p)
			r.Validate, r.Plan = Verdict{Failure, "10000 errors"}, Verdict{Failure, "not planned"}
			for i := range 600 {
				r.Problems = append(r.Problems, schema.Problem{File: "a.yaml", Line: 1, Message: fmt.Sprint("warning ", i), Severity: schema.SeverityWarning})
			}
			for i := range 9_400 {
				r.Problems = append(r.Problems, schema.Problem{
					File: fmt.Sprintf("devices/%d.yaml", i), Line: i % 3, Column: i % 2, Rule: "unknown-field", Severity: schema.SeverityError,
					Message: strings.Repeat("@everyone <script>\x00", i%400), Hint: "a hint",
				})
			}
			return r, nil
		}
		w.open(1, commit(2))
		s := w.start(func(c *Config) { c.TokenFile, c.AppID, c.PrivateKeyFile = "", 12, key })
		time.Sleep(time.Minute)
		checks := w.server.Checks(commit(2))
		if len(checks) != 1 || checks[0].Conclusion != "failure" || len(checks[0].Annotations) != maxAnnotations || checks[0].Annotations[0].Level != "failure" || !strings.Contains(checks[0].Summary, "10000 problems") {
			t.Fatalf("%d check runs: %.300v", len(checks), checks)
		}
		w.wantStatus(commit(2), contextValidate, "failure: 10000 errors")
		w.wantComment(1, "plan of")
		w.server.Forget()
		w.event(s, 1, commit(2))
		time.Sleep(time.Minute)
		w.wantWrites()
	})
}

func TestB18_OwnWritesCauseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		s := w.start()
		time.Sleep(time.Minute)
		w.server.Forget()
		// Each write of ours comes back as an event, and touches the pull request.
		for range 20 {
			w.open(1, commit(2))
			w.event(s, 1, commit(2))
			time.Sleep(time.Minute)
		}
		w.wantWrites()
		looks := len(w.looked())
		for _, action := range []string{"labeled", "assigned", "locked", "auto_merge_enabled"} {
			if err := s.PullRequest(Event{Number: 1, Action: action}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}
		if n := len(w.looked()) - looks; n != 0 {
			t.Errorf("%d looks at what has not changed", n)
		}
	})
}

func TestB24_AnnouncedBeforeItIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		s := w.start(func(c *Config) { c.Interval = 10 * time.Minute })
		time.Sleep(time.Minute)

		// The API lags behind the event.
		w.event(s, 1, commit(3))
		time.Sleep(5 * time.Second)
		w.open(1, commit(3))
		time.Sleep(time.Minute)
		w.wantComment(1, "plan of "+commit(3))
		// An event that comes late says nothing new.
		w.server.Forget()
		w.event(s, 1, commit(2))
		time.Sleep(2 * time.Minute)
		w.wantWrites()

		// Git lags behind the API.
		late := time.Now().Add(20 * time.Second)
		w.mu.Lock()
		w.look = func(_ context.Context, p Pull) (Review, error) {
			if time.Now().Before(late) {
				return Review{}, &kindError{"not-found"}
			}
			return w.review(p), nil
		}
		w.mu.Unlock()
		w.open(1, commit(4))
		w.event(s, 1, commit(4))
		time.Sleep(time.Minute)
		w.wantComment(1, "plan of "+commit(4))

		// It never comes: that is said once, and does not go on for ever.
		w.mu.Lock()
		w.look = func(context.Context, Pull) (Review, error) { return Review{}, &kindError{"not-found"} }
		before := len(w.looks)
		w.mu.Unlock()
		w.open(1, commit(5))
		w.event(s, 1, commit(5))
		time.Sleep(time.Hour)
		if n := strings.Count(w.logs.String(), "was announced and is not to be found"); n != 1 {
			t.Errorf("a commit that never came was said %d times:\n%s", n, w.logs.String())
		}
		if n := len(w.looked()) - before; n < 5 || n > 60*6 {
			t.Errorf("%d looks in an hour for a commit that never came", n)
		}
		w.wantComment(1, "plan of "+commit(4))
	})
}

// kindError is an error as package repo has them.
type kindError struct{ kind string }

func (e *kindError) Error() string { return "it is not here" }
func (e *kindError) Kind() string  { return e.kind }

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

func (l lagging) comments(ctx context.Context, number int) ([]note, error) {
	list, err := l.forge.comments(ctx, number)
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

func TestRunEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		w.server.Fault(func(githubtest.Request) *githubtest.Answer { return &githubtest.Answer{Hang: true} })
		s, err := New(w.config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
