package preview

import (
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// shownLines is how many lines of a difference a preview of many devices
// shows: enough to recognise the change.
const shownLines = 12

// Input is everything that a preview depends on.
type Input struct {
	Now  time.Time
	Head Revision
	// Base is what the head is compared with; nil = what was assigned to the
	// devices, where a status was read, or else nothing. Note says why.
	Base *Revision
	Note string
	// Present is what is known of the devices, by id; nil = no status was read.
	Present map[string]Present
	// Standing is what the status branch tells that keeps the plan from coming
	// true yet, for the warnings.
	Standing []string
	// DeletionLimit is how many of so many devices may go at once; nil = it is
	// not known.
	DeletionLimit func(total int) int
}

// Revision is one revision of a fleet repository, loaded and planned. Both
// fleets have to be valid; they should come from one [schema.Loader], so that
// what they share is found at once.
type Revision struct {
	Place Place
	Fleet *schema.Fleet
	Plan  planner.Result
	// Read gives a payload of this revision that has a content id.
	Read func(id string) ([]byte, error)
}

// Present is one device as the status branch knows it.
type Present struct {
	Version string // that it runs; "" = it has not told
	Digest  string
	Policy  string // that governed it
	// Assigned is the spec that it was assigned last; a nil Spec says that
	// there is none, or that it was taken back.
	Assigned Side
	// Removed says that it had left the fleet already.
	Removed bool
}

// Side is what one device should be, on one side of a comparison.
type Side struct {
	Version string
	Digest  string
	Spec    map[string]any
	// Payloads are those of the spec, by digest, as far as they are known.
	Payloads map[string]schema.Payload
	// Read gives the bytes of a payload by its digest; nil = nobody can.
	Read func(digest string) ([]byte, error)
}

// size is that of a payload; 0 until it is read, where it is not known.
func (s Side) size(digest string) int64 { return s.Payloads[digest].Size }

// side is what a revision wants of a device.
func (r *Revision) side(m *schema.Member) Side {
	if m == nil || m.Rendered == nil {
		return Side{}
	}
	payloads := m.Rendered.Payloads
	return Side{
		Version: m.Version, Digest: m.Rendered.Digest, Spec: m.Rendered.Spec, Payloads: payloads,
		Read: func(digest string) ([]byte, error) {
			p := payloads[digest]
			if p.ID == "" {
				return p.Data, nil
			}
			return r.Read(p.ID)
		},
	}
}

// Compare says what the head would do that the base does not.
func Compare(in Input) *Plan {
	p := &Plan{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "Plan"},
		Head:     in.Head.Place, Note: in.Note,
		Changes: []Group{}, PolicyChanges: []PolicyChange{}, WorstCase: []Reach{},
		Membership: Membership{Added: []string{}, Removed: []string{}, Moved: []Move{}, NoTarget: []NoTarget{}, Settings: []DeviceSetting{}},
	}
	switch {
	case in.Base != nil:
		base := in.Base.Place
		p.Base = &base
	case in.Present != nil:
		p.Base = &Place{Name: "what was assigned"}
	}
	c := newComparer(in)
	p.verdicts(in)
	if p.Base != nil {
		p.Changes = c.groups()
		p.countGroups()
		p.Membership = c.membership()
	}
	if in.Base != nil {
		p.PolicyChanges = c.policies()
	}
	p.WorstCase = c.reach()
	p.Summary.Warnings = c.warnings(p)
	return p
}

// comparer is one comparison under way.
type comparer struct {
	Input
	contents *contents
	literals map[writtenAt]map[string]bool // see literalOf
	specs    map[string]Side               // see assigned; nil = not asked for yet
	again    map[versionOf]int             // devices whose version means something else, in git alone
}

func newComparer(in Input) *comparer {
	return &comparer{Input: in, contents: newContents(), literals: map[writtenAt]map[string]bool{}}
}

// versionOf is a version as a policy's devices know it.
type versionOf struct{ policy, version string }
