package units

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// Manager is what a service manager does for the agent: systemd, or the one
// that tests have. Names are whole unit names. Every method may be repeated.
type Manager interface {
	// States gives the states in the order of the names. A unit that nobody
	// knows has LoadState "not-found", and is no error.
	States(ctx context.Context, names ...string) ([]State, error)
	// Reload reads all unit files anew, generators included.
	Reload(ctx context.Context) error
	// Do begins all jobs, then waits for all: as long as their units may take
	// by their own settings, and a while more. What went wrong is joined.
	Do(ctx context.Context, jobs ...Job) error
	// Enable and Disable make and remove the links that unit files ask for;
	// Mask and Unmask the one to nothing. They touch no running unit, and the
	// links count from the next Reload on. Disable also removes those that would
	// not last over a boot. Runtime unmasks what was masked
	// until the next boot.
	Enable(ctx context.Context, name string) error
	Disable(ctx context.Context, name string) error
	Mask(ctx context.Context, name string) error
	Unmask(ctx context.Context, name string, runtime bool) error
	// ResetFailed forgives a unit that it failed, so that one without a file is
	// forgotten.
	ResetFailed(ctx context.Context, name string) error
	Close()
}

// Verb is what a [Job] does to its unit.
type Verb string

// The verbs. A failed unit is forgiven its earlier starts before it is started
// or restarted.
const (
	Start      Verb = "start"       // and what it needs; nothing where it runs
	Stop       Verb = "stop"        // nothing where it does not run
	Restart    Verb = "restart"     // or start
	TryRestart Verb = "try-restart" // where it runs
	TryReload  Verb = "try-reload"  // where it runs: its configuration, or else restart
)

// Job is one thing to be done to one unit.
type Job struct {
	Verb Verb
	Unit string
}

// JobError is a job that did not end well.
type JobError struct {
	Job
	// Result is systemd's word: failed, dependency, timeout, canceled, …, or
	// "" where there was no job or no result within Limit.
	Result string
	Limit  time.Duration
	Err    error // what systemd refused the job with
}

func (e *JobError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s %s: %v", e.Verb, e.Unit, e.Err)
	case e.Result == "":
		return fmt.Sprintf("%s %s: it took longer than %v", e.Verb, e.Unit, e.Limit)
	case e.Result == "dependency":
		return fmt.Sprintf("%s %s: something that it needs did not start", e.Verb, e.Unit)
	case e.Result == "timeout":
		return fmt.Sprintf("%s %s: it took longer than its own limit", e.Verb, e.Unit)
	}
	return fmt.Sprintf("%s %s: %s", e.Verb, e.Unit, e.Result)
}

func (e *JobError) Unwrap() error { return e.Err }

// class is permanent where the unit itself, or what it needs, does not work with
// the spec's files; what systemd could not do now, it may do later. What does not
// stop is no part of the spec.
func (e *JobError) class() schema.FailureClass {
	switch e.Result {
	case "failed", "timeout", "dependency", "assert", "unsupported":
		if e.Verb != Stop {
			return schema.ClassPermanent
		}
	}
	if slices.ContainsFunc(unfit, func(word string) bool { return isError(e.Err, word) }) {
		return schema.ClassPermanent
	}
	return schema.ClassRetryable
}

// unfit are systemd's words for what is never done to a unit, as it is.
var unfit = []string{
	"org.freedesktop.systemd1.BadUnitSetting",
	"org.freedesktop.systemd1.OnlyByDependency", // as RefuseManualStart= and RefuseManualStop= have it
	"org.freedesktop.systemd1.JobTypeNotApplicable",
}

// ErrNoSystemd means that no systemd answers on this device.
var ErrNoSystemd = errors.New("systemd does not answer")

// State is one unit as systemd sees it now. Words are systemd's own.
type State struct {
	Name   string // as asked for
	ID     string // the unit's own name, another one where Name is an alias
	Load   string // loaded, not-found, masked, bad-setting, error
	Active string // active, reloading, inactive, failed, activating, deactivating
	Sub    string // running, exited, dead, auto-restart, …
	// File is how the unit's file is enabled: enabled, disabled, static,
	// masked, masked-runtime, linked, alias, indirect, generated, transient,
	// or "" where there is none.
	File         string
	Fragment     string   // path of its file; "" = none
	DropIns      []string // paths
	NeedsReload  bool     // its files changed since systemd read them
	Invocation   string   // another one with each start, "" = not started in this boot
	LastStart    time.Time
	Unmet        bool     // a condition in its file says that it does not run here
	Triggers     []string // what it starts, of sockets, timers and paths
	Oneshot      bool     // a service that ends by itself and is then as wanted
	Result       string   // of services: success, exit-code, timeout, start-limit-hit, …
	Restarts     int      // by systemd itself, since somebody started it
	Ran          bool     // a service whose program was started in this boot
	startTimeout time.Duration
	stopTimeout  time.Duration
}

// Running says whether a unit has started and not ended.
func (s *State) Running() bool { return s.Active == "active" || s.Active == "reloading" }

// Missing says whether no file makes the unit.
func (s *State) Missing() bool {
	return s.Fragment == "" && (s.Load == "not-found" || s.File == "")
}

// Masked says whether the unit is kept from starting by a link to nothing.
func (s *State) Masked() bool {
	return s.Load == "masked" || s.File == "masked" || s.File == "masked-runtime"
}

// maskedForGood says whether the link to nothing is the vendor's, which nobody
// takes away.
func (s *State) maskedForGood() bool {
	return s.Masked() && s.Fragment != "" && !slices.Contains([]string{folder, "/run/systemd/system"}, path.Dir(s.Fragment))
}

// RunState is a unit's state in a word, for reports: that of its activity, and
// what makes it more than that.
func (s *State) RunState() string {
	switch {
	case s.Masked():
		return "masked"
	case s.Load != "loaded" && s.Load != "" && !s.Running():
		return s.Load
	case s.Sub == "auto-restart":
		return "restarting"
	}
	return s.Active
}
