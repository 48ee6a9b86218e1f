package schema

// Pilot is a trial before everything else: as long as Count devices of a
// rollout have not ended well and soaked, no more than Count are on their way.
type Pilot struct {
	Count int       `json:"count"`
	Soak  *Duration `json:"soak,omitempty"`
}

// Wave is one step of a rollout. A device belongs to the first wave of its
// policy that selects it, and to the rest, which comes last, where none does.
type Wave struct {
	Name     string    `json:"name"`
	Selector *Selector `json:"selector,omitempty"`
	// SuccessThreshold is always a percentage; absent = all.
	SuccessThreshold *IntOrPercent `json:"successThreshold,omitempty"`
	MinSuccess       int           `json:"minSuccess,omitempty"` // 0 = 1
	Soak             *Duration     `json:"soak,omitempty"`
	Optional         bool          `json:"optional,omitempty"`
}

// Budget limits how many devices of one group may be unavailable at a time.
// Devices with equal values for all labels of GroupBy are a group; those that
// lack a label have an equal value for it.
type Budget struct {
	GroupBy        []string     `json:"groupBy"`
	MaxUnavailable IntOrPercent `json:"maxUnavailable"` // 0 = nobody
}

// Wave gives the name of the first wave that selects a device with these
// labels; "" is the rest.
func (s *PolicySpec) Wave(labels map[string]string) string {
	for i := range s.Waves {
		if s.Waves[i].Selector.Matches(labels) {
			return s.Waves[i].Name
		}
	}
	return ""
}
