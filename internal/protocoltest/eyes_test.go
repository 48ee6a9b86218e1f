package protocoltest

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/gitopsd/gitopsd/schema"
)

// recorded is what the ghost reads of a DeviceStatus. It has its own eyes: a
// fault in package schema would be one in both places otherwise.
type recorded struct {
	Metadata struct{ Name string }
	Verdict  struct{ Code, Reason string }
	Observed *observed
	Attempts []attempt
}

type observed struct {
	InstallID string `yaml:"installID"`
	Sequence  int64
	Version   string
	Online    bool
	Held      string
	Busy      bool
	Phase     schema.Phase
}

type attempt struct {
	Attempt    int64
	Policy     string
	Version    string
	Rollout    string
	Pinned     bool
	InstallID  string     `yaml:"installID"`
	AssignedAt time.Time  `yaml:"assignedAt"`
	StartedAt  *time.Time `yaml:"startedAt"`
	OnTargetAt *time.Time `yaml:"onTargetAt"`
	EndedAt    *time.Time `yaml:"endedAt"`
	Outcome    schema.Outcome
	Message    string
	Recall     *struct {
		Outcome schema.Outcome
		Because string
		At      time.Time
	}
}

// document is what it reads of an Assignment.
type document struct {
	Metadata   struct{ Name string }
	Generation int64
	For        string
	Attempt    int64
	Recalled   int64
	Removed    bool
	Spec       map[string]any
}

// told is what it reads of a Report.
type told struct {
	InstallID string `yaml:"installID"`
	Attempt   int64
	Phase     schema.Phase
}

func decodeBlob[T any](g *ghost, blob string) *T {
	if v, ok := g.decoded[blob].(*T); ok {
		return v
	}
	v := new(T)
	if err := yaml.Unmarshal(g.git.Content(blob), v); err != nil {
		g.violate("a document cannot be read: %v", err)
		return nil
	}
	g.decoded[blob] = v
	return v
}
