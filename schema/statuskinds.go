package schema

import "time"

// Phase is what a device is doing, in the words of the agent's flow.
type Phase string

// The phases of a report.
const (
	PhaseUpdated     Phase = "Updated"     // on the assigned spec
	PhaseObserving   Phase = "Observing"   // compares itself with the assigned spec, and changes nothing
	PhaseWaiting     Phase = "Waiting"     // deferred: busy or held
	PhasePreparing   Phase = "Preparing"   // pre-checks, downloads
	PhaseStarting    Phase = "Starting"    // announced, not yet looked again
	PhaseApplying    Phase = "Applying"    // changing the device
	PhaseVerifying   Phase = "Verifying"   // post-actions, confirm
	PhaseRebooting   Phase = "Rebooting"   //
	PhaseRollingBack Phase = "RollingBack" //
	PhaseDegraded    Phase = "Degraded"    // a retry is due
	PhaseError       Phase = "Error"       // failed; on the last good spec
)

// Outcome is how an attempt ended.
type Outcome string

// Outcomes. The first five are a device's own word; the rest are the
// daemon's.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeFailed    Outcome = "failed"
	OutcomeRefused   Outcome = "refused"
	OutcomeExhausted Outcome = "exhausted"
	OutcomeObserved  Outcome = "observed" // compared, as its spec says, and changed nothing
	OutcomeLost      Outcome = "lost"
	OutcomeDeferred  Outcome = "deferred"
	OutcomeUnreached Outcome = "unreached"
)

// FailureClass says whether trying again can help.
type FailureClass string

// The three classes of failure.
const (
	ClassPermanent FailureClass = "permanent"
	ClassRetryable FailureClass = "retryable"
	ClassDeferred  FailureClass = "deferred"
)

// DeviceStatus is the daemon's record of one device, at the same path on the
// status branch as the Device on the source branch. Nothing in it ages by
// itself, so that a sweep without change writes nothing.
type DeviceStatus struct {
	TypeMeta
	Metadata   Metadata       `json:"metadata"`
	Policy     string         `json:"policy,omitempty"`
	Verdict    Verdict        `json:"verdict"`
	Assignment *AssignmentRef `json:"assignment,omitempty"`
	Observed   *Observed      `json:"observed,omitempty"`
	Attempts   []Attempt      `json:"attempts,omitempty"`
}

// Verdict is the planner's decision as committed; see planner.Code.
type Verdict struct {
	Upgrade bool   `json:"upgrade"`
	Code    string `json:"code"`
	Target  string `json:"target,omitempty"` // version
	Reason  string `json:"reason"`
}

// AssignmentRef repeats what stands in assigned/.
type AssignmentRef struct {
	Generation int64  `json:"generation"`
	Attempt    int64  `json:"attempt"`
	Version    string `json:"version,omitempty"`
	Digest     string `json:"digest,omitempty"`
	Recalled   int64  `json:"recalled,omitempty"` // the attempt that was taken back
}

// Observed is the report that the last decision was taken from. Its sequence
// alone never causes a commit.
type Observed struct {
	InstallID    string     `json:"installID"`
	Sequence     int64      `json:"sequence"`
	Generation   int64      `json:"generation,omitempty"`
	Attempt      int64      `json:"attempt,omitempty"`
	Version      string     `json:"version,omitempty"`
	Digest       string     `json:"digest,omitempty"`
	Phase        Phase      `json:"phase"`
	Reason       string     `json:"reason,omitempty"`
	Since        time.Time  `json:"since"`             // when the daemon first saw this phase
	HeardAt      *time.Time `json:"heardAt,omitempty"` // when the last soak was seen to be over, by all daemons alike
	Online       bool       `json:"online"`
	OfflineSince *time.Time `json:"offlineSince,omitempty"`
	AgentVersion string     `json:"agentVersion,omitempty"`
	Busy         bool       `json:"busy,omitempty"`
	Held         string     `json:"held,omitempty"`    // hold on the device: its reason
	Problem      string     `json:"problem,omitempty"` // why the newest report was refused
}

// Attempt is one assignment of one target to one device; numbers only rise.
type Attempt struct {
	Attempt    int64      `json:"attempt"`
	Policy     string     `json:"policy"`
	Line       string     `json:"line,omitempty"`
	Version    string     `json:"version"`
	Digest     string     `json:"digest"`
	Rollout    string     `json:"rollout"`           // rollout digest
	Release    string     `json:"release,omitempty"` // release digest, see [Fleet.ReleaseDigest]
	InstallID  string     `json:"installID"`
	Pinned     bool       `json:"pinned,omitempty"`
	AssignedAt time.Time  `json:"assignedAt"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	StartSeq   int64      `json:"startSequence,omitempty"` // the announcement's sequence
	OnTargetAt *time.Time `json:"onTargetAt,omitempty"`    // ok was reported; settling
	EndedAt    *time.Time `json:"endedAt,omitempty"`
	Outcome    Outcome    `json:"outcome,omitempty"` // "" = open
	Recall     *Recall    `json:"recall,omitempty"`
	Stage      string     `json:"stage,omitempty"`   // where it failed
	Message    string     `json:"message,omitempty"` // what the device said
}

// Recall takes an attempt back: the document of this generation carries no
// spec. The attempt stays open until its outcome is written.
type Recall struct {
	Generation int64     `json:"generation"`
	Outcome    Outcome   `json:"outcome"` // deferred or unreached: what it ends as if it never started
	Because    string    `json:"because"`
	At         time.Time `json:"at"`
}

// Assignment tells one device what it may act on. Only the daemon writes it.
type Assignment struct {
	TypeMeta
	Metadata   Metadata       `json:"metadata"`
	Generation int64          `json:"generation"`    // rises with every change of this document
	For        string         `json:"for,omitempty"` // the installation that may act on it
	Attempt    int64          `json:"attempt"`       // a new one for every assignment of a spec
	Version    string         `json:"version,omitempty"`
	Digest     string         `json:"digest,omitempty"`
	Hold       *Reason        `json:"hold,omitempty"`
	Settle     *Duration      `json:"settle,omitempty"`
	Because    *Because       `json:"because,omitempty"`
	Recalled   int64          `json:"recalled,omitempty"` // set instead of spec
	Removed    bool           `json:"removed,omitempty"`  // the device left the fleet; it keeps what it runs
	Spec       map[string]any `json:"spec,omitzero"`      // as assigned; digest is of this; empty is a spec that wants nothing, nil none
}

// BecauseSwept is the subject of a change that stands for another one, which
// was not found: its commit is the one that the daemon had before it, and its
// author, who may have nothing to do with it, is left out.
const BecauseSwept = "it was swept then; which commit changed the spec was not found"

// Because says which change led to an assignment.
type Because struct {
	Commit  string `json:"commit,omitempty"`
	Subject string `json:"subject,omitempty"`
	Author  string `json:"author,omitempty"`
	Policy  string `json:"policy,omitempty"`
	Wave    string `json:"wave,omitempty"` // that the device was in; "" = the rest
}

// FailureMarks is a view for people, made from the attempts: who failed a
// version of a policy, and whether that halted it.
type FailureMarks struct {
	TypeMeta
	Metadata Metadata      `json:"metadata"` // name = version
	Policy   string        `json:"policy"`
	Line     string        `json:"line,omitempty"`
	Version  string        `json:"version"`
	Halted   bool          `json:"halted"`
	Marks    []FailureMark `json:"marks"`
}

// FailureMark is one device's failure or refusal of its target.
type FailureMark struct {
	Device  string    `json:"device"`
	Attempt int64     `json:"attempt"`
	Outcome Outcome   `json:"outcome"` // failed, lost or refused
	Digest  string    `json:"digest"`
	Rollout string    `json:"rollout"`
	At      time.Time `json:"at"`
	Stage   string    `json:"stage,omitempty"`
	Message string    `json:"message,omitempty"`
}

// FleetStatus is what concerns the whole fleet; it is written only when
// something in it changed.
type FleetStatus struct {
	TypeMeta
	Format       int             `json:"format"`       // of the status branch
	SourceCommit string          `json:"sourceCommit"` // the commit swept last
	Subject      string          `json:"subject,omitempty"`
	Author       string          `json:"author,omitempty"`
	SweptAt      time.Time       `json:"sweptAt"` // time of the last change of this document
	Conditions   []Condition     `json:"conditions"`
	Counts       map[string]int  `json:"counts"` // devices by code
	Rollouts     []RolloutStatus `json:"rollouts"`
}

// Condition is something that a person should know about the fleet.
type Condition struct {
	Type    string    `json:"type"`             // e.g. Stopped, Invalid, DeliveryRefused
	Reason  string    `json:"reason,omitempty"` // a stable word, e.g. HistoryRewritten
	Message string    `json:"message"`
	Remedy  string    `json:"remedy,omitempty"`
	Since   time.Time `json:"since"`
}

// RolloutStatus is the progress of one policy towards its target.
type RolloutStatus struct {
	Policy    string     `json:"policy"`
	Line      string     `json:"line,omitempty"`
	Version   string     `json:"version"`
	Rollout   string     `json:"rollout,omitempty"` // digest
	State     string     `json:"state"`             // off, paused, halted, rolling, waiting, done
	Total     int        `json:"total"`
	Done      int        `json:"done"`
	Moving    int        `json:"moving"`
	Waiting   int        `json:"waiting"`
	Attention int        `json:"attention"`
	InFlight  []InFlight `json:"inFlight"`
	Next      []string   `json:"next"` // the first few that are queued, in order
	Failed    []string   `json:"failed"`
	Limit     string     `json:"limit,omitempty"` // what binds now: Queued, FleetGuard …
	// Pilot and Waves are where the policy has them; the rest is the last
	// wave, and has no name.
	Pilot *PilotStatus `json:"pilot,omitempty"`
	Waves []WaveStatus `json:"waves,omitempty"`
	// The policy's windows and freezes as moments that stay the same until
	// they have come: OpensAt where it is shut, ShutsAt where it is open and
	// will not be for ever.
	OpensAt     *time.Time `json:"opensAt,omitempty"`
	ShutsAt     *time.Time `json:"shutsAt,omitempty"`
	FrozenUntil *time.Time `json:"frozenUntil,omitempty"`
}

// PilotStatus is the progress of a rollout's trial, in devices.
type PilotStatus struct {
	Count   int  `json:"count"`   // wanted
	Done    int  `json:"done"`    // have ended well and soaked
	Soaking int  `json:"soaking"` // have ended well, but not shown that they soaked
	Moving  int  `json:"moving"`  // in flight
	Over    bool `json:"over"`
	// SoakingUntil is when the last soak under way ends.
	SoakingUntil *time.Time `json:"soakingUntil,omitempty"`
}

// WaveStatus is the progress of one wave of a rollout, in devices.
type WaveStatus struct {
	Name      string `json:"name"` // "" = the rest
	Open      bool   `json:"open"`
	Satisfied bool   `json:"satisfied"` // the next wave need not wait for it
	Members   int    `json:"members"`
	Countable int    `json:"countable"` // members that it waits for, or that are done
	Done      int    `json:"done"`      // on the target and soaked
	Needed    int    `json:"needed"`    // how many of them satisfy it
	Soaking   int    `json:"soaking"`   // on the target, but not shown that they soaked
	Moving    int    `json:"moving"`    // in flight
	// SoakingUntil is when the last soak under way ends.
	SoakingUntil *time.Time `json:"soakingUntil,omitempty"`
}

// InFlight is one device that holds a slot.
type InFlight struct {
	Device  string    `json:"device"`
	Attempt int64     `json:"attempt"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	Started bool      `json:"started"`
}

// Report is what an agent says about its device.
type Report struct {
	TypeMeta
	Metadata          Metadata    `json:"metadata"` // name = device id
	InstallID         string      `json:"installID"`
	Sequence          int64       `json:"sequence"` // rises within the installation
	AgentVersion      string      `json:"agentVersion"`
	ProtocolVersion   int         `json:"protocolVersion"`
	Capabilities      []string    `json:"capabilities"`
	HeartbeatInterval Duration    `json:"heartbeatInterval"`
	BootID            string      `json:"bootID,omitempty"`
	Current           SpecRef     `json:"current"`           // what the device is
	Desired           *SpecRef    `json:"desired,omitempty"` // what it is on its way to
	Generation        int64       `json:"generation"`        // of the document that it judges
	Attempt           int64       `json:"attempt"`           // the attempt that phase and outcome speak of
	Digest            string      `json:"digest,omitempty"`
	Phase             Phase       `json:"phase"`
	Reason            string      `json:"reason,omitempty"`
	Stage             string      `json:"stage,omitempty"`
	Begun             bool        `json:"begun"`             // this attempt has changed something
	Outcome           Outcome     `json:"outcome,omitempty"` // ok, failed, refused, exhausted, observed
	Settled           bool        `json:"settled,omitempty"` // on target for the assignment's settle
	Busy              bool        `json:"busy,omitempty"`
	BusyReason        string      `json:"busyReason,omitempty"`
	Hold              *Reason     `json:"hold,omitempty"`
	Failures          []Failure   `json:"failures,omitempty"`
	Drift             []string    `json:"drift,omitempty"`    // paths and units that differ from the spec
	Units             []UnitState `json:"units,omitempty"`    // of the spec that the device runs
	Warnings          []string    `json:"warnings,omitempty"` // about the agent itself: what of its configuration does not count
	FreeDisk          int64       `json:"freeDisk,omitempty"` // bytes
	Recalled          int64       `json:"recalled,omitempty"` // the recall that it has seen
	Assigned          string      `json:"assigned,omitempty"` // e.g. "other installation": why a document is not acted on
	ReportedAt        time.Time   `json:"reportedAt"`         // the device's clock

	// DriftReason is what of the drift matters most, or why it could not be
	// looked for or put right. What comes and goes by itself stands here and in
	// the states below, and not in Reason: that is kept in git.
	DriftReason string `json:"driftReason,omitempty"`

	// Monitors are those of the spec that the device runs.
	Monitors []MonitorState `json:"monitors,omitempty"`

	// Applications are those of the spec that the device runs.
	Applications []ApplicationState `json:"applications,omitempty"`

	// WouldChange is set while the device only compares itself with a spec.
	WouldChange *WouldChange `json:"wouldChange,omitempty"`
}

// DriftUnrepaired begins the [Report.DriftReason] of a device that could not be
// made as its spec says again. It goes on trying, but a person should look.
const DriftUnrepaired = "drift could not be repaired"

// WouldChange is what separates a device from a spec that it only compares
// itself with.
type WouldChange struct {
	Version     string       `json:"version"` // of the spec
	Count       int          `json:"count"`   // of all that would change
	Differences []Difference `json:"differences"`
}

// What would be done in a [Difference].
const (
	DoCreate  = "create"
	DoChange  = "change"
	DoRemove  = "remove"
	DoRestore = "restore" // to what was there before the first release
	DoRestart = "restart" // a unit whose files change, or those that it reads; told before a reset
	DoReload  = "reload"  // the configuration of one, for the same
	DoCannot  = "cannot"  // be had there, or compared
)

// Difference is one thing of a device that is not as a spec says.
type Difference struct {
	Field  string `json:"field"` // of the spec: files, directories, units, …
	Name   string `json:"name"`  // a path, a unit, …
	Do     string `json:"do"`
	Detail string `json:"detail,omitempty"`
}

// SpecRef names a spec.
type SpecRef struct {
	Generation int64  `json:"generation,omitempty"`
	Attempt    int64  `json:"attempt,omitempty"`
	Version    string `json:"version"`
	Digest     string `json:"digest,omitempty"`
}

// Level is how much of something is in use.
type Level string

// The levels of a monitor.
const (
	LevelOK       Level = "ok"
	LevelWarning  Level = "warning"
	LevelCritical Level = "critical"
	LevelUnknown  Level = "unknown" // it could not be measured
)

// MonitorState is what a monitor says; Used alone is never worth a report.
type MonitorState struct {
	Name  string `json:"name"`
	Level Level  `json:"level"`
	Used  int    `json:"used,omitempty"` // percent
}

// UnitState is how one unit of a spec is.
type UnitState struct {
	Name string `json:"name"`
	// State is systemd's word (active, inactive, failed, activating, …), or
	// masked, restarting, not-found.
	State   string `json:"state"`
	Enabled bool   `json:"enabled,omitempty"`
}

// Failure is one failed stage of one attempt.
type Failure struct {
	Attempt   int64        `json:"attempt"`
	Digest    string       `json:"digest,omitempty"`
	Stage     string       `json:"stage"`
	Component string       `json:"component,omitempty"`
	Element   string       `json:"element,omitempty"`
	Class     FailureClass `json:"class"`
	Message   string       `json:"message"` // at most 8 KiB
	Tries     int          `json:"tries"`
}

// Delivery is what stands for one device at its delivery ref.
type Delivery struct {
	Revision   string            // commit of the delivery ref; "" = the ref does not exist
	Assignment *Assignment       // nil when Revision is ""
	Payloads   map[string][]byte // by "sha256:<hex>", every payload that the spec names
}
