package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// Kinds of the documents that this package makes.
const (
	KindFleetView   schema.Kind = "FleetView"
	KindExplanation schema.Kind = "Explanation"
)

// Status is the status branch of a fleet at one commit.
type Status struct {
	Commit  string
	Fleet   *schema.FleetStatus             // nil before the first sweep
	Devices map[string]*schema.DeviceStatus // by path
	Marks   []*schema.FailureMarks
	Holds   map[string]string // by path: reasons of the holds in the fleet repository
	Gone    map[string]bool   // by path: its document was removed, its record not yet
	// Reports are what devices said last, by id, where that was read.
	Reports map[string]*schema.Report
	Head    string // of the source branch; "" = not known
	// Ahead is how many commits of Head were not swept yet; 0 = none, or not
	// counted.
	Ahead int
}

// FleetView is the fleet at a glance.
type FleetView struct {
	schema.TypeMeta
	Branch       string                 `json:"branch"`
	SourceCommit string                 `json:"sourceCommit"` // the commit that was swept last
	Subject      string                 `json:"subject"`
	Author       string                 `json:"author"`
	StatusCommit string                 `json:"statusCommit"`
	SweptAt      time.Time              `json:"sweptAt"`         // of the last sweep that changed something
	Head         string                 `json:"head,omitempty"`  // of the source branch now, where it is known
	Ahead        int                    `json:"ahead,omitempty"` // commits of head that were not swept yet, where they were counted
	Conditions   []schema.Condition     `json:"conditions"`
	Counts       map[string]int         `json:"counts"` // devices by code
	Rollouts     []schema.RolloutStatus `json:"rollouts"`
	Devices      []DeviceView           `json:"devices"`
	// HaltedByGone are, by policy, devices that have left the fleet and go on to
	// count for its halt.
	HaltedByGone map[string][]string `json:"haltedByGone,omitempty"`
}

// DeviceView is one device of a [FleetView].
type DeviceView struct {
	Device       string     `json:"device"`
	Path         string     `json:"path"`
	Policy       string     `json:"policy"`
	Code         string     `json:"code"`
	Upgrade      bool       `json:"upgrade"`
	Reason       string     `json:"reason"`
	Target       string     `json:"target"`
	Version      string     `json:"version"` // that it reports
	Phase        string     `json:"phase"`
	PhaseReason  string     `json:"phaseReason,omitempty"`
	Since        *time.Time `json:"since,omitempty"` // when the daemon first saw this phase
	Online       bool       `json:"online"`
	OfflineSince *time.Time `json:"offlineSince,omitempty"`
	Attempt      int64      `json:"attempt"`    // the newest one; 0 = none yet
	Reported     int64      `json:"reported"`   // the attempt that version and phase speak of
	Generation   int64      `json:"generation"` // of its assignment
	Position     int        `json:"position"`   // in its policy's queue, from 1; 0 = not among the next
	Limit        string     `json:"limit,omitempty"`
	Failure      *Failure   `json:"failure,omitempty"` // of its newest attempt
	AlsoHeld     []Hold     `json:"alsoHeld,omitempty"`
	// Trouble is what does not run on the device by its newest report, whatever
	// the verdict: applications, units, monitors that are critical, and drift
	// that could not be repaired.
	Trouble []string `json:"trouble,omitempty"`
	// Gone says that its document left the fleet repository: it is no device of
	// its policy any more.
	Gone bool `json:"gone,omitempty"`
	// WouldChange counts what separates a device from the spec that it observes.
	WouldChange *int `json:"wouldChange,omitempty"`
}

// Hold is one that the verdict does not speak of: another code comes before
// it, or another hold.
type Hold struct {
	Where  string `json:"where"` // git or device
	Reason string `json:"reason"`
}

// Places of a hold.
const (
	heldInGit    = "git"
	heldOnDevice = "device"
)

// Failure is what became of an attempt that did not end well.
type Failure struct {
	Attempt int64          `json:"attempt"`
	Version string         `json:"version"`
	Outcome schema.Outcome `json:"outcome"`
	At      time.Time      `json:"at"`
	Stage   string         `json:"stage,omitempty"`
	Message string         `json:"message,omitempty"`
}

// NewFleet joins the documents of the status branch. Devices are sorted by
// id, rollouts by policy.
func NewFleet(branch string, st Status) *FleetView {
	v := &FleetView{
		TypeMeta:     schema.TypeMeta{APIVersion: schema.APIVersion, Kind: KindFleetView},
		Branch:       branch,
		StatusCommit: st.Commit,
		Head:         st.Head,
		Ahead:        st.Ahead,
		Conditions:   []schema.Condition{},
		Counts:       map[string]int{},
		Rollouts:     []schema.RolloutStatus{},
		Devices:      []DeviceView{},
	}
	if f := st.Fleet; f != nil {
		v.SourceCommit, v.Subject, v.Author, v.SweptAt = f.SourceCommit, f.Subject, f.Author, f.SweptAt
		v.Conditions = append(v.Conditions, f.Conditions...)
		for code, n := range f.Counts {
			v.Counts[code] = n
		}
		for _, r := range f.Rollouts {
			v.Rollouts = append(v.Rollouts, whole(r))
		}
		slices.SortStableFunc(v.Rollouts, func(a, b schema.RolloutStatus) int { return cmp.Compare(a.Policy, b.Policy) })
	}
	for path, d := range st.Devices {
		one := device(path, d, v.rollout(d.Policy), st.Holds[path])
		one.hear(d, st.Reports[one.Device])
		one.Gone = st.Gone[path]
		v.Devices = append(v.Devices, one)
	}
	slices.SortFunc(v.Devices, func(a, b DeviceView) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Path, b.Path))
	})
	v.haltedByGone(st.Marks)
	return v
}

// haltedByGone finds who stands in no list of devices and keeps a policy halted.
func (v *FleetView) haltedByGone(marks []*schema.FailureMarks) {
	present := map[string]bool{}
	for i := range v.Devices {
		present[v.Devices[i].Device] = !v.Devices[i].Gone
	}
	for _, m := range marks {
		for _, mark := range newestMarks(m, nil) {
			if present[mark.Device] {
				continue
			}
			if v.HaltedByGone == nil {
				v.HaltedByGone = map[string][]string{}
			}
			v.HaltedByGone[m.Policy] = append(v.HaltedByGone[m.Policy], mark.Device)
		}
	}
}

// whole gives a rollout whose lists are not nil.
func whole(r schema.RolloutStatus) schema.RolloutStatus {
	r.InFlight = append([]schema.InFlight{}, r.InFlight...)
	r.Next = append([]string{}, r.Next...)
	r.Failed = append([]string{}, r.Failed...)
	return r
}

func (v *FleetView) rollout(policy string) *schema.RolloutStatus {
	for i := range v.Rollouts {
		if v.Rollouts[i].Policy == policy && policy != "" {
			return &v.Rollouts[i]
		}
	}
	return nil
}

func device(path string, d *schema.DeviceStatus, r *schema.RolloutStatus, hold string) DeviceView {
	v := DeviceView{
		Device: d.Metadata.Name, Path: path, Policy: d.Policy,
		Code: d.Verdict.Code, Upgrade: d.Verdict.Upgrade, Reason: d.Verdict.Reason, Target: d.Verdict.Target,
	}
	if d.Assignment != nil {
		v.Generation = d.Assignment.Generation
	}
	if o := d.Observed; o != nil {
		v.Version, v.Phase, v.Online, v.OfflineSince, v.Reported = o.Version, string(o.Phase), o.Online, o.OfflineSince, o.Attempt
		v.PhaseReason = o.Reason
		if !o.Since.IsZero() {
			since := o.Since
			v.Since = &since
		}
	}
	v.AlsoHeld = alsoHeld(d, hold)
	if n := len(d.Attempts); n > 0 {
		last := d.Attempts[n-1]
		v.Attempt = last.Attempt
		v.Failure = failure(last)
	}
	if r != nil && d.Verdict.Code == string(planner.Queued) {
		v.Position = slices.Index(r.Next, v.Device) + 1
		v.Limit = r.Limit
	}
	return v
}

// alsoHeld lists the holds that the verdict does not name.
func alsoHeld(d *schema.DeviceStatus, inGit string) []Hold {
	var list []Hold
	add := func(where, reason string) {
		if reason == "" || d.Verdict.Code == string(planner.Held) && strings.Contains(d.Verdict.Reason, reason) {
			return
		}
		list = append(list, Hold{Where: where, Reason: reason})
	}
	add(heldInGit, inGit)
	if d.Observed != nil {
		add(heldOnDevice, d.Observed.Held)
	}
	return list
}

// failure is nil for an attempt that is open or has harmed nobody.
func failure(a schema.Attempt) *Failure {
	switch a.Outcome {
	case schema.OutcomeFailed, schema.OutcomeLost, schema.OutcomeRefused, schema.OutcomeExhausted:
	default:
		return nil
	}
	f := &Failure{Attempt: a.Attempt, Version: a.Version, Outcome: a.Outcome, Stage: a.Stage, Message: a.Message}
	if a.EndedAt != nil {
		f.At = *a.EndedAt
	}
	return f
}

// Short is a commit's hash as people write it.
func Short(commit string) string {
	const length = 7 // as git abbreviates
	if len(commit) > length {
		return commit[:length]
	}
	return commit
}
