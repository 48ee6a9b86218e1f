package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// logbook is a log that can be read.
type logbook struct {
	mu    sync.Mutex
	lines []string
	count map[string]int // by their words, but what is only for debugging
	worst slog.Level
}

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logbook) WithGroup(string) slog.Handler            { return l }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Time.UTC().Format(time.TimeOnly) + " " + r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	if r.Level >= slog.LevelInfo {
		l.lines = append(l.lines, line)
	}
	l.worst = max(l.worst, r.Level)
	if r.Level >= slog.LevelInfo {
		if l.count == nil {
			l.count = map[string]int{}
		}
		l.count[r.Message]++
	}
	return nil
}

// take gives what was logged since it was taken last.
func (l *logbook) take() (lines string, count map[string]int, worst slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, count, worst = strings.Join(l.lines, "\n"), l.count, l.worst
	l.lines, l.count, l.worst = nil, nil, slog.LevelDebug
	return lines, count, worst
}

// misfortune is something that goes wrong for hours.
type misfortune struct {
	name   string
	disk   func(op, p string) error
	reads  func(op, p string) error
	looks  error
	report error
	clock  time.Time // that the wall clock shows, standing still
	update tree      // assigned when it begins; nil = none
	before func(d *device)
	over   string // words of the log when it is over; "" = none are needed
	anew   bool   // the device is another installation then, and warns of that
}

func misfortunes() []misfortune {
	all := func(err error) func(op, p string) error { return func(string, string) error { return err } }
	full := func(op, _ string) error {
		if op == "create" || op == "mkdir" {
			return syscall.ENOSPC
		}
		return nil
	}
	of := func(op, p string, err error) func(string, string) error {
		return func(o, q string) error {
			if o == op && q == p {
				return err
			}
			return nil
		}
	}
	no := errors.New("no route to host")
	back := false // a rollback has begun
	cut := v2(tree{"confirm": tree{"within": "10s", "reach": []any{"http://127.0.0.1:1/"}}})
	more := func(d *device) { d.write("/etc/edge/edge.conf", "by hand\n") }
	return []misfortune{
		{name: "control away", looks: no, over: "control answers again"},
		{name: "no clock", clock: time.Unix(99, 0), over: "control answers again"},
		{name: "reports refused", report: no, update: v2(nil)},
		{name: "no space, with an update", disk: full, update: v2(nil), over: "state can be kept again"},
		{name: "no space, with drift", disk: full, before: more, over: "as its spec says again"},
		{name: "read-only, with an update", disk: all(syscall.EROFS), update: v2(nil), over: "state can be kept again"},
		{name: "read-only, with drift", disk: all(syscall.EROFS), before: more, over: "as its spec says again"},
		{name: "errors, with an update", disk: all(syscall.EIO), reads: all(syscall.EIO), update: v2(nil), over: "state can be kept again"},
		{name: "errors", disk: all(syscall.EIO), reads: all(syscall.EIO), over: "state can be kept again"},
		{name: "state lost on a full disk", disk: full, before: func(d *device) { d.remove(attemptsFile) }, over: "state can be kept again", anew: true},
		{name: "state damaged on a read-only disk", disk: all(syscall.EROFS), before: func(d *device) { d.remove(attemptsFile); d.write(currentFile, "{") }, over: "state can be kept again", anew: true},
		{name: "a rollback that cannot be recorded", disk: of("remove", pendingFile, syscall.EIO), update: cut, over: "rolled back"},
		{name: "a rollback that cannot end", disk: of("remove", "/etc/edge/only-2", syscall.EIO), update: cut, over: "rolled back"},
		{name: "a rollback whose state cannot be looked at", update: cut, over: "rolled back",
			disk: func(op, p string) error {
				back = back || (op == "remove" && p == "/etc/edge/only-2")
				return of("remove", "/etc/edge/only-2", syscall.EIO)(op, p)
			}, reads: func(op, p string) error {
				if !back {
					return nil
				}
				return of("lstat", attemptsFile, syscall.EIO)(op, p)
			}},
	}
}

// What goes wrong for hours is told when it begins, about once an hour, and
// when it is over, and it does not keep the device busy.
func TestWhatGoesOnForHours(t *testing.T) {
	for _, m := range misfortunes() {
		t.Run(m.name, func(t *testing.T) { synctest.Test(t, m.befall) })
	}
}

const hours = 3

func (m misfortune) befall(t *testing.T) {
	d, w := jumpingDevice(t)
	d.cfg.OS = nil
	book := &logbook{}
	d.cfg.Logger = slog.New(book)
	var on atomic.Bool
	var steps atomic.Int64
	step := func(fault func(op, p string) error) func(op, p string) error {
		return func(op, p string) error {
			if !on.Load() {
				return nil
			}
			if steps.Add(1) > 100_000 {
				panic("it runs in circles")
			}
			if fault == nil {
				return nil
			}
			return fault(op, p)
		}
	}
	d.cfg.Step, d.cfg.ReadStep = step(m.disk), step(m.reads)
	d.control.onReport = func(*schema.Report) error {
		if on.Load() {
			return m.report
		}
		return nil
	}
	d.control.dead = func() bool { return false }
	r := d.start()
	time.Sleep(90 * time.Second)
	synctest.Wait()
	book.take()
	on.Store(true)
	if m.before != nil {
		m.before(d)
	}
	if m.update != nil {
		d.assign(2, "v1.1.0", m.update)
	}
	d.control.mu.Lock()
	d.control.lookErr = m.looks
	d.control.mu.Unlock()
	for range hours * 60 {
		if !m.clock.IsZero() {
			w.set(m.clock)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
	}
	lines, count, worst := book.take()
	for _, what := range slices.Sorted(maps.Keys(count)) {
		if n := count[what]; n > hours+2 {
			t.Errorf("%d times in %d hours: %s", n, hours, what)
		}
	}
	if worst < slog.LevelWarn {
		t.Error("nothing was told of it")
	}
	if t.Failed() {
		t.Log(lines)
	}
	on.Store(false)
	d.control.mu.Lock()
	d.control.lookErr = nil
	d.control.mu.Unlock()
	w.set(time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC))
	time.Sleep(lastRollbackWait + 5*time.Minute)
	synctest.Wait()
	lines, _, worst = book.take()
	if !strings.Contains(lines, m.over) || worst > slog.LevelInfo && !m.anew {
		t.Errorf("when it is over %q is wanted, and no warning:\n%s", m.over, lines)
	}
	r.end(t)
}
