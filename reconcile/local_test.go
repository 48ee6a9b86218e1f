package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// A snooze ends, whatever becomes of the clock.
func TestSnoozeEnds(t *testing.T) {
	begun := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	s := Snooze{At: begun, From: instant{Boot: "one", Up: time.Hour}, For: 2 * time.Hour}
	for _, c := range []struct {
		name string
		boot string
		up   time.Duration
		now  time.Time
		want time.Duration
	}{
		{"the same boot", "one", 90 * time.Minute, begun.Add(30 * time.Minute), 90 * time.Minute},
		{"the clock was set to next year", "one", 90 * time.Minute, begun.AddDate(1, 0, 0), 90 * time.Minute},
		{"the clock was put back", "one", 4 * time.Hour, begun.AddDate(-1, 0, 0), 0},
		{"another boot", "two", time.Minute, begun.Add(30 * time.Minute), 90 * time.Minute},
		{"another boot, long after", "two", time.Minute, begun.Add(30 * time.Hour), 0},
		{"another boot without a clock", "two", 30 * time.Minute, time.Unix(0, 0), 90 * time.Minute},
		{"and when that has run long enough", "two", 3 * time.Hour, time.Unix(0, 0), 0},
	} {
		at := clock{now: func() time.Time { return c.now }, up: func() time.Duration { return c.up }, boot: c.boot}
		if got := s.left(at); got != c.want {
			t.Errorf("%s: %s are left, want %s", c.name, got, c.want)
		}
	}
}

func TestSnoozedDeviceBeginsNothing(t *testing.T) {
	d := onV1(t)
	n, err := d.agentClosed().Notes()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, length := range []time.Duration{0, -time.Hour, MaxSnooze + 1} {
		if _, err := n.Snooze(length, "x"); err == nil {
			t.Errorf("a snooze of %s is one", length)
		}
	}
	if _, err := n.Snooze(time.Hour, "measuring\x1b[31m\nand more"); err != nil {
		t.Fatal(err)
	}
	d.assign(2, "v1.1.0", v2(nil))
	d.write("/etc/edge/edge.conf", "by hand\n")
	d.wantOnce(0, "deferred", "busy: snoozed until 2026-11-29T13:00Z: measuring")
	if r := d.control.last(); !r.Busy || strings.ContainsAny(r.BusyReason, "\x1b\n") {
		t.Errorf("reported busy %t: %q", r.Busy, r.BusyReason)
	}
	if got := d.content("/etc/edge/edge.conf"); got != "by hand\n" {
		t.Errorf("the file was repaired: %q", got)
	}
	d.clock = d.clock.Add(time.Hour + time.Second)
	d.wantOnce(0, "updated from v1.0.0 to v1.1.0")
	if d.content(snoozeFile) != "" {
		t.Error("a snooze that is over stays on disk")
	}
}

// What cannot be read as a snooze has no end, so it is none.
func TestBrokenSnoozeIsNone(t *testing.T) {
	for _, text := range []string{
		"", "{", "null", `{"for": 9000000000000000000, "at": "2026-11-29T12:00:00Z"}`, `{"for": 3600000000000, "at": "0001-01-01T00:00:00Z"}`,
		strings.Repeat("[", noteLimit-1), strings.Repeat("x", 2*noteLimit),
	} {
		d := onV1(t)
		d.write(snoozeFile, text)
		d.assign(2, "v1.1.0", v2(nil))
		if res := d.once(); !strings.Contains(res.Summary, "updated from v1.0.0 to v1.1.0") {
			t.Errorf("with %.40q: %s", text, res.Summary)
		}
	}
}

// agentClosed is an agent of which only the configuration is asked.
func (d *device) agentClosed() *Agent {
	d.t.Helper()
	a := d.agent()
	a.Close()
	return a
}

// A view says what a running agent would, and leaves the disk as it is.
func TestViewReadsAndLeaves(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(hook("beforeUpdating", "/bin/false")))
	d.wantOnce(1, "refused")
	d.write(holdFile, "mine\n")
	d.assign(3, "v1.2.0", v2(tree{"os": tree{"image": "x"}}))
	d.wantOnce(0, "deferred")
	d.write("/etc/edge/only-1", "by hand\n")
	before := d.everything()

	v, err := OpenView(d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	s := v.Standing()
	if s.Report.Current.Version != "v1.0.0" || s.Report.Desired == nil || s.Report.Desired.Version != "v1.2.0" ||
		s.Last == nil || s.Last.Attempt != 2 || s.Waits != "held on the device: mine" || len(s.Trouble) != 0 {
		t.Errorf("standing %+v", s)
	}
	c, err := v.Compare(t.Context(), false, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range c.Changes {
		got = append(got, strings.TrimSpace(one.Do+" "+one.Field+" "+one.Name+" "+one.Detail))
	}
	want := "cannot os x os x: this agent has no os driver configured|change files /etc/edge/edge.conf|remove files /etc/edge/only-1|create files /etc/edge/only-2 mode 0644|create files /opt/new/deep/file mode 0644"
	if strings.Join(got, "|") != want {
		t.Errorf("changes\n%s\nwant\n%s", strings.Join(got, "|"), want)
	}
	c, err = v.Compare(t.Context(), true, false)
	if err != nil || len(c.Changes) != 1 || *c.Changes[0].From != "by hand\n" || *c.Changes[0].To != "one\n" {
		t.Errorf("drift %+v, %v", c, err)
	}
	if after := d.everything(); after != before {
		t.Errorf("looking changed\n%s\nto\n%s", before, after)
	}
}

func TestViewOfWhatCannotBeRead(t *testing.T) {
	d := newDevice(t)
	if _, err := OpenView(d.cfg); !errors.Is(err, ErrNoState) {
		t.Errorf("an empty root: %v", err)
	}
	d = onV1(t)
	for _, p := range []string{attemptsFile, currentFile} {
		d.write(p, "{damaged")
	}
	before := d.everything()
	v, err := OpenView(d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if s := v.Standing(); len(s.Trouble) != 2 {
		t.Errorf("trouble %q", s.Trouble)
	}
	if _, err := v.Compare(t.Context(), false, false); err == nil {
		t.Error("a damaged spec compares")
	}
	if after := d.everything(); after != before {
		t.Errorf("looking changed\n%s\nto\n%s", before, after)
	}
}

// Contents that not everybody may read are shown to who asks for them only.
func TestCompareShowsNoSecrets(t *testing.T) {
	d := onV1(t)
	d.write(holdFile, "mine\n")
	d.assign(2, "v1.1.0", tree{"files": tree{
		"/etc/edge/edge.conf": tree{"content": "psk\n", "mode": "0600"},
		"/etc/edge/large":     tree{"content": strings.Repeat("x", largestText+1)},
		"/etc/edge/binary":    tree{"content": "\x00"},
		"/proc/x":             tree{"content": "y"},
	}})
	d.wantOnce(0, "deferred")
	v, err := OpenView(d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, secrets := range []bool{false, true} {
		c, err := v.Compare(t.Context(), false, secrets)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, one := range c.Changes {
			got[one.Name] = one.Do + ": " + one.Hidden
			if one.To != nil {
				got[one.Name] += *one.To
			}
		}
		want := map[string]string{
			"/etc/edge/edge.conf": "change: not everybody may read it", "/etc/edge/large": "create: it is large",
			"/etc/edge/binary": "create: it is no text", "/proc/x": "cannot: ",
		}
		if secrets {
			want["/etc/edge/edge.conf"] = "change: psk\n"
		}
		for name, w := range want {
			if got[name] != w {
				t.Errorf("secrets %t: %s is %q, want %q", secrets, name, got[name], w)
			}
		}
	}
}

// Who has mended the configuration and asks at once is told of it at once.
func TestStandingHasTheWarningsOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		var mended atomic.Bool
		d.cfg.Warnings = func() []string {
			if mended.Load() {
				return nil
			}
			return []string{"agent.yaml is bad"}
		}
		r := d.start()
		synctest.Wait()
		if got := r.agent.Standing().Report.Warnings; len(got) != 1 {
			t.Errorf("before: %q", got)
		}
		mended.Store(true)
		if got := r.agent.Standing().Report.Warnings; len(got) > 0 {
			t.Errorf("mended: %q", got)
		}
		r.end(t)
	})
}

func TestPollNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		r := d.start()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		d.assign(1, "v1.0.0", v1)
		var got Fetched
		ran, err := r.agent.PollNow(t.Context(), func(f Fetched) error { got = f; return nil })
		if err != nil || ran.Exit != 0 || ran.Summary != "updated from v0.0.0 to v1.0.0" {
			t.Errorf("ran %+v, %v", ran, err)
		}
		if got.From != "" || got.To == "" || got.Assigned != "v1.0.0" || got.Current != "v0.0.0" {
			t.Errorf("fetched %+v", got)
		}
		if s := r.agent.Standing(); s.Contact == nil || !s.Contact.Answers || s.Report.Current.Version != "v1.0.0" || s.NextPoll == nil {
			t.Errorf("standing %+v", s)
		}

		d.control.mu.Lock()
		d.control.lookErr = errors.New("no route")
		d.control.mu.Unlock()
		began := time.Now()
		if _, err := r.agent.PollNow(t.Context(), func(Fetched) error { return nil }); err == nil || !strings.Contains(err.Error(), "no route") {
			t.Errorf("a poll without an answer: %v", err)
		}
		if s := r.agent.Standing(); s.Contact.Answers || s.Contact.Error != "no route" || time.Since(began) > time.Second {
			t.Errorf("standing %+v after %s", s.Contact, time.Since(began))
		}

		d.control.mu.Lock()
		d.control.lookErr = nil
		d.control.onReport = func(*schema.Report) error { return errors.New("read-only") }
		d.control.mu.Unlock()
		d.assign(2, "v1.1.0", v2(nil))
		if ran, err := r.agent.PollNow(t.Context(), func(Fetched) error { return nil }); err != nil || ran.Exit == 0 {
			t.Errorf("without an announcement: %+v, %v", ran, err)
		}
		if s := r.agent.Standing(); s.Unannounced != "the announcement was not accepted" || s.Report.Begun {
			t.Errorf("standing %+v", s)
		}

		// what failed and is not tried again is no success for who waits
		d.control.mu.Lock()
		d.control.onReport = nil
		d.control.mu.Unlock()
		d.assign(3, "v1.2.0", tree{"fils": tree{}})
		for _, want := range []Ran{{Exit: 1}, {GaveUp: true}} {
			ran, err := r.agent.PollNow(t.Context(), func(Fetched) error { return nil })
			if err != nil || ran.Exit != want.Exit || ran.GaveUp != want.GaveUp || !strings.Contains(ran.Summary, "refused: ") {
				t.Errorf("ran %+v, %v; want %+v", ran, err, want)
			}
		}

		// who asks when the agent ends, or after, is let go
		r.end(t)
		if _, err := r.agent.PollNow(t.Context(), func(Fetched) error { return nil }); !errors.Is(err, ErrEnded) {
			t.Errorf("a poll of an ended agent: %v", err)
		}
	})
}

// Who asks while an update goes on waits for that one, however it ends.
func TestAskedWhileAnUpdateGoesOn(t *testing.T) {
	idle := Result{Summary: "on v1.0.0; v1.1.0 was failed: no route", idle: true, gaveUp: true}
	for _, c := range []struct {
		update, next Result
		want         Ran
	}{
		{Result{Exit: 1, Summary: "failed: no route"}, idle, Ran{Exit: 1, Summary: "failed: no route"}},
		{Result{Summary: "updated from v1.0.0 to v1.1.0"}, Result{Summary: "nothing to do: on v1.1.0", idle: true}, Ran{Summary: "updated from v1.0.0 to v1.1.0"}},
		{Result{Exit: 1, Summary: "failed: no route"}, Result{Summary: "updated from v1.0.0 to v1.2.0"}, Ran{Summary: "updated from v1.0.0 to v1.2.0"}},
		{Result{}, idle, Ran{Summary: idle.Summary, GaveUp: true, Idle: true}}, // a pass that only looked
		{Result{Summary: "nothing to do: on v1.0.0", idle: true}, idle, Ran{Summary: idle.Summary, GaveUp: true, Idle: true}},
	} {
		var q asks
		q.take()
		w := &asker{fetched: make(chan polled, 1), ran: make(chan Ran, 1)}
		if err := q.add(w); err != nil {
			t.Fatal(err)
		}
		q.done(c.update)
		q.take()
		q.looked(Fetched{}, nil)
		q.done(c.next)
		if got := <-w.ran; got != c.want {
			t.Errorf("an update that ended with %+v: %+v, want %+v", c.update, got, c.want)
		}
	}
}

func TestManyAskForAPoll(t *testing.T) {
	var q asks
	for range maxWaiting {
		if err := q.add(&asker{fetched: make(chan polled, 1), ran: make(chan Ran, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.add(&asker{}); !errors.Is(err, ErrAskedOften) {
		t.Errorf("one more: %v", err)
	}
	q.take()
	late := &asker{fetched: make(chan polled, 1), ran: make(chan Ran, 1)}
	if err := q.add(late); err != nil {
		t.Errorf("for the next pass: %v", err)
	}
	first := q.now[0]
	q.done(Result{Summary: "state cannot be kept"})
	if p := <-first.fetched; p.err == nil || !strings.Contains(p.err.Error(), "state cannot be kept") {
		t.Errorf("a pass that polled nothing says %v", p.err)
	}
	q.done(Result{Summary: "the agent goes on as v2", HandOver: true})
	if _, ok := <-late.fetched; ok {
		t.Error("an agent that made way before it asked says what it fetched")
	}
	if r, err := late.result(); err != nil || !r.HandOver {
		t.Errorf("who waits is not told that another one takes over: %+v, %v", r, err)
	}
	q.end()
}

// everything is the content of every file below the root, the state included.
func (d *device) everything() string {
	d.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(d.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s", p, info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return b.String()
}

// What a person changes under a hold is put back when the hold ends, and not
// with the next full comparison minutes later.
func TestRepairFollowsTheEndOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		d.assign(1, "v1.0.0", v1)
		d.wantOnce(0, "updated")
		d.write(holdFile, "mine\n")
		r := d.start()
		time.Sleep(time.Second)
		synctest.Wait()
		d.write("/etc/edge/edge.conf", "by hand\n")
		time.Sleep(2 * driftEvery)
		synctest.Wait()
		if got := d.content("/etc/edge/edge.conf"); got != "by hand\n" {
			t.Errorf("under a hold the file became %q", got)
		}
		d.remove(holdFile)
		r.agent.LookAround()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := d.content("/etc/edge/edge.conf"); got != "version=1\n" {
			t.Errorf("after it the file is %q", got)
		}
		r.end(t)
	})
}
