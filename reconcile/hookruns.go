package reconcile

import (
	"fmt"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
)

// hookRuns is how far the hooks of an attempt have come, both ways. What has run
// is not run again by the agent that a hook restarts.
type hookRuns struct {
	// Amiss is what the way back had not put right when they ran: as soon as it is
	// something else, they run again.
	Amiss string   `json:"amiss,omitempty"`
	Done  []string `json:"done,omitempty"`
	// Begun is the one that was begun last and is not known to have ended, and
	// Begins how often it was.
	Begun  string `json:"begun,omitempty"`
	Begins int    `json:"begins,omitempty"`
}

// watchHooks records what becomes of the hooks of a point. Those that ask,
// before an update, change nothing and may be asked again.
func (a *Agent) watchHooks(p hooks.Point) hooks.Watch {
	w := hooks.Watch{Warn: a.warn}
	if p != hooks.BeforeUpdating {
		w.Begin, w.End = a.beginHook, a.endHook
	}
	return w
}

// hookKey names a hook's run: another way, and another boot that the attempt
// has asked for, is another run.
func (a *Agent) hookKey(element string) string {
	st := a.store
	boots := st.attempts.Work.Boots
	if st.pending != nil {
		boots += st.pending.Boots
	}
	return fmt.Sprintf("%s %d %s", st.attempts.Direction, boots, element)
}

// hooksAnew has the hooks of the way back run once more where it has come further
// since they did.
func (a *Agent) hooksAnew(amiss error) error {
	att, text := a.store.attempts.clone(), ""
	if amiss != nil {
		text = bounded(a.said(amiss))
	}
	if att.Work.Hooks.Amiss == text {
		return nil
	}
	att.Work.Hooks = hookRuns{Amiss: text}
	return a.store.saveAttempts(att)
}

// beginHook has a hook that ended with the agent in the middle run again, but
// not for ever: it may be what ends the agent.
func (a *Agent) beginHook(element string) (due bool, err error) {
	att := a.store.attempts.clone()
	runs, key := &att.Work.Hooks, a.hookKey(element)
	if slices.Contains(runs.Done, key) {
		return false, nil
	}
	if runs.Begun != key {
		runs.Begun, runs.Begins = key, 0
	}
	if runs.Begins >= maxResumes {
		err := failure.Permanent("hooks", element, "the agent was stopped %d times while it ran; a hook that restarts the agent must not wait for that: systemctl restart --no-block gitopsd-agent", runs.Begins)
		if att.Direction != back {
			return false, err
		}
		a.log.Warn("a hook does not run again on the way back", "error", err)
		runs.Done = append(runs.Done, key)
		return false, a.store.saveAttempts(att)
	}
	runs.Begins++
	return true, a.store.saveAttempts(att)
}

func (a *Agent) endHook(element string, well bool) error {
	att := a.store.attempts.clone()
	runs := &att.Work.Hooks
	if well {
		runs.Done = append(runs.Done, runs.Begun)
	}
	runs.Begun, runs.Begins = "", 0
	return a.store.saveAttempts(att)
}
