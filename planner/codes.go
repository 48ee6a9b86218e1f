package planner

import "time"

// Code names a verdict; the order of the checks is the order of the constants.
type Code string

// The codes. The first check that matches gives a device its code: facts
// about the device, then the gates of its rollout, then the allocation of
// slots among those that are left. Some have a prefix because an outcome or a
// type has the plain name.
const (
	BadInput       Code = "BadInput"
	Duplicate      Code = "Duplicate"
	Upgrading      Code = "Upgrading"
	Excluded       Code = "Excluded"
	Disabled       Code = "Disabled"
	BadPolicy      Code = "BadPolicy"
	NeverSeen      Code = "NeverSeen"
	Current        Code = "Current"
	NoTarget       Code = "NoTarget"
	UnknownVersion Code = "UnknownVersion"
	Newer          Code = "Newer"
	ByHand         Code = "ByHand"
	NeedsAgent     Code = "NeedsAgent"
	Held           Code = "Held"
	Observing      Code = "Observing"
	CodeFailed     Code = "Failed"
	CodeRefused    Code = "Refused"
	CodeBackoff    Code = "Backoff"
	Offline        Code = "Offline"
	Absent         Code = "Absent"
	Busy           Code = "Busy"

	Stopped Code = "Stopped"
	Paused  Code = "Paused"
	Halted  Code = "Halted"
	Frozen  Code = "Frozen"

	CodeWindow Code = "Window"
	CodePilot  Code = "Pilot"
	CodeWave   Code = "Wave"

	Queued     Code = "Queued"
	FleetGuard Code = "FleetGuard"
	CodeBudget Code = "Budget"
	Upgrade    Code = "Upgrade"
)

// Kind says what a code asks of a person.
type Kind string

// The kinds of codes.
const (
	Attention Kind = "attention" // somebody must do something
	Wait      Kind = "wait"      // it goes on by itself
	Leave     Kind = "leave"     // nothing to do, on purpose
	InFlight  Kind = "in flight" // under way
	Go        Kind = "go"        // upgrade it now
)

// CodeInfo documents one code.
type CodeInfo struct {
	Code    Code
	Kind    Kind
	Meaning string
}

// Codes lists all codes in the order of the checks.
func Codes() []CodeInfo {
	return []CodeInfo{
		{BadInput, Attention, "its id is empty, or two devices have the same"},
		{Duplicate, Attention, "two installations answer to its name"},
		{Upgrading, InFlight, "an attempt is assigned, has started, is being recalled, or settles"},
		{Excluded, Leave, "no policy selects it"},
		{Disabled, Leave, "its policy is not enabled"},
		{BadPolicy, Attention, "its policy, or what holds for the whole fleet, is invalid, so nobody goes"},
		{NeverSeen, Wait, "it has never reported"},
		{Current, Leave, "it is on its target"},
		{NoTarget, Attention, "the target, or the control plane's own build, is no version or has no release"},
		{UnknownVersion, Leave, "it does not tell its build, or that is no version that can be compared"},
		{Newer, Leave, "it runs something newer than the target, and rollbackFrom does not name that"},
		{ByHand, Attention, "its protocol is too old: it must be upgraded by hand"},
		{NeedsAgent, Attention, "the spec needs what its agent does not offer"},
		{Held, Leave, "an operator holds it, in git or on the device"},
		{Observing, Leave, "it only compares itself with its target, as its spec says, and has reported what would change"},
		{CodeFailed, Attention, "it failed this target as often as it may"},
		{CodeRefused, Attention, "it refused this target: that cannot work there"},
		{CodeBackoff, Wait, "it is tried again later"},
		{Offline, Wait, "nothing was heard from it for a while"},
		{Absent, Wait, "nothing was heard from it for so long that nobody counts on it"},
		{Busy, Wait, "it is at work, waits for something, or cannot tell"},
		{Stopped, Wait, "a guard of the sweep lets nobody go"},
		{Paused, Wait, "its policy, or the whole fleet, is paused"},
		{Halted, Wait, "more devices failed or refused the release than its policy allows"},
		{Frozen, Wait, "a freeze is in force, of its policy or of the whole fleet"},
		{CodeWindow, Wait, "its policy's windows are closed"},
		{CodePilot, Wait, "the pilot of its rollout is not over"},
		{CodeWave, Wait, "an earlier wave of its rollout is not satisfied"},
		{Queued, Wait, "no slot is free, or minInterval since the last upgrade is not over"},
		{FleetGuard, Wait, "too few devices would stay available"},
		{CodeBudget, Wait, "as many devices of its group are unavailable as a budget allows"},
		{Upgrade, Go, "it gets its new desired spec now"},
	}
}

// Kind is the kind of the code; "" for one that is not known.
func (c Code) Kind() Kind {
	for _, i := range Codes() {
		if i.Code == c {
			return i.Kind
		}
	}
	return ""
}

// ForGit is the code as a device's status file has it. Which limit binds
// changes for everybody at once, so all of them are Queued there; a device
// that was assigned in this sweep is Upgrading, and Upgrade only a plan's word.
func (c Code) ForGit() Code {
	switch c {
	case FleetGuard, CodeBudget:
		return Queued
	case Upgrade:
		return Upgrading
	}
	return c
}

// ForGit is the verdict as a device's status file has it, in a sweep that
// plans and publishes at this time: what the next sweep would say of the same
// state, so that it has nothing to write.
func (v Verdict) ForGit(now time.Time) (Code, string) {
	if v.Code == Upgrade {
		return Upgrading, assignedReason(v.Target, now)
	}
	return v.Code.ForGit(), v.Reason
}
