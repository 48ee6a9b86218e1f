package planner

import "time"

// Input is everything that a plan depends on.
type Input struct {
	Now        time.Time
	OwnVersion string // the control plane's own build
	// Watching is the start of this daemon's unbroken series of sweeps:
	// silence counts only since then. Zero means for ever.
	Watching time.Time
	// Stopped is the reason why the sweep's guards let nobody go; "" = none.
	Stopped string
	// NoTimeouts keeps silence and elapsed time from deciding anything: the
	// clock cannot be trusted.
	NoTimeouts bool
	Fleet      Fleet
	Policies   []Policy
	Devices    []Device
}

// Fleet is what holds over all policies; the zero Fleet limits nothing.
type Fleet struct {
	Paused             string   `json:"paused,omitempty"` // reason; "" = not paused
	MaxInFlight        int      `json:"max_in_flight,omitempty"`
	MaxInFlightPercent int      `json:"max_in_flight_percent,omitempty"` // both 0 = no limit
	Budgets            []Budget `json:"budgets,omitempty"`
	Freezes            []Freeze `json:"freezes,omitempty"`
}

// Pilot is a trial before everything else: until Count devices of a rollout
// are done and have soaked, no more than Count are on their way or soaking.
type Pilot struct {
	Count int           `json:"count,omitempty"` // 0 = no pilot
	Soak  time.Duration `json:"soak,omitempty"`
}

// Wave is one step of a rollout. A device is in the wave that [Device.Wave]
// names; those without one form a last wave, which is never written down.
type Wave struct {
	Name string `json:"name"`
	// SuccessThreshold is the percentage of the devices that can be counted
	// which must be done before the next wave opens; 0 = 100.
	SuccessThreshold int           `json:"success_threshold,omitempty"`
	MinSuccess       int           `json:"min_success,omitempty"` // 0 = 1
	Soak             time.Duration `json:"soak,omitempty"`
	// Optional lets the next wave open where this one has nobody to wait for.
	Optional bool `json:"optional,omitempty"`
}

// Budget limits how many devices of a group may be unavailable at one time.
// The devices that have equal values for all labels of GroupBy are a group;
// a label that a device lacks is a value like any other.
type Budget struct {
	GroupBy        []string `json:"group_by"`
	MaxUnavailable Limit    `json:"max_unavailable"`
}

// Window is a time in which upgrades may start: on each of Days, from Start of
// the local day in Zone, for Duration that really passes.
type Window struct {
	Days     []time.Weekday `json:"days"`
	Start    time.Duration  `json:"start"` // on the wall clock, from midnight; below 24h
	Duration time.Duration  `json:"duration"`
	Zone     *time.Location `json:"-"` // nil = UTC
}

// Freeze is a time in which nobody starts, whatever the windows say: from From
// until before To.
type Freeze struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Note string    `json:"note,omitempty"`
}

// Limit is a count of devices or a percentage of N; the zero Limit means the
// field's default.
type Limit struct {
	Count   int  `json:"count,omitempty"`
	Percent int  `json:"percent,omitempty"`
	Set     bool `json:"set,omitempty"` // tells an explicit 0 from an absent field
}

// Backoff is Base × Factor^(n−1), at most Cap.
type Backoff struct {
	Base   time.Duration `json:"base,omitempty"`
	Factor float64       `json:"factor,omitempty"`
	Cap    time.Duration `json:"cap,omitempty"`
}

// Policy says how careful to be with the devices that it governs. Zero fields
// mean the defaults of the constants.
type Policy struct {
	Name               string        `json:"name,omitempty"`
	Enabled            bool          `json:"enabled"`
	TargetVersion      string        `json:"target_version"` // "" = the control plane's own build
	MaxInFlight        int           `json:"max_in_flight"`
	MaxInFlightPercent int           `json:"max_in_flight_percent,omitempty"`
	Paused             string        `json:"paused,omitempty"` // reason; "" = not paused
	Line               string        `json:"line,omitempty"`
	RollbackFrom       []string      `json:"rollback_from,omitempty"`
	MinAvailable       Limit         `json:"min_available,omitzero"`
	PickupTimeout      time.Duration `json:"pickup_timeout,omitempty"`
	UpdateTimeout      time.Duration `json:"update_timeout,omitempty"`
	Settle             time.Duration `json:"settle,omitempty"`
	MaxAttempts        int           `json:"max_attempts,omitempty"`
	Backoff            Backoff       `json:"backoff,omitzero"`
	FailureLimit       Limit         `json:"failure_limit,omitzero"`
	RefusalLimit       Limit         `json:"refusal_limit,omitzero"`
	ForgetBefore       time.Time     `json:"forget_before,omitzero"`
	// Release identifies the content of the present release, its payloads
	// included; "" where it is not known. Compare [Attempt.Release].
	Release      string        `json:"release,omitempty"`
	OfflineAfter time.Duration `json:"offline_after,omitempty"`
	AbsentAfter  time.Duration `json:"absent_after,omitempty"`
	OfflineGrace time.Duration `json:"offline_grace,omitempty"` // from becoming offline; 0 = the default
	MinProtocol  int           `json:"min_protocol,omitempty"`

	Pilot       Pilot         `json:"pilot,omitzero"`
	Waves       []Wave        `json:"waves,omitempty"`
	Budgets     []Budget      `json:"budgets,omitempty"`
	Windows     []Window      `json:"windows,omitempty"` // none = always open
	Freezes     []Freeze      `json:"freezes,omitempty"`
	MinInterval time.Duration `json:"min_interval,omitempty"` // between two upgrades
}

// Target is what one device should be: it keys the device's attempts.
type Target struct {
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"`
}

// Device is one device as the control plane knows it now.
type Device struct {
	ID              string `json:"id"`
	Name            string `json:"name,omitempty"`
	Version         string `json:"version"`                    // build the device reports; "" = it has not told us
	ProtocolVersion int    `json:"protocol_version,omitempty"` // too low = must be upgraded by hand
	Online          bool   `json:"online"`
	Busy            bool   `json:"busy,omitempty"`
	AdminHeld       bool   `json:"admin_held,omitempty"` // cordoned, drained or held by an operator
	Upgrading       bool   `json:"upgrading,omitempty"`  // already asked, has not come back; true alone forces "in flight"

	Policy   string `json:"policy,omitempty"` // name of the policy that selects it; "" = Excluded
	Target   Target `json:"target,omitzero"`  // what it should be
	Rollout  string `json:"rollout,omitempty"`
	NoTarget string `json:"no_target,omitempty"` // why there is nothing to go to
	Pinned   bool   `json:"pinned,omitempty"`
	OwnSpec  bool   `json:"own_spec,omitempty"` // its spec is its own part alone, none of a release
	Observes bool   `json:"observes,omitempty"` // its spec is only compared with
	// Wave is the name of the first wave of its policy that selects it; "" =
	// none does.
	Wave string `json:"wave,omitempty"`
	// Labels are what budgets group by.
	Labels       map[string]string `json:"labels,omitempty"`
	Missing      []string          `json:"missing,omitempty"` // capabilities that the spec needs and the agent lacks
	Duplicate    bool              `json:"duplicate,omitempty"`
	ForgetBefore time.Time         `json:"forget_before,omitzero"`
	// Removed marks a device that is gone from the repository, or left over
	// from another policy: it gets no verdict, but its open attempt holds a
	// slot and its failures count.
	Removed bool `json:"removed,omitempty"`

	// What its last report says; Seen false means that there never was one.
	Seen      bool      `json:"seen"`
	InstallID string    `json:"install_id,omitempty"`
	Digest    string    `json:"digest,omitempty"` // of what it runs; "" = not told
	LastSeen  time.Time `json:"last_seen,omitzero"`
	// Since is since when the record says that the device is as it reports;
	// zero = not known. A wave's soak counts from it where the device is on
	// its target without an attempt of this rollout that ended ok; where it is
	// zero, such a device counts as having soaked.
	Since time.Time `json:"since,omitzero"`
	// HeardAt is what the record says of when it was heard, as far as a soak
	// depended on it: a control plane that has heard it earlier must not take
	// back what another one saw. Zero = the record says nothing; a soak goes by
	// the later of this and LastSeen. See [Verdict.Heard].
	HeardAt time.Time `json:"heard_at,omitzero"`
	// OfflineSince is what the record says of a device that is offline, so
	// that its reason stays the same whoever plans; zero = from LastSeen.
	OfflineSince time.Time     `json:"offline_since,omitzero"`
	Heartbeat    time.Duration `json:"heartbeat,omitempty"`
	BusyReason   string        `json:"busy_reason,omitempty"`
	HeldReason   string        `json:"held_reason,omitempty"` // set alone it holds as well
	Said         Said          `json:"said,omitzero"`

	Attempts []Attempt `json:"attempts,omitempty"` // oldest first
}

// Said is what the last report says of one attempt. A report that is not
// newer than the one last decided from has Fresh false and decides nothing;
// a report of another installation than that one is always fresh.
type Said struct {
	Fresh    bool   `json:"fresh,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
	Attempt  int64  `json:"attempt,omitempty"` // the attempt it names
	Phase    string `json:"phase,omitempty"`
	Begun    bool   `json:"begun,omitempty"`    // that attempt has changed something
	Starting bool   `json:"starting,omitempty"` // announces that attempt's start
	Outcome  string `json:"outcome,omitempty"`  // ok, failed, refused, exhausted, observed or ""
	Settled  bool   `json:"settled,omitempty"`
	// Recalled is the attempt whose recall the device has seen. Where Attempt
	// is another one, it had not begun the recalled one: a device that has
	// names it in Attempt.
	Recalled int64  `json:"recalled,omitempty"`
	Stage    string `json:"stage,omitempty"`
	Message  string `json:"message,omitempty"`
}

// ReleaseNone as an attempt's Release: the device had a spec of its own, or
// one that it only compared itself with, and how that went says nothing of any
// release.
const ReleaseNone = "none"

// Outcome is how an attempt ended; "" is an open attempt.
type Outcome string

// Outcomes of attempts.
const (
	OK        Outcome = "ok"
	Failed    Outcome = "failed"
	Lost      Outcome = "lost"
	Refused   Outcome = "refused"
	Exhausted Outcome = "exhausted"
	Observed  Outcome = "observed"
	Deferred  Outcome = "deferred"
	Unreached Outcome = "unreached"
)

// Attempt is one assignment of one target to one device.
type Attempt struct {
	Number    int64  `json:"number"`
	Policy    string `json:"policy,omitempty"`
	Line      string `json:"line,omitempty"`
	Target    Target `json:"target"`
	Rollout   string `json:"rollout,omitempty"`
	InstallID string `json:"install_id,omitempty"`
	Pinned    bool   `json:"pinned,omitempty"`
	// Release is the [Policy.Release] of the time of the assignment, or
	// [ReleaseNone]. Where either is empty, the failure of a device that was
	// taken out of the release is compared by Rollout instead.
	Release    string    `json:"release,omitempty"`
	AssignedAt time.Time `json:"assigned_at,omitzero"`
	// PickupFrom is when the pickup clock runs from, where the delivery had
	// to be repaired; zero = AssignedAt.
	PickupFrom time.Time `json:"pickup_from,omitzero"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	OnTargetAt time.Time `json:"on_target_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	// Because is why it ended so, or was recalled, in the words on record.
	Because string `json:"because,omitempty"`
	// Recalled is the outcome that the attempt gets if it turns out not to
	// have started; "" = it is not being recalled.
	Recalled Outcome `json:"recalled,omitempty"`
	// RecallDelivered says that the delivery ref is known to carry the
	// recall, that Said was read after that, and that it is not older than the
	// report last decided from. For a lost attempt it speaks of the document
	// that was published when the attempt ended.
	RecallDelivered bool `json:"recall_delivered,omitempty"`
}
