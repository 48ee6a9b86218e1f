package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// check goes through the facts about a device, in the order of the codes; no
// code means that nothing about the device itself keeps it from going.
func (pl *plan) check(d *device) finding {
	p := d.policy
	switch {
	case d.bad != "":
		return no(BadInput, d.bad)
	case d.Duplicate:
		return no(Duplicate, duplicateReason)
	case d.open() != nil:
		return pl.inFlight(d, d.open())
	case d.Upgrading:
		return no(Upgrading, "was asked to upgrade and has not come back")
	case d.Policy == "":
		return no(Excluded, "no policy selects it")
	case p == nil:
		return no(BadPolicy, "policy "+word(d.Policy)+" is not known")
	case !p.Enabled:
		return no(Disabled, "policy "+word(p.Name)+" is not enabled")
	case p.bad != "":
		v := no(BadPolicy, "policy "+word(p.Name)+": "+p.bad)
		v.field = p.badField
		return v
	case pl.fleet.bad.text != "":
		v := no(BadPolicy, "what holds for the whole fleet: "+pl.fleet.bad.text)
		v.field = pl.fleet.bad.field
		return v.fleetWide()
	case !d.Seen:
		return no(NeverSeen, "it has never reported")
	case d.current:
		return no(Current, "on "+word(d.target.Version))
	}
	if v := pl.checkVersion(d); v.code != "" {
		return v
	}
	switch {
	case d.ProtocolVersion < p.MinProtocol:
		return no(ByHand, fmt.Sprintf("its protocol %d is older than minProtocol %d: upgrade it by hand", d.ProtocolVersion, p.MinProtocol))
	case len(d.Missing) > 0:
		reason := "its agent does not offer " + few(slices.Sorted(slices.Values(d.Missing)))
		if slices.Contains(d.Missing, needsSecret) {
			reason += "; its configuration names no secrets.identities"
		}
		return no(NeedsAgent, reason)
	case d.held():
		return no(Held, because("held", d.HeldReason))
	}
	if v := pl.checkHistory(d); v.code != "" {
		return v
	}
	switch {
	case d.absent:
		return no(Absent, "absent"+pl.since(d))
	case d.offline:
		return no(Offline, "offline"+pl.since(d))
	case d.busy() != "":
		return no(Busy, d.busy())
	}
	return finding{}
}

// needsSecret is the capability that no newer agent brings, but a key.
const needsSecret = "files.secret"

// duplicateReason says how it ends, because nobody sees that it would.
const duplicateReason = "two installations take turns under this name: give one of them its own; " +
	"it ends once only one has reported for an hour, or for three of its heartbeats if that is longer"

// versionCode says whether going to the target is an upgrade at all; "" = it
// is.
func (pl *plan) versionCode(d *device) Code {
	if d.NoTarget != "" || pl.versions.parse(d.target.Version) == nil {
		return NoTarget
	}
	runs := pl.versions.parse(d.Version)
	switch {
	case runs == nil:
		return UnknownVersion
	case runs.GreaterThan(pl.versions.parse(d.target.Version)) && !pl.mayGoDown(d):
		return Newer
	}
	return ""
}

func (pl *plan) checkVersion(d *device) finding {
	code := pl.versionCode(d)
	runs, target := word(d.Version), word(d.target.Version)
	switch {
	case code == "":
		return finding{}
	case code == Newer:
		return no(code, fmt.Sprintf("runs %s, newer than %s; it goes down only if rollbackFrom names %[1]s", runs, target))
	case code == UnknownVersion && d.Version == "":
		return no(code, "it does not tell its build")
	case code == UnknownVersion:
		return no(code, "its build "+runs+" is no version that can be compared")
	case d.NoTarget != "":
		return no(code, word(d.NoTarget))
	case d.target.Version == "":
		return no(code, "there is neither a targetVersion nor an own build to go to")
	}
	return no(code, target+" is no version that can be compared")
}

// mayGoDown says whether the policy names the device's newer version.
func (pl *plan) mayGoDown(d *device) bool {
	return slices.ContainsFunc(d.policy.RollbackFrom, func(v string) bool { return pl.versions.same(v, d.Version) })
}

func (pl *plan) checkHistory(d *device) finding {
	h := pl.tries(d, d.policy)
	target := word(d.target.Version)
	switch {
	case h.observed != nil:
		return no(Observing, because(fmt.Sprintf("only compares itself with %s; at %s", target, at(h.observed.EndedAt)), h.observed.Because))
	case h.failures >= d.policy.MaxAttempts:
		how := "failed"
		if h.lastFailure.Outcome == Lost {
			how = "lost on its way to"
		}
		return no(CodeFailed, fmt.Sprintf("%s %s at %s; tried again when its content changes or forgetFailuresBefore is set", how, target, at(h.lastFailure.EndedAt)))
	case h.refusal != nil:
		return no(CodeRefused, fmt.Sprintf("refused %s at %s; tried again when its content changes or forgetFailuresBefore is set", target, at(h.refusal.EndedAt)))
	case !pl.reached(h.retryAt):
		v := no(CodeBackoff, because("will be tried again after "+at(h.retryAt), h.cause))
		v.notBefore = h.retryAt
		return v
	}
	return finding{}
}

// inFlight says how far a device is.
func (pl *plan) inFlight(d *device, a *Attempt) finding {
	v := no(Upgrading, "")
	switch to := word(a.Target.Version); {
	case !a.OnTargetAt.IsZero():
		v.reason = fmt.Sprintf("on %s since %s, settles", to, at(a.OnTargetAt))
	case a.Recalled != "" && a.StartedAt.IsZero():
		v.reason = fmt.Sprintf("to %s: assigned %s, being recalled", to, at(a.AssignedAt))
	case a.Recalled != "":
		v.reason = fmt.Sprintf("to %s: start seen %s, being recalled", to, at(a.StartedAt))
	case !a.StartedAt.IsZero():
		v.reason = fmt.Sprintf("to %s: start seen %s", to, at(a.StartedAt))
	default:
		v.reason = assignedReason(a.Target, a.AssignedAt)
	}
	if speaksOf(d, a) {
		v.detail = "the device says " + strings.ToLower(word(d.Said.Phase))
	}
	return v
}

func assignedReason(t Target, when time.Time) string {
	return fmt.Sprintf("to %s: assigned %s", word(t.Version), at(when))
}

// since says when the silence began; an instant, never a length, because it
// is committed.
func (pl *plan) since(d *device) string {
	switch {
	case !d.OfflineSince.IsZero():
		return " since " + at(d.OfflineSince)
	case !d.LastSeen.IsZero():
		return ", last seen " + at(d.LastSeen)
	}
	return ""
}

// Phases of a report that matter here.
const (
	phaseUpdated   = "Updated"   // nothing to do
	phaseObserving = "Observing" // it has compared, and changes nothing
	phasePreparing = "Preparing" // nothing has changed yet
	phaseWaiting   = "Waiting"   // the attempt was put off
	phaseError     = "Error"     // it failed, and the device is back on its last good spec
)

// atRest are the phases of a device that works on no attempt.
var atRest = []string{"", phaseUpdated, phaseObserving, phaseError, phaseWaiting}

// busy says why a device must not be interrupted; "" = it may.
func (d *device) busy() string {
	if blocked, why := d.engaged(); blocked {
		return why
	}
	if d.atWork() {
		return fmt.Sprintf("still at work on attempt %d", d.Said.Attempt)
	}
	return ""
}

// atWork says whether a device is in the middle of an attempt. With none open
// it is one that we gave up, but the device did not.
func (d *device) atWork() bool {
	said := d.Said
	return said.Outcome == "" && (said.Starting || said.Begun && !slices.Contains(atRest, said.Phase))
}

// waiting says whether the device put off an attempt of its own. One that
// waits because its document is for another installation needs a new one.
func (d *device) waiting() bool {
	if d.Said.Phase != phaseWaiting || d.Said.Attempt == 0 {
		return false
	}
	return !slices.ContainsFunc(d.attempts, func(a Attempt) bool {
		return a.Number == d.Said.Attempt && !sameInstall(d, &a)
	})
}

// blocked says whether its operator or its work keeps a device from starting.
func (d *device) blocked() (bool, string) {
	if d.held() {
		return true, because("held", d.HeldReason)
	}
	return d.engaged()
}

// engaged says whether a device's own work comes first.
func (d *device) engaged() (bool, string) {
	switch {
	case d.Busy:
		return true, because("busy", d.BusyReason)
	case d.waiting():
		return true, because("waiting", d.Said.Message)
	}
	return false, ""
}

func no(c Code, reason string) finding { return finding{code: c, reason: reason} }

// fleetWide says that the finding's field is one of those over all policies.
func (f finding) fleetWide() finding {
	f.in = InFleet
	return f
}
