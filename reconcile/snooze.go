package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
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
	text := "snoozed until " + s.Until().UTC().Format("2006-01-02 15:04 MST")
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

// noteTries is how often a note is written: the agent sweeps what looks like
// the leftover of a crash out of its state, perhaps just then.
const noteTries = 5

// Notes writes what people at the device tell its agent, whether that runs or
// not, and whatever it is doing.
type Notes struct {
	root *disk.Root
	clock
}

// OpenNotes opens those below a root; "" is "/".
func OpenNotes(dir string) (*Notes, error) {
	c := Config{Root: dir}
	c.setDefaults()
	root, err := disk.Open(c.Root, disk.Options{})
	if err != nil {
		return nil, err
	}
	return &Notes{root: root, clock: clock{now: c.Now, up: c.Uptime, boot: kernelBoot()}}, nil
}

// Notes opens those of the agent's own root.
func (a *Agent) Notes() (*Notes, error) {
	n, err := OpenNotes(a.cfg.Root)
	if err != nil {
		return nil, err
	}
	n.clock = a.clock
	return n, nil
}

// Close releases the root.
func (n *Notes) Close() error { return n.root.Close() }

// Hold keeps the device as it is until [Notes.Unhold]: no update begins and
// nothing is repaired.
func (n *Notes) Hold(reason string) error {
	return n.write(holdFile, []byte(strings.TrimSpace(reason)+"\n"))
}

// Held is the reason of the hold, nil where there is none.
func (n *Notes) Held() (reason *string, err error) {
	if _, err := n.root.Lstat(holdFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	b, err := n.root.ReadFile(holdFile, noteLimit)
	if err != nil {
		return nil, fmt.Errorf("read the hold: %w", err)
	}
	text := oneLine(string(b))
	return &text, nil
}

// Unhold ends the hold of the device itself; was says that there was one.
func (n *Notes) Unhold() (was bool, err error) { return n.remove(holdFile) }

// Snooze has no update begin for a time; one that goes on is replaced.
func (n *Notes) Snooze(d time.Duration, reason string) (*Snooze, error) {
	if d <= 0 || d > MaxSnooze {
		return nil, fmt.Errorf("a snooze of %s is not between nothing and %s", d, MaxSnooze)
	}
	if !n.clockSet() {
		return nil, fmt.Errorf("%w (it says %s), so a snooze could not end in time", errNoClock, n.now().UTC().Format(time.RFC3339))
	}
	s := &Snooze{Reason: oneLine(reason), At: n.now().UTC().Truncate(time.Second), From: n.instant(), For: d}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the snooze: %w", err)
	}
	return s, n.write(snoozeFile, append(b, '\n'))
}

// Wake ends a snooze; was says that there was one.
func (n *Notes) Wake() (was bool, err error) { return n.remove(snoozeFile) }

func (n *Notes) write(p string, data []byte) error {
	var err error
	for range noteTries {
		if _, err = n.root.MkdirAll(stateDir, privDir); err != nil {
			break
		}
		if err = n.root.WriteFile(p, data, secret); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}

func (n *Notes) remove(p string) (was bool, err error) {
	err = n.root.Remove(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove %s: %w", p, err)
	}
	return true, nil
}
