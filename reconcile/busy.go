package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// busyFile is below the root; /run is empty after a boot, as running work is.
const busyFile = "/run/gitopsd/busy"

const (
	noteLimit      = 4 << 10 // bytes read of the busy and hold files
	reasonLimit    = 300     // of a reason in a report, in characters: with what happened and what a program said of it
	busyCheckLimit = 10      // seconds; no answer means busy
)

// lookAround asks whether the device is busy or held now, and remembers it
// for reports.
func (a *Agent) lookAround(ctx context.Context) {
	a.live.busy = a.busyNow(ctx)
	a.live.hold = a.holdNow()
}

// waits is why nothing may begin and no drift be repaired now; "" = nothing.
func (a *Agent) waits() string {
	switch {
	case a.live.hold != nil:
		return "held on the device: " + a.live.hold.Reason
	case a.store.attempts.Hold != nil:
		return "held: " + a.store.attempts.Hold.Reason
	case a.live.busy != "":
		return "busy: " + a.live.busy
	}
	return ""
}

func (a *Agent) busyNow(ctx context.Context) string {
	if why := a.notedBusy(); why != "" || len(a.cfg.BusyCheck) == 0 {
		return why
	}
	if _, err := hooks.Command(ctx, a.cfg.BusyCheck, a.root.Dir(), a.commandEnv(), busyCheckLimit); err != nil {
		return oneLine("the busy check says so: " + err.Error())
	}
	return ""
}

// notedBusy is why the device is busy as far as that is written down.
func (a *Agent) notedBusy() string {
	if there, reason := a.note(busyFile); there {
		return reason
	}
	if s := a.snoozed(); s != nil {
		return s.text()
	}
	return ""
}

func (a *Agent) holdNow() *schema.Reason {
	there, reason := a.note(holdFile)
	if !there {
		return nil
	}
	return &schema.Reason{Reason: reason}
}

// note reads a file whose being there is the message. One that cannot be
// looked at counts as there.
func (a *Agent) note(p string) (there bool, reason string) {
	if _, err := a.root.Lstat(p); errors.Is(err, fs.ErrNotExist) {
		return false, ""
	} else if err != nil {
		return true, oneLine(fmt.Sprintf("%s cannot be looked at: %v", p, err))
	}
	b, err := a.root.ReadFile(p, noteLimit)
	if err != nil || strings.TrimSpace(string(b)) == "" {
		return true, p + " exists"
	}
	return true, oneLine(string(b))
}

func (a *Agent) commandEnv() []string {
	return []string{"GITOPSD_ROOT=" + a.root.Dir(), "GITOPSD_DEVICE=" + a.cfg.Device}
}

// oneLine is a reason fit for a report: the first line, printable, short.
func oneLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
	if r := []rune(s); len(r) > reasonLimit {
		s = string(r[:reasonLimit]) + "…"
	}
	return s
}
