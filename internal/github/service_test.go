package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/internal/githubtest"
	"github.com/gitopsd/gitopsd/schema"
)

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

// Where the queue has no place, what is known of other pull requests stays.
func TestFullQueueForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, err := New(w.config())
		if err != nil {
			t.Fatal(err)
		}
		for i := range maxWaiting {
			if err := s.queue.put(&item{number: 1000 + i}); err != nil {
				t.Fatal(err)
			}
		}
		for n := 1; n <= 3; n++ {
			w.open(n, commit(n))
		}
		s.known[1] = known{head: commit(1)}
		s.known[2] = known{head: commit(2)}
		if err := s.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.known) != 2 {
			t.Errorf("of two pull requests that are open %d are still known", len(s.known))
		}
		if n := strings.Count(w.logs.String(), "pull requests wait already"); n != 1 {
			t.Errorf("that there is no place is said %d times", n)
		}
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
