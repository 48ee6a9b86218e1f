package agentsocket

import (
	"path/filepath"
	"time"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// socketFile is below the root; /run is empty after a boot.
const socketFile = "run/gitopsd/agent.sock"

// Path is where the socket of the agent below a root is.
func Path(root string) string { return filepath.Join(root, filepath.FromSlash(socketFile)) }

// What a [Request] asks for.
const (
	DoStatus = "status"
	DoDiff   = "diff"
	DoRunNow = "run-now"
	DoHold   = "hold"
	DoUnhold = "unhold"
	DoSnooze = "snooze"
	DoWake   = "wake"
)

// Request is one question.
type Request struct {
	Do      string          `json:"do"`
	Reason  string          `json:"reason,omitempty"`  // hold, snooze
	For     schema.Duration `json:"for,omitempty"`     // snooze
	Current bool            `json:"current,omitempty"` // diff: with what the device should be now
}

// Reply is one line of an answer: an error, or what was asked for. That to
// run-now has two lines: what was fetched, and what came of it.
type Reply struct {
	Error      string                `json:"error,omitempty"`
	Standing   *reconcile.Standing   `json:"standing,omitempty"`
	Comparison *reconcile.Comparison `json:"comparison,omitempty"`
	Fetched    *reconcile.Fetched    `json:"fetched,omitempty"`
	Ran        *reconcile.Ran        `json:"ran,omitempty"`
	Done       *Done                 `json:"done,omitempty"`
}

// Done is the answer to a request that changes something.
type Done struct {
	Was   bool       `json:"was,omitempty"`   // there was something to end
	Until *time.Time `json:"until,omitempty"` // of a snooze
}
