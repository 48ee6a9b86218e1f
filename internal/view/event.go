package view

import (
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// Kinds of events.
const (
	EventAssigned  = "assigned"  // a spec was assigned to it
	EventStarted   = "started"   // a sweep saw that it had begun an attempt
	EventRecalled  = "recalled"  // an attempt was taken back
	EventEnded     = "ended"     // an attempt got its outcome
	EventVerdict   = "verdict"   // another verdict
	EventHeld      = "held"      // a hold began, or has another reason
	EventReleased  = "released"  // a hold is over
	EventPolicy    = "policy"    // another policy governs it
	EventMoved     = "moved"     // its document has another path
	EventRemoved   = "removed"   // it left the fleet
	EventReturned  = "returned"  // it is in the fleet again
	EventInstalled = "installed" // another installation reports
	EventVersion   = "version"   // it reports another version, without an attempt that says so
	EventOffline   = "offline"
	EventOnline    = "online"
)

// Event is something that happened to a device.
type Event struct {
	Time   time.Time `json:"time"`
	Text   string    `json:"text"`
	Commit string    `json:"commit,omitempty"` // of the status branch that recorded it
	Kind   string    `json:"kind"`

	// Of an attempt.
	Attempt int64          `json:"attempt,omitempty"`
	Version string         `json:"version,omitempty"`
	Digest  string         `json:"digest,omitempty"`
	Outcome schema.Outcome `json:"outcome,omitempty"`
	Stage   string         `json:"stage,omitempty"`
	Message string         `json:"message,omitempty"`
	// Because is the change of the source branch that led to an assignment.
	Because *schema.Because `json:"because,omitempty"`

	// Of a verdict, a policy, a path, an installation, a version or a hold;
	// of an assignment they are the verdicts before and after it.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Since is when From began, where that was read.
	Since  *time.Time `json:"since,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// Change is what one commit of the status branch changed of a device.
type Change struct {
	Commit        string
	Time          time.Time
	Before, After Standing
}

// Standing is a device on the status branch at one commit.
type Standing struct {
	Path       string
	Status     *schema.DeviceStatus // nil: it had none
	Assignment *schema.Assignment   // nil: none, or it was not read
}

// retiredLead is where the records of devices are that left the fleet.
const retiredLead = "retired/"

func (s *Standing) retired() bool { return strings.HasPrefix(s.Path, retiredLead) }

// gone says whether a device is out of the fleet: its record is retired, or
// its document says that it will be.
func (s *Standing) gone() bool {
	return s.retired() || s.Assignment != nil && s.Assignment.Removed
}
