package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// snoozeFile outlives a reboot, as a hold does.
const snoozeFile = stateDir + "/snooze.json"

// MaxSnooze bounds a snooze: whoever wants longer holds the device, which
// shows that somebody has to end it.
const MaxSnooze = 7 * 24 * time.Hour

// Snooze is a time in which no update begins, as people at the device asked
// for. It ends by itself.
type Snooze struct {
	Reason string        `json:"reason"`
	At     time.Time     `json:"at"`   // by the wall clock
	From   instant       `json:"from"` // the same by the time since boot
	For    time.Duration `json:"for"`  // in nanoseconds
}

// Until is when it ends by the wall clock that began it.
func (s *Snooze) Until() time.Time { return s.At.Add(s.For) }

// text is the reason why the device waits.
func (s *Snooze) text() string {
	text := "snoozed until " + s.Until().UTC().Format("2006-01-02T15:04Z")
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return oneLine(text)
}

// left is how long it still goes on. In the boot that began it the time since
// boot counts, afterwards the wall clock; where that was put back, the time of
// this boot, so that no clock makes it last for ever.
func (s *Snooze) left(c clock) time.Duration {
	passed := c.now().Sub(s.At)
	switch {
	case s.From.Boot == c.boot && s.From.Up <= c.up():
		passed = c.since(s.From)
	case passed < 0:
		passed = c.up()
	}
	return max(s.For-passed, 0)
}

func (s *Snooze) valid() bool {
	return s.For > 0 && s.For <= MaxSnooze && s.At.Year() >= sanestYear && s.At.Year() < 10000
}

// readSnooze gives the snooze that goes on, nil where there is none. One that
// cannot be read is none: nobody could say when it would end.
func readSnooze(root *disk.Root, c clock) (*Snooze, error) {
	if _, err := root.Lstat(snoozeFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	b, err := root.ReadFile(snoozeFile, noteLimit)
	if err != nil {
		return nil, fmt.Errorf("read the snooze: %w", err)
	}
	var s Snooze
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read the snooze %s: %w", snoozeFile, err)
	}
	if !s.valid() {
		return nil, fmt.Errorf("read the snooze %s: it is not one", snoozeFile)
	}
	if s.left(c) == 0 {
		return nil, nil
	}
	return &s, nil
}

// snoozed is the snooze that goes on. What is over is removed.
func (a *Agent) snoozed() *Snooze {
	s, err := readSnooze(a.root, a.clock)
	if err != nil {
		if a.noSnooze.tell(err.Error(), a.up()) {
			a.log.Warn("the snooze is not obeyed", "error", err)
		}
		return nil
	}
	a.noSnooze.over(a.up())
	if s == nil {
		if _, err := a.root.Lstat(snoozeFile); err == nil {
			if err := a.root.Remove(snoozeFile); err == nil {
				a.log.Info("the snooze is over")
			}
		}
	}
	return s
}
