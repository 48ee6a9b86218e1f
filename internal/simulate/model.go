package simulate

import (
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// States in which a simulation ends.
const (
	Finished   = "finished"   // nothing will change any more by itself
	Unfinished = "unfinished" // it looked no further ahead
)

// Simulation is how a rollout unfolds. Its JSON is that of gitopsd simulate.
type Simulation struct {
	schema.TypeMeta
	Assumptions Assumptions `json:"assumptions"`
	// Assumed says that no status was read: devices count as seen, online, idle
	// and on nothing yet. MadeUp is how many of them were invented.
	Assumed bool   `json:"assumed,omitempty"`
	MadeUp  int    `json:"madeUp,omitempty"`
	By      string `json:"by"` // the label that sites are told apart by

	Start time.Time `json:"start"`
	// End is when the last thing happened, or as far as was looked ahead.
	End   time.Time `json:"end"`
	State string    `json:"state"` // finished or unfinished
	// Total are all devices, Current those on their target at the beginning,
	// Arrived those that reached it, Remaining those that are to and do not.
	Total     int `json:"total"`
	Current   int `json:"current"`
	Arrived   int `json:"arrived"`
	Remaining int `json:"remaining"`
	// DoneAt is when the last device arrived that does.
	DoneAt time.Time `json:"doneAt,omitzero"`

	// InFlight is how many devices were unavailable at one time because of
	// updates, as limits count it: from the assignment until they were done.
	// Working is how many were really at work: from the start until they ran
	// the target or what they had before.
	InFlight Peak `json:"inFlight"`
	Working  Peak `json:"working"`
	// Sites is the most devices in flight of each site.
	Sites []SitePeak `json:"sites"`

	Policies   []Policy    `json:"policies"`
	Never      []Obstacle  `json:"never"`
	BadRelease *BadRelease `json:"badRelease,omitempty"` // nil = it was not asked for
	Devices    []Device    `json:"devices"`
	// Counts are the verdicts at the end by their codes.
	Counts map[string]int `json:"counts"`
	// Warnings say where the assumptions and the fleet do not go together.
	Warnings []string `json:"warnings"`
	Plans    int      `json:"plans"` // how often the planner was asked
}

// Peak is the most devices at one time, and when that was first so.
type Peak struct {
	Devices int       `json:"devices"`
	At      time.Time `json:"at,omitzero"`
}

// SitePeak is the peak of one site.
type SitePeak struct {
	Site string `json:"site"` // "" = of the devices without the label
	Of   int    `json:"of"`   // its devices
	Peak
}

// Policy is how a policy's rollout went.
type Policy struct {
	Policy string `json:"policy"`
	Target string `json:"target"`
	Progress
	Failed  int    `json:"failed"`  // devices that count as failed at the end
	Refused int    `json:"refused"` // devices that count as refused
	Halted  bool   `json:"halted"`
	Waves   []Wave `json:"waves"`
}

// Wave is how far one wave of a policy got.
type Wave struct {
	Wave string `json:"wave"` // "" = the devices of no other wave
	Progress
	Sites []Site `json:"sites"`
}

// Site is how far the devices of one site in one wave got.
type Site struct {
	Site string `json:"site"` // "" = those without the label
	Progress
}

// Progress is how far some devices got.
type Progress struct {
	Devices int `json:"devices"`
	Current int `json:"current"` // were there at the beginning
	Arrived int `json:"arrived"` // got there
	// FirstAt is the first assignment, DoneAt the last arrival.
	FirstAt time.Time `json:"firstAt,omitzero"`
	DoneAt  time.Time `json:"doneAt,omitzero"`
}

// Obstacle is why some devices never get to their target: the verdict that
// they have at the end. Where the reason has a device's own time in it
// ("offline since …"), it is that of the first device in the fleet's order.
type Obstacle struct {
	Policy  string   `json:"policy"`
	Code    string   `json:"code"`
	Reason  string   `json:"reason"`
	Detail  string   `json:"detail,omitempty"` // what moves with other devices
	Devices []string `json:"devices"`
}

// BadRelease is what happens if every update fails.
type BadRelease struct {
	Started  int       `json:"started"` // devices that begin it
	Policies []Reached `json:"policies"`
}

// Reached is how far a bad release of one policy gets.
type Reached struct {
	Policy  string    `json:"policy"`
	Target  string    `json:"target"`
	Started int       `json:"started"`         // devices that begin it
	Of      int       `json:"of"`              // devices that were to get it
	LastAt  time.Time `json:"lastAt,omitzero"` // when the last of them began
	Halted  bool      `json:"halted"`
}

// Device is what became of one device.
type Device struct {
	Device string `json:"device"`
	Policy string `json:"policy,omitempty"`
	Wave   string `json:"wave,omitempty"`
	Site   string `json:"site,omitempty"`
	Target string `json:"target,omitempty"`
	Pinned bool   `json:"pinned,omitempty"` // it stands outside of waves and halts
	// Attempts is how many it was assigned, Failures how many of those failed
	// or were lost.
	Attempts int `json:"attempts"`
	Failures int `json:"failures"`
	// AssignedAt is its first assignment, StartedAt its first start, DoneAt
	// when it was done; FailedAt is its last failure.
	AssignedAt time.Time `json:"assignedAt,omitzero"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	DoneAt     time.Time `json:"doneAt,omitzero"`
	FailedAt   time.Time `json:"failedAt,omitzero"`
	// Current says that it was on its target at the beginning.
	Current bool   `json:"current,omitempty"`
	Code    string `json:"code"` // of its verdict at the end
	Reason  string `json:"reason"`
}
