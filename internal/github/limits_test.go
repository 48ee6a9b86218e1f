package github

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/internal/githubtest"
)

// once answers the n-th request of a method with something else.
func once(method string, a githubtest.Answer, then func()) func(githubtest.Request) *githubtest.Answer {
	done := false
	return func(r githubtest.Request) *githubtest.Answer {
		if done || r.Method != method || strings.HasSuffix(r.Path, "/access_tokens") {
			return nil
		}
		done = true
		if then != nil {
			then()
		}
		return &a
	}
}

func TestB121_LimitsAreObeyed(t *testing.T) {
	message := func(text string) string { return fmt.Sprintf(`{"message": %q}`, text) }
	cases := map[string]struct {
		answer      githubtest.Answer
		least, most time.Duration
	}{
		"retry-after": {githubtest.Answer{Status: 403, Header: map[string]string{"Retry-After": "120"}, Body: message("You have exceeded a secondary rate limit.")},
			2 * time.Minute, 140 * time.Second},
		"retry-after below a minute": {githubtest.Answer{Status: 429, Header: map[string]string{"Retry-After": "1"}, Body: message("slow down")},
			time.Minute, 70 * time.Second},
		"retry-after of a week": {githubtest.Answer{Status: 429, Header: map[string]string{"Retry-After": "604800"}, Body: message("slow down")},
			time.Hour, 70 * time.Minute},
		"retry-after that is none": {githubtest.Answer{Status: 429, Header: map[string]string{"Retry-After": "soon"}, Body: message("slow down")},
			time.Minute, 70 * time.Second},
		"secondary without a header": {githubtest.Answer{Status: 403, Body: message("You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")},
			time.Minute, 70 * time.Second},
		"secondary by its page": {githubtest.Answer{Status: 403, Body: `{"message": "no", "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`},
			time.Minute, 70 * time.Second},
		"reset in the past": {githubtest.Answer{Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "946684000"}, Body: message("API rate limit exceeded")},
			time.Minute, 70 * time.Second},
		// The clock of a bubble begins at midnight of 2000-01-01, 946684800.
		"reset in 20 minutes": {githubtest.Answer{Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "946686000"}, Body: message("API rate limit exceeded")},
			19 * time.Minute, 23 * time.Minute},
		"reset by a clock that is wrong": {githubtest.Answer{Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700001200",
			"Date": time.Unix(1700000000, 0).UTC().Format(http.TimeFormat)}, Body: message("API rate limit exceeded")},
			20 * time.Minute, 23 * time.Minute},
		"reset in a year": {githubtest.Answer{Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "978307200"}, Body: message("API rate limit exceeded")},
			time.Hour, 67 * time.Minute},
		"429 alone": {githubtest.Answer{Status: 429, Body: "<html>slow down</html>"}, time.Minute, 70 * time.Second},
	}
	for name, c := range cases {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.open(1, commit(2))
					var refused time.Time
					w.server.Fault(once(method, c.answer, func() {
						refused = time.Now()
						w.server.Ban(refused.Add(c.least))
					}))
					w.start()
					time.Sleep(3 * time.Hour)
					var next time.Time
					for _, r := range w.server.Requests() {
						if r.At.After(refused) && (next.IsZero() || r.At.Before(next)) {
							next = r.At
						}
					}
					most := c.most
					if method == "GET" { // it was the look at all pull requests, which has its own time
						most = max(most, DefaultInterval+time.Second)
					} else if wait := next.Sub(refused); wait == c.least {
						t.Errorf("it waited just %v, as everybody would who was refused", wait)
					}
					if wait := next.Sub(refused); wait < c.least || wait > most {
						t.Errorf("it waited %v, want %v to %v", wait, c.least, most)
					}
					w.wantComment(1, "plan of "+commit(2))
					w.wantStatus(commit(2), contextPlan, "success: 1 device changes")
				})
			})
		}
	}
}

func TestB121_PlainRefusalIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		w.server.Fault(func(r githubtest.Request) *githubtest.Answer {
			if r.Method == "POST" {
				return &githubtest.Answer{Status: 403, Body: `{"message": "Resource not accessible by personal access token"}`}
			}
			return nil
		})
		s := w.start()
		for n := 2; n < 7; n++ {
			w.open(1, commit(n))
			w.event(s, 1, commit(n))
			time.Sleep(10 * time.Minute)
		}
		w.wantWrites("POST /repos/acme/fleet/statuses/"+commit(2)+" 403", "POST /repos/acme/fleet/issues/1/comments 403")
	})
}

// Repeated refusals without a time make the pauses grow.
func TestB121_PausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.server.Fault(func(githubtest.Request) *githubtest.Answer {
			return &githubtest.Answer{Status: 403, Body: `{"message": "You have exceeded a secondary rate limit"}`}
		})
		w.start()
		time.Sleep(24 * time.Hour)
		n := len(w.server.Requests())
		if n < 20 || n > 32 {
			t.Errorf("%d requests in a day to a server that refuses all of them", n)
		}
	})
}

func TestPrimaryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.server.SetLimit(40)
		s := w.start()
		for n := range 60 {
			w.open(1, commit(n+2))
			w.event(s, 1, commit(n+2))
			time.Sleep(20 * time.Second)
		}
		time.Sleep(8 * time.Hour)
		w.wantComment(1, "plan of "+commit(61))
		for _, r := range w.server.Requests() {
			if r.Status == http.StatusForbidden {
				t.Fatalf("it was asked though nothing was left: %s", r)
			}
		}
	})
}

func TestWhileTheAPIIsAway(t *testing.T) {
	bad := map[string]githubtest.Answer{
		"500":            {Status: 500, Body: `{"message": "Server Error"}`},
		"502 HTML":       {Status: 502, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html>unicorn</html>"},
		"503":            {Status: 503},
		"409":            {Status: 409, Body: `{"message": "Conflict"}`},
		"hangs":          {Hang: true},
		"half a body":    {Status: 200, Cut: true, Body: `[{"number": 1, "state": "open"}, {"number": 2}]`},
		"empty":          {Status: 200},
		"HTML":           {Status: 200, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html>please log in</html>"},
		"not what it is": {Status: 200, Body: `{"number": "one"}`},
		"accepted":       {Status: 202, Body: `{}`},
	}
	for name, answer := range bad {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.open(1, commit(2))
				s := w.start()
				time.Sleep(time.Minute)
				w.server.Fault(func(githubtest.Request) *githubtest.Answer { return &answer })
				w.open(1, commit(3))
				w.event(s, 1, commit(3))
				s.Swept(FleetState{Commit: commit(1), State: Success, Words: "all well"})
				w.server.Forget()
				time.Sleep(2 * time.Hour)
				if n := len(w.server.Requests()); n < 10 || n > 200 {
					t.Errorf("%d requests in two hours of trouble", n)
				}
				if n := strings.Count(w.logs.String(), "level=WARN"); n < 1 || n > 8 {
					t.Errorf("trouble was said %d times:\n%s", n, w.logs.String())
				}
				w.server.Fault(nil)
				time.Sleep(20 * time.Minute)
				w.wantComment(1, "plan of "+commit(3))
				w.wantStatus(commit(3), contextValidate, "success: valid")
				w.wantStatus(commit(1), contextFleet, "success: all well")
				if !strings.Contains(w.logs.String(), "works again") {
					t.Error("the end of the trouble is not said")
				}
			})
		})
	}
}

// A list of comments that is cut must not pass for one without ours.
func TestHalfAListMakesNoSecondComment(t *testing.T) {
	for _, body := range []string{"", "[]garbage", `[{"id": 1`} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.open(1, commit(2))
			s := w.start()
			time.Sleep(time.Minute)
			w.server.Fault(func(r githubtest.Request) *githubtest.Answer {
				if r.Method == "GET" && strings.Contains(r.Path, "/comments") {
					return &githubtest.Answer{Status: 200, Body: body}
				}
				return nil
			})
			w.open(1, commit(3))
			w.event(s, 1, commit(3))
			time.Sleep(time.Hour)
			w.wantComment(1, "plan of "+commit(2))
			w.wantStatus(commit(3), contextValidate, "success: valid") // the gate does not wait for the comment
		})
	}
}

func TestEveryRequestMayFail(t *testing.T) {
	answers := []githubtest.Answer{
		{Status: 500}, {Status: 401, Body: `{"message": "Bad credentials"}`}, {Status: 404, Body: `{"message": "Not Found"}`},
		{Status: 422, Body: `{"message": "Validation Failed", "errors": ["no"]}`}, {Status: 403, Body: `{"message": "Resource not accessible by integration"}`},
		{Status: 200, Body: "<html>"}, {Hang: true},
	}
	for nth := range 12 {
		for _, answer := range answers {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.open(1, commit(2))
				n := 0
				w.server.Fault(func(githubtest.Request) *githubtest.Answer {
					if n++; n-1 == nth {
						return &answer
					}
					return nil
				})
				s := w.start()
				time.Sleep(2 * time.Hour) // what is refused is not tried before an hour has passed
				w.open(1, commit(3))
				w.event(s, 1, commit(3))
				time.Sleep(2 * time.Hour)
				w.wantComment(1, "plan of "+commit(3))
				w.wantStatus(commit(3), contextValidate, "success: valid")
				w.wantStatus(commit(3), contextPlan, "success: 1 device changes")
			})
		}
	}
}
