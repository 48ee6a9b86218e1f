package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// announcedWorld is a running daemon that polls once a day, and a remote that
// may lag behind the repository.
type announcedWorld struct {
	*world
	d      *Daemon
	logs   *safeBuffer
	passes atomic.Int64
	broken atomic.Bool // every call to the repository fails
	slow   atomic.Bool // listing the refs takes a minute
	lag    *lagging
}

// lagging is a remote of which the branches stand still while it is told so.
type lagging struct {
	*memRemote
	mu     sync.Mutex
	frozen map[string]string // ref → commit
}

func (l *lagging) Refs(ctx context.Context, prefixes ...string) (map[string]string, error) {
	refs, err := l.memRemote.Refs(ctx, prefixes...)
	l.mu.Lock()
	defer l.mu.Unlock()
	for ref, commit := range l.frozen {
		if commit == "" {
			delete(refs, ref)
		} else if err == nil {
			refs[ref] = commit
		}
	}
	return refs, err
}

func (l *lagging) show(branch, commit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen[branchRef(branch)] = commit
}

func withAnnouncements(t *testing.T, test func(t *testing.T, a *announcedWorld)) {
	withFakeTime(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.state = ""
		a := &announcedWorld{world: w, logs: &safeBuffer{}}
		a.lag = &lagging{memRemote: w.remote(), frozen: map[string]string{}}
		a.lag.onCall = func(n int, op string) {
			if op == "refs" {
				a.passes.Add(1)
				if a.slow.Load() {
					time.Sleep(time.Minute)
				}
			}
			a.lag.failAt = 0
			if a.broken.Load() {
				a.lag.failAt = n
			}
		}
		a.lag.show("main", w.repo.refs["refs/heads/main"])
		a.d = w.daemon(func(c *Config) {
			c.Remote, c.Interval = a.lag, 24*time.Hour
			c.Logger = slog.New(slog.NewTextHandler(a.logs, nil))
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.d.Run(ctx) }()
		defer func() { // also where the test ends early
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run ended with %v", err)
			}
		}()
		a.looks(0)
		test(t, a)
	})
}

// looks lets time pass and gives how often the daemon looked since the last
// time that it was asked.
func (a *announcedWorld) looks(d time.Duration) int64 {
	time.Sleep(d)
	synctest.Wait()
	return a.passes.Swap(0)
}

// swept is the source commit of fleet.yaml.
func (a *announcedWorld) swept() string { return a.status().swept() }

// Whatever the sender says that the branch was at, what the daemon saw last is
// old.
func TestB24_AnnouncedBeforeItIsServed(t *testing.T) {
	for name, before := range map[string]func(old string) string{
		"before as it was": func(old string) string { return old },
		"before not known": func(string) string { return "" },
		"before not seen":  func(string) string { return strings.Repeat("cd", 20) },
	} {
		t.Run(name, func(t *testing.T) {
			withAnnouncements(t, func(t *testing.T, a *announcedWorld) {
				x := a.change("an hour before it is polled for", "targetVersion", "v1.1.0")
				a.d.Announce(Announcement{Branch: "main", Before: before(a.lag.frozen["refs/heads/main"]), Commit: x})
				if n := a.looks(500 * time.Millisecond); n != 1 {
					t.Fatalf("an announcement brought %d sweeps at once", n)
				}
				if n := a.looks(1500 * time.Millisecond); n != 1 {
					t.Fatalf("it was looked for %d times in two seconds", n)
				}
				a.lag.show("main", x)
				if a.looks(3 * time.Second); a.swept() != x {
					t.Fatalf("swept %s, want the announced %s", a.swept(), x)
				}
				if n := a.looks(time.Hour); n != 0 {
					t.Errorf("it went on to look %d times", n)
				}
				if said := a.logs.take(); strings.Contains(said, "announced") {
					t.Errorf("it said:\n%s", said)
				}
			})
		})
	}
}

func TestB24_GivesUpOnWhatNeverComes(t *testing.T) {
	withAnnouncements(t, func(t *testing.T, a *announcedWorld) {
		old := a.lag.frozen["refs/heads/main"]
		never := strings.Repeat("ab", 20)
		a.d.Announce(Announcement{Branch: "main", Before: old, Commit: never})
		if n := a.looks(10 * time.Minute); n != 1+maxLooks {
			t.Errorf("it looked %d times, want %d", n, 1+maxLooks)
		}
		said := a.logs.take()
		if strings.Count(said, "was announced and is not there") != 1 || !strings.Contains(said, short(never)) {
			t.Errorf("that it gave up is not said once:\n%s", said)
		}
		if n := a.looks(time.Hour); n != 0 {
			t.Errorf("it went on to look %d times", n)
		}
		a.d.Announce(Announcement{})
		if n := a.looks(time.Hour); n != 1 {
			t.Errorf("a later request for a sweep brought %d", n)
		}
	})
}

func TestB24_AnOutageIsNotCounted(t *testing.T) {
	withAnnouncements(t, func(t *testing.T, a *announcedWorld) {
		old := a.lag.frozen["refs/heads/main"]
		x := a.change("in an outage", "targetVersion", "v1.1.0")
		a.broken.Store(true)
		a.d.Announce(Announcement{Branch: "main", Before: old, Commit: x})
		a.looks(time.Hour)
		a.broken.Store(false)
		for !strings.Contains(a.logs.take(), "works again") {
			a.looks(time.Second)
		}
		a.lag.show("main", x)
		if a.looks(time.Minute); a.swept() != x {
			t.Errorf("swept %s, want %s that was announced in the outage", a.swept(), x)
		}
	})
}

// What counts as news: the commit, another one that nobody called old, and one
// that already contains it.
func TestB24_WhatEndsTheLooking(t *testing.T) {
	first := func(a *announcedWorld) string { return a.lag.frozen["refs/heads/main"] }
	for name, c := range map[string]struct {
		do    func(a *announcedWorld)
		looks int64
	}{
		"seen before it was announced": {looks: 1, do: func(a *announcedWorld) {
			old, x := first(a), a.push("x", nil)
			a.lag.show("main", x)
			a.d.Announce(Announcement{})
			a.looks(0)
			a.d.Announce(Announcement{Branch: "main", Before: old, Commit: x})
		}},
		"a later one was seen before it was announced": {looks: 1, do: func(a *announcedWorld) {
			old, x := first(a), a.push("x", nil)
			a.lag.show("main", a.push("y", nil))
			a.d.Announce(Announcement{})
			a.looks(0)
			a.d.Announce(Announcement{Branch: "main", Before: old, Commit: x})
		}},
		"pushed elsewhere meanwhile": {looks: 1, do: func(a *announcedWorld) {
			old := first(a)
			a.lag.show("main", a.push("z", nil))
			a.d.Announce(Announcement{Branch: "main", Before: old, Commit: strings.Repeat("cd", 20)})
		}},
		"the branch is gone": {looks: 1, do: func(a *announcedWorld) {
			a.lag.show("main", "")
			a.d.Announce(Announcement{Branch: "main", Before: first(a)})
		}},
		"a branch that is not swept": {looks: 1, do: func(a *announcedWorld) {
			a.d.Announce(Announcement{Branch: "other", Commit: strings.Repeat("cd", 20)})
		}},
		"the brake there and back": {looks: 1, do: func(a *announcedWorld) {
			on := a.repo.push(schema.BrakeBranch, "on", a.now, map[string]string{brakeFile: brakeAll})
			a.d.Announce(Announcement{})
			a.looks(0)
			off := strings.Repeat("cd", 20)
			a.d.Announce(Announcement{Branch: schema.BrakeBranch, Before: on, Commit: off})
			a.d.Announce(Announcement{Branch: schema.BrakeBranch, Before: off, Commit: on})
		}},
		"there and back": {looks: 1, do: func(a *announcedWorld) {
			old, x := first(a), a.push("x", nil)
			a.d.Announce(Announcement{Branch: "main", Before: old, Commit: x})
			a.d.Announce(Announcement{Branch: "main", Before: x, Commit: old})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			withAnnouncements(t, func(t *testing.T, a *announcedWorld) {
				c.do(a)
				if n := a.looks(time.Hour); n < 1 || n > c.looks+1 { // a branch that is gone is asked for twice in one pass
					t.Errorf("it looked %d times", n)
				}
				if said := a.logs.take(); strings.Contains(said, "was announced") {
					t.Errorf("it said:\n%s", said)
				}
			})
		})
	}
}

// Of several pushes that a mirror shows late, none but the last ends it.
func TestB24_SeveralPushesShownLate(t *testing.T) {
	withAnnouncements(t, func(t *testing.T, a *announcedWorld) {
		at := a.lag.frozen["refs/heads/main"]
		var pushed []string
		for i := range 3 {
			x := a.push(fmt.Sprint("push ", i), map[string]string{"notes": fmt.Sprintln(i)})
			a.d.Announce(Announcement{Branch: "main", Before: at, Commit: x})
			at, pushed = x, append(pushed, x)
		}
		for _, x := range pushed {
			a.lag.show("main", x)
			if a.looks(31 * time.Second); a.swept() != x {
				t.Fatalf("swept %s, want %s", a.swept(), x)
			}
		}
		if n := a.looks(time.Hour); n != 0 {
			t.Errorf("it went on to look %d times", n)
		}
	})
}

const brakeAll = "apiVersion: gitopsd.dev/v1alpha1\nkind: Brake\nmetadata: {name: brake}\nspec:\n  all: {reason: smoke}\n"

func TestB24_TheBrakeIsLookedForToo(t *testing.T) {
	withAnnouncements(t, func(t *testing.T, a *announcedWorld) {
		a.lag.show(schema.BrakeBranch, "")
		x := a.repo.push(schema.BrakeBranch, "stop", a.now, map[string]string{brakeFile: brakeAll})
		a.d.Announce(Announcement{Branch: schema.BrakeBranch, Commit: x})
		a.looks(2 * time.Second)
		a.lag.show(schema.BrakeBranch, x)
		a.looks(5 * time.Second)
		for _, c := range a.status().Fleet.Conditions {
			if c.Type == conditionBrake {
				return
			}
		}
		t.Errorf("the brake is not on: %+v", a.status().Fleet.Conditions)
	})
}

// While a pass takes long, everything that is asked for meanwhile is one more.
func TestB113_RequestsAreOnePass(t *testing.T) {
	withAnnouncements(t, func(t *testing.T, a *announcedWorld) {
		a.slow.Store(true)
		a.d.Announce(Announcement{})
		time.Sleep(time.Second)
		for range 50 {
			a.d.Announce(Announcement{})
		}
		if n := a.looks(time.Hour); n != 2 {
			t.Errorf("51 requests brought %d sweeps, want the one that was going on and one more", n)
		}
	})
}
