package preview

import (
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// Plan is what a change of a fleet would do. Its JSON is that of gitopsd plan.
type Plan struct {
	schema.TypeMeta
	Head Place `json:"head"`
	// Base is what the head was compared with; nil = with nothing, and Note
	// says why.
	Base *Place `json:"base,omitempty"`
	Note string `json:"note,omitempty"`

	Changes       []Group        `json:"changes"`
	PolicyChanges []PolicyChange `json:"policyChanges"`
	Membership    Membership     `json:"membership"`
	WorstCase     []Reach        `json:"worstCase"`

	Verdicts []Verdict `json:"verdicts"`
	Recalls  []Recall  `json:"recalls"`
	Summary  Summary   `json:"summary"`
}

// Place is one side of a comparison.
type Place struct {
	Name   string `json:"name"`             // as people call it: "working tree", "main~1"
	Commit string `json:"commit,omitempty"` // "" = no commit: a working tree, or what was assigned
}

// Group is one change that several devices have in common.
type Group struct {
	Devices  []string `json:"devices"`
	Policies []string `json:"policies"`
	From     string   `json:"from,omitempty"` // version; "" = there was none
	To       string   `json:"to,omitempty"`
	Before   Before   `json:"before"` // what From is
	// Wanted is the version that the base wants of the devices, where From is
	// another spec.
	Wanted string `json:"wanted,omitempty"`
	// Changes are what the devices get; none where only the version is another
	// one, where they run it already, and where nothing is on them yet: they get
	// all of it.
	Changes []Change `json:"changes"`
	// Unknown says that the devices have a spec which cannot be read here.
	Unknown bool `json:"unknown,omitempty"`
	// Variants is how many different changes of one form were put together: 1
	// where all are equal. Else the values shown are those of Example.
	Variants int    `json:"variants"`
	Example  string `json:"example,omitempty"`
	Effect   Effect `json:"effect"`
	// Counts are the devices by their verdict in the next sweep.
	Counts map[string]int `json:"counts"`
}

// Ways in which something may differ.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Change is one element of a spec that differs: a file, a hook, the image.
type Change struct {
	Pointer string   `json:"pointer"`        // in the spec as assigned
	Section string   `json:"section"`        // files, hooks, os …
	Name    string   `json:"name,omitempty"` // within the section: a path, afterUpdating/check
	Op      string   `json:"op"`
	Fields  []Field  `json:"fields"`
	Content *Content `json:"content,omitempty"`
	// Varies says that the devices of the group differ here.
	Varies bool `json:"varies,omitempty"`
}

// Field is one value of an element, on one line; "" = it is not set.
type Field struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Where the values were written, where that was asked for.
	FromOrigin string `json:"fromOrigin,omitempty"` // file:line
	ToOrigin   string `json:"toOrigin,omitempty"`
}

// Content is what becomes of the content of a file.
type Content struct {
	From       int64  `json:"from"` // size in bytes; -1 = there was no content
	To         int64  `json:"to"`
	Binary     bool   `json:"binary,omitempty"`
	Hidden     string `json:"hidden,omitempty"` // why no lines are shown
	Inserted   int    `json:"inserted"`         // lines
	Deleted    int    `json:"deleted"`
	Lines      []Line `json:"lines"` // of the unified difference, as far as it is shown
	More       int    `json:"more,omitempty"`
	FromOrigin string `json:"fromOrigin,omitempty"`
	ToOrigin   string `json:"toOrigin,omitempty"`

	rest []byte // identifies the lines that are not shown
}

// Line is one line of a unified difference, its first character included.
type Line = string

// Effect is what a device does about a change.
type Effect struct {
	Observes bool     `json:"observes,omitempty"` // the device only compares itself, and the rest is empty
	Already  bool     `json:"already,omitempty"`  // the device runs it already, and the rest is empty
	Applies  bool     `json:"applies,omitempty"`  // the device had only compared itself before
	Hooks    []string `json:"hooks"`              // that run, in the order of their points
	Starts   []string `json:"starts,omitempty"`   // units and applications that are new
	Restarts []string `json:"restarts,omitempty"` // other units that start or restart, as far as they run, applications, and the agent itself
	Reloads  []string `json:"reloads,omitempty"`  // units, as far as they run
	Stops    []string `json:"stops,omitempty"`    // units that stay and are not to run any more
	Removes  []string `json:"removes,omitempty"`  // units and applications that stop and go
	PutsBack []string `json:"putsBack,omitempty"` // units of the device itself that become what they were before any spec
	Reboot   string   `json:"reboot,omitempty"`   // the image that it boots into; "" = it does not
	Download Download `json:"download"`
	// Again says that the version stays what it was and means something else:
	// devices that are done are updated once more.
	Again bool `json:"again,omitempty"`
}

// Download is the size of the payloads that devices do not have yet.
type Download struct {
	Total int64 `json:"total"` // bytes, all devices together
	Least int64 `json:"least"` // of one device
	Most  int64 `json:"most"`
	// Bound says that it is not known what some of the devices have: they
	// may need less.
	Bound bool `json:"bound,omitempty"`
}

// PolicyChange is what becomes of one policy, or of the settings of the
// whole fleet, which have no name.
type PolicyChange struct {
	Policy string        `json:"policy"`
	Op     string        `json:"op"`
	Fields []PolicyField `json:"fields"`
	// MayGoBefore and MayGo are the devices that the gates of the policy let
	// go now, as soon as there is a slot, before any other wave opens.
	MayGoBefore int `json:"mayGoBefore"`
	MayGo       int `json:"mayGo"`
	// SoonBefore and Soon are those that wait for a time that is known and
	// comes within a day from now, such as the end of a soak.
	SoonBefore int `json:"soonBefore"`
	Soon       int `json:"soon"`
}

// PolicyField is one setting that differs.
type PolicyField struct {
	Field string `json:"field"` // waves[canary].soak
	Words string `json:"words"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	// Careful is "less" or "more" where one is plainly more careful.
	Careful string `json:"careful,omitempty"`
}

// Membership is who comes, goes, and changes sides.
type Membership struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Moved   []Move   `json:"moved"`
	// NoTarget are the devices that had something to be, and have no more.
	NoTarget []NoTarget `json:"noTarget"`
	// Settings are what the devices' own files say otherwise than before.
	Settings []DeviceSetting `json:"settings"`
	// DeletionLimit is how many devices may go at once; 0 = it is not known.
	DeletionLimit int `json:"deletionLimit,omitempty"`
}

// Move is a device that another policy governs; "" = none.
type Move struct {
	Device string `json:"device"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
}

// NoTarget is a device that has nowhere to go, and why.
type NoTarget struct {
	Device string `json:"device"`
	Reason string `json:"reason"`
}

// DeviceSetting is a hold, a pin or the like that comes, goes or changes.
type DeviceSetting struct {
	Device string `json:"device"`
	Field  string `json:"field"` // of the device's spec
	Words  string `json:"words"`
}

// Reach is how many devices of a policy a bad release gets to at most.
type Reach struct {
	Policy  string   `json:"policy"`
	Target  string   `json:"target"`
	Devices int      `json:"devices"`
	Of      int      `json:"of"`    // that are to get it
	Words   []string `json:"words"` // the arithmetic
	// NeverSeen are those of them that have not reported yet. They count as if
	// they had, because nothing is assigned to them before.
	NeverSeen int `json:"neverSeen,omitempty"`
}

// Verdict is what the next sweep would say of one device.
type Verdict struct {
	Device    string     `json:"device"`
	Policy    string     `json:"policy"`
	Upgrade   bool       `json:"upgrade"`
	Code      string     `json:"code"`
	Reason    string     `json:"reason"`
	Version   string     `json:"version"` // that it runs
	Target    string     `json:"target"`
	Wave      string     `json:"wave,omitempty"`
	Detail    string     `json:"detail,omitempty"`
	Position  int        `json:"position,omitempty"`
	NotBefore *time.Time `json:"notBefore,omitempty"`
}

// Recall is an attempt that the next sweep would take back.
type Recall struct {
	Device  string `json:"device"`
	Attempt int64  `json:"attempt"`
	Because string `json:"because"`
}

// Summary counts.
type Summary struct {
	// Assumed says that no status was read: devices count as seen, online,
	// idle and capable, at v0.0.0.
	Assumed  bool           `json:"assumed"`
	Upgrades int            `json:"upgrades"`
	Recalls  int            `json:"recalls"`
	Counts   map[string]int `json:"counts"`
	Policies []PolicyState  `json:"policies"`
	Warnings []string       `json:"warnings"`
}

// PolicyState is one policy as the next sweep would find it.
type PolicyState struct {
	Policy    string   `json:"policy"`
	Target    string   `json:"target"`
	Devices   int      `json:"devices"` // that are not absent
	Slots     int      `json:"slots"`
	InFlight  int      `json:"inFlight"`
	Available int      `json:"available"`
	Failed    int      `json:"failed"`
	Refused   int      `json:"refused"`
	Halted    bool     `json:"halted"`
	HaltedBy  []string `json:"haltedBy"`
	// Waves are the names of the policy's waves in their order; "" is that of
	// the devices without one.
	Waves []string `json:"waves"`
}
