package schema

import "slices"

// Selector is a Kubernetes label selector; nil and empty match everything.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty"`
}

// Requirement is one expression of a [Selector].
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"` // In, NotIn, Exists, DoesNotExist
	Values   []string `json:"values,omitempty"`
}

// Operators of a [Requirement].
const (
	OpIn           = "In"
	OpNotIn        = "NotIn"
	OpExists       = "Exists"
	OpDoesNotExist = "DoesNotExist"
)

// Matches says whether the selector selects something with these labels, as
// Kubernetes would: every requirement holds, and NotIn holds for a label that
// is absent. The few lines stand here, because the library would cost every
// agent its dependencies. An unknown operator matches nothing.
func (s *Selector) Matches(labels map[string]string) bool {
	if s == nil {
		return true
	}
	for k, want := range s.MatchLabels {
		if got, ok := labels[k]; !ok || got != want {
			return false
		}
	}
	for i := range s.MatchExpressions {
		if !s.MatchExpressions[i].matches(labels) {
			return false
		}
	}
	return true
}

func (r *Requirement) matches(labels map[string]string) bool {
	value, ok := labels[r.Key]
	switch r.Operator {
	case OpIn:
		return ok && slices.Contains(r.Values, value)
	case OpNotIn:
		return !ok || !slices.Contains(r.Values, value)
	case OpExists:
		return ok
	case OpDoesNotExist:
		return !ok
	}
	return false
}
