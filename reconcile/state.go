package reconcile

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// direction is which way the device is on; it is on disk before the first
// change of either way.
type direction string

const (
	steady  direction = ""
	forward direction = "forward" // to the desired spec
	back    direction = "back"    // to the current spec
)

// record is a spec on disk together with the assignment that brought it.
type record struct {
	Generation int64            `json:"generation,omitempty"`
	Attempt    int64            `json:"attempt,omitempty"`
	Version    string           `json:"version"`
	Digest     string           `json:"digest,omitempty"`
	Settle     *schema.Duration `json:"settle,omitempty"`
	OKAt       time.Time        `json:"okAt,omitzero"` // by the wall clock
	OK         instant          `json:"ok,omitzero"`   // it settles from here
	OS         string           `json:"os,omitempty"`  // the version that its image stood for
	// Unknown marks a current spec that was lost: what the device runs is not
	// known, and must never be read as "nothing".
	Unknown bool            `json:"unknown,omitempty"`
	Spec    json.RawMessage `json:"spec,omitempty"`
}

// maxNumber is the largest whole number that every reader of a report takes
// for itself; a state with a larger one would keep the device silent.
const maxNumber = 1<<53 - 1

func sane(n int64) bool { return n >= 0 && n <= maxNumber }

func (r *record) reportable() bool { return sane(r.Generation) && sane(r.Attempt) }

func (a *attempts) valid() bool {
	ok := a.Format == attemptsFormat && sane(a.Generation) && sane(a.Dropped) && sane(a.Observes) && sane(a.Work.Attempt) && a.Work.Wait <= 2*longestWait
	for i := range a.Ended {
		ok = ok && sane(a.Ended[i].Attempt)
	}
	return ok
}

func (r *record) ref() schema.SpecRef {
	return schema.SpecRef{Generation: r.Generation, Attempt: r.Attempt, Version: r.Version, Digest: r.Digest}
}

// attempts is what became of assignments: attempts.json.
type attempts struct {
	// Format tells an empty record from a file that is none.
	Format int `json:"format"`
	// Generation is that of the newest document seen; an older one is ignored.
	Generation int64 `json:"generation,omitempty"`
	// Hold is what that document said of it: it is obeyed without control too.
	Hold *schema.Reason `json:"hold,omitempty"`
	// Ended are the last attempts that ended, oldest first; what was assigned
	// again since is the newest. Nothing at or below the highest of them is ever
	// begun.
	Ended []ended `json:"ended,omitempty"`
	// Dropped is the newest attempt that was taken back before it changed anything.
	Dropped   int64     `json:"dropped,omitempty"`
	Direction direction `json:"direction,omitempty"`
	// Observes is the attempt whose spec the device is only compared with since;
	// 0 = none. It is left as it is until something begins.
	Observes int64 `json:"observes,omitempty"`
	// Incomplete says what a rollback could not put back yet.
	Incomplete string `json:"incomplete,omitempty"`
	Work       work   `json:"work,omitzero"`
}

// attemptsFormat is raised when an older agent would misread the record.
const attemptsFormat = 1

// keptEnded bounds attempts.json; only the highest number decides anything.
const keptEnded = 8

// ended is the mark of one attempt that has ended.
type ended struct {
	Attempt  int64            `json:"attempt"`
	Version  string           `json:"version,omitempty"`
	Digest   string           `json:"digest,omitempty"`
	Outcome  schema.Outcome   `json:"outcome"`
	Begun    bool             `json:"begun,omitempty"`
	Stage    string           `json:"stage,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Failures []schema.Failure `json:"failures,omitempty"`
	At       time.Time        `json:"at,omitzero"`
}

// work is what is known of the attempt in desired.json; one of another number
// says nothing about it.
type work struct {
	Attempt  int64            `json:"attempt,omitempty"`
	Tries    int              `json:"tries,omitempty"`  // that failed
	Begun    bool             `json:"begun,omitempty"`  // something was changed, perhaps put back since
	NextTry  time.Time        `json:"nextTry,omitzero"` // by the wall clock; zero = at once
	Failed   instant          `json:"failed,omitzero"`  // the wait for the next try began
	Wait     time.Duration    `json:"wait,omitempty"`   // in nanoseconds
	Failures []schema.Failure `json:"failures,omitempty"`
	Resumes  int              `json:"resumes,omitempty"` // starts that found it half done
	Stops    int              `json:"stops,omitempty"`   // that the agent was told of; such a start is no sign of trouble
	Boots    int              `json:"boots,omitempty"`   // into its OS, without success so far
	OSFrom   string           `json:"osFrom,omitempty"`  // what was booted before
	OSTo     string           `json:"osTo,omitempty"`    // the version that the image stands for; "" = its own name
	OSOpen   bool             `json:"osOpen,omitempty"`  // only staging will tell that version
	Changed  []string         `json:"changed,omitempty"` // paths, for hooks
	Hooks    hookRuns         `json:"hooks,omitzero"`
}

// wait has the next try wait from now on.
func (w *work) wait(c clock, d time.Duration) {
	w.NextTry, w.Failed, w.Wait = c.now().Add(d), c.instant(), d
}

// adopt makes what was read from disk the clock's own.
func (w *work) adopt(c clock) {
	switch {
	case w.NextTry.IsZero():
	case w.Failed.Boot == "": // by an agent that had only the wall clock
		w.Failed, w.Wait = c.instant(), min(max(w.NextTry.Sub(c.now()), 0), longestWait)
	default:
		w.Failed = c.adopt(w.Failed, w.NextTry.Add(-w.Wait))
	}
}

// pending is what the next boot or the confirmation must prove: pending.json.
type pending struct {
	Attempt  int64     `json:"attempt"`
	Image    string    `json:"image,omitempty"`    // that must be booted; "" = no reboot is due
	Rollback bool      `json:"rollback,omitempty"` // the reboot leads back
	BootID   string    `json:"bootID,omitempty"`   // of the boot that asked, later of the newest one seen
	Asked    time.Time `json:"asked,omitzero"`     // for the reboot, first, by the wall clock
	AskedUp  instant   `json:"askedUp,omitzero"`
	Asks     int       `json:"asks,omitempty"`
	Boots    int       `json:"boots,omitempty"`   // seen since
	BootedAt time.Time `json:"bootedAt,omitzero"` // the newest boot was seen
	BootedUp instant   `json:"bootedUp,omitzero"`
	Hooked   bool      `json:"hooked,omitempty"`  // after-reboot hooks have run in this boot
	Deadline time.Time `json:"deadline,omitzero"` // of the confirmation, once it has begun, by the wall clock
	Asking   instant   `json:"asking,omitzero"`   // the confirmation began
}

// adopt makes what was read from disk the clock's own. A boot gives the
// confirmation its time anew, whatever the wall clock says.
func (p *pending) adopt(c clock) {
	if !p.Asked.IsZero() {
		p.AskedUp = c.adopt(p.AskedUp, p.Asked)
	}
	if !p.BootedAt.IsZero() {
		p.BootedUp = c.adopt(p.BootedUp, p.BootedAt)
	}
	if !p.Deadline.IsZero() {
		p.Asking = c.adopt(p.Asking, zeroTime)
	}
}

func (a *attempts) highest() int64 {
	var n int64
	for _, e := range a.Ended {
		n = max(n, e.Attempt)
	}
	return n
}

// last is the newest attempt that ended, nil if none did.
func (a *attempts) last() *ended {
	if len(a.Ended) == 0 {
		return nil
	}
	return &a.Ended[len(a.Ended)-1]
}

// failed is the newest that failed after it had begun: the one from which a way
// back leads. Others may have ended on the way. Nil if none did.
func (a *attempts) failed() *ended {
	for i := range slices.Backward(a.Ended) {
		if a.Ended[i].Outcome == schema.OutcomeFailed {
			return &a.Ended[i]
		}
	}
	return nil
}

// again makes the attempt of a current spec the newest once more.
func (a *attempts) again(cur *record) {
	e := ended{Attempt: cur.Attempt, Version: cur.Version, Digest: cur.Digest, Outcome: schema.OutcomeOK, Begun: true, At: cur.OKAt}
	for _, o := range a.Ended {
		if o.Attempt == cur.Attempt {
			e = o
		}
	}
	a.tookBack(a.Dropped)
	a.end(e)
	a.Dropped = 0
}

// tookBack keeps the number of an attempt that was taken back before it changed
// anything, for an end that will be told instead of it.
func (a *attempts) tookBack(attempt int64) {
	if attempt > a.highest() {
		a.end(ended{Attempt: attempt, Outcome: schema.OutcomeDeferred})
	}
}

// of gives what is known of an attempt's work.
func (a *attempts) of(attempt int64) work {
	if a.Work.Attempt == attempt {
		return a.Work
	}
	return work{Attempt: attempt}
}

func (a attempts) clone() attempts {
	a.Ended = slices.Clone(a.Ended)
	a.Work.Failures = slices.Clone(a.Work.Failures)
	a.Work.Changed = slices.Clone(a.Work.Changed)
	a.Work.Hooks.Done = slices.Clone(a.Work.Hooks.Done)
	return a
}

// end records how an attempt ended; its work is over.
func (a *attempts) end(e ended) {
	a.Ended = slices.DeleteFunc(a.Ended, func(o ended) bool { return o.Attempt == e.Attempt })
	a.Ended = append(a.Ended, e)
	if n := len(a.Ended); n > keptEnded {
		a.Ended = slices.Clone(a.Ended[n-keptEnded:])
	}
	// only the newest is reported, so only it needs its messages
	for i := range a.Ended[:len(a.Ended)-1] {
		a.Ended[i].Failures = nil
	}
}
