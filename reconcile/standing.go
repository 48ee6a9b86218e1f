package reconcile

import (
	"sync"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// Standing is how a device stands, as it says itself and without asking
// anybody.
type Standing struct {
	// Report is what control is told, or will be.
	Report schema.Report `json:"report"`
	// Waits says why nothing may begin now; "" = nothing keeps it.
	Waits string `json:"waits,omitempty"`
	// Unannounced says why what is desired could not be announced to control,
	// before which nothing begins; "" = it could, or nothing is desired.
	Unannounced string `json:"unannounced,omitempty"`
	// Last is the newest attempt that ended.
	Last *LastAttempt `json:"last,omitempty"`
	// RetryAt is when the desired attempt is tried again, or an incomplete
	// rollback.
	RetryAt *time.Time `json:"retryAt,omitempty"`
	// Contact is nil before the first question to control.
	Contact  *Contact   `json:"contact,omitempty"`
	NextPoll *time.Time `json:"nextPoll,omitempty"`
	// Trial is the program that is to take over as the agent, and how far that
	// has come; "" = none is.
	Trial string `json:"trial,omitempty"`
	// Looked says that drift was looked for since the agent's start.
	Looked bool `json:"looked"`
	// Trouble is what of the state could not be read.
	Trouble []string `json:"trouble,omitempty"`
}

// LastAttempt is how the newest attempt that ended did so.
type LastAttempt struct {
	Attempt int64          `json:"attempt"`
	Version string         `json:"version"`
	Outcome schema.Outcome `json:"outcome"`
	At      time.Time      `json:"at,omitzero"`
}

// Contact is whether control answers.
type Contact struct {
	Answers bool      `json:"answers"`
	Since   time.Time `json:"since"` // it does, or does not
	Asked   time.Time `json:"asked"` // last
	Error   string    `json:"error,omitempty"`
}

// shown is the newest standing of a running agent, for whoever asks beside the
// work.
type shown struct {
	mu       sync.Mutex
	standing Standing
}

// Standing may be called at any time while the agent runs. Its warnings are
// those of now: who has just mended the configuration asks for nothing else.
func (a *Agent) Standing() Standing {
	warnings := a.warnings()
	a.shown.mu.Lock()
	defer a.shown.mu.Unlock()
	s := a.shown.standing
	s.Report.Warnings = warnings
	if s.Contact != nil {
		c := *s.Contact
		s.Contact = &c
	}
	return s
}

// standing belongs to a report, and is worked out by whoever does the work.
func (a *Agent) standing(r *schema.Report) Standing {
	s := Standing{Report: *r, Waits: a.waits(), Looked: a.looked}
	if l := a.store.attempts.last(); l != nil {
		s.Last = &LastAttempt{Attempt: l.Attempt, Version: l.Version, Outcome: l.Outcome, At: l.At}
	}
	at := func(left time.Duration) *time.Time {
		t := a.now().Add(left).UTC().Truncate(time.Second)
		return &t
	}
	d := a.store.desired
	if d != nil {
		s.Unannounced = a.unannounced.what
	}
	if t := a.store.programs.Trial; t != nil {
		s.Trial = t.text()
	}
	switch {
	case a.store.attempts.Incomplete != "" && a.nextRollback > 0:
		s.RetryAt = at(max(a.nextRollback-a.up(), 0))
	case d != nil && !a.store.attempts.of(d.Attempt).NextTry.IsZero():
		s.RetryAt = at(max(a.retryIn(), 0))
	}
	return s
}

func (a *Agent) show(r *schema.Report) {
	s := a.standing(r)
	a.shown.mu.Lock()
	defer a.shown.mu.Unlock()
	s.Contact, s.NextPoll = a.shown.standing.Contact, a.shown.standing.NextPoll
	a.shown.standing = s
}

// contacted keeps what came of a question to control.
func (a *Agent) contacted(err error) {
	now := a.now().UTC().Truncate(time.Second)
	a.shown.mu.Lock()
	defer a.shown.mu.Unlock()
	c := a.shown.standing.Contact
	if c == nil || c.Answers != (err == nil) {
		c = &Contact{Answers: err == nil, Since: now}
		a.shown.standing.Contact = c
	}
	c.Asked, c.Error = now, ""
	if err != nil {
		c.Error = oneLine(err.Error())
	}
}

func (a *Agent) pollsIn(left time.Duration) {
	t := a.now().Add(left).UTC().Truncate(time.Second)
	a.shown.mu.Lock()
	defer a.shown.mu.Unlock()
	a.shown.standing.NextPoll = &t
}
