package preview

import "github.com/gitopsd/gitopsd/schema"

// Before says what a change is compared with on a device.
type Before string

// What From of a group may be. Where a status was read, it is what the devices
// really have, as far as that is known.
const (
	// BeforeBase is what the base wants of them, if anything: they are new, they
	// only compare themselves with what is wanted, no status was read, or the base
	// is what was assigned.
	BeforeBase Before = "base"
	// BeforeRuns is what they run.
	BeforeRuns Before = "runs"
	// BeforeAssigned is what they were assigned and do not run yet.
	BeforeAssigned Before = "assigned"
	// BeforeNothing says that nothing of the fleet is on them yet.
	BeforeNothing Before = "nothing"
	// BeforeUnread is what the base wants of them, for want of what they run:
	// nothing but its digest is at hand.
	BeforeUnread Before = "unread"
)

// before is what a device has when a change comes to it.
type before struct {
	side   Side
	is     Before
	policy string // that governed it
	wanted string // version that the base wants of it, where side is another spec; "" = the same
	// already says that it runs what the head wants.
	already bool
}

// wanted is what a device should have been: by the base, or without one by what
// it was assigned; and the policy that governed it.
func (c *comparer) wanted(id string) (Side, string) {
	if c.Base != nil {
		m := c.Base.Fleet.Member(id)
		if m == nil {
			return Side{}, ""
		}
		return c.Base.side(m), m.Policy
	}
	p := c.Present[id]
	return p.Assigned, p.Policy
}

// before finds what a device has of which the head wants another spec than was
// wanted.
func (c *comparer) before(m *schema.Member, to Side) before {
	wanted, policy := c.wanted(m.ID)
	b := before{side: wanted, is: BeforeBase, policy: policy}
	p := c.Present[m.ID]
	switch {
	case c.runs(m.ID, to):
		b.side, b.is, b.already = to, BeforeRuns, true
		return b
	case c.Base == nil, c.Present == nil, observes(wanted.Spec), observes(to.Spec):
		return b
	case p.Digest == "" && p.Assigned.Spec == nil:
		if wanted.Spec != nil {
			b.side, b.is = Side{Version: p.Version}, BeforeNothing
		}
		return b
	case p.Digest != "" && p.Digest == wanted.Digest:
		b.is = BeforeRuns
		b.side.Version = p.Version
	case c.assigned(p.Digest).Spec != nil:
		b.side, b.is = c.assigned(p.Digest), BeforeRuns
		b.side.Version = p.Version
	case p.Assigned.Spec != nil && !sameSpec(p.Assigned, to):
		b.side, b.is = p.Assigned, BeforeAssigned
	case wanted.Spec == nil:
		b.side, b.is = Side{Version: p.Version, Digest: p.Digest}, BeforeRuns
	default:
		b.is = BeforeUnread
	}
	if !sameSpec(b.side, wanted) {
		b.wanted = wanted.Version
	}
	return b
}

// assigned is the spec of a digest, where any device was assigned it last: one
// that was put back runs what the others still have. What it reports may be a
// lie, to be shown what is another's: see literal.
func (c *comparer) assigned(digest string) Side {
	if c.specs == nil {
		c.specs = map[string]Side{}
		for _, p := range c.Present {
			if p.Assigned.Spec != nil {
				c.specs[p.Assigned.Digest] = p.Assigned
			}
		}
	}
	return c.specs[digest]
}

// sameSpec says whether two sides are the same version of the same content.
func sameSpec(a, b Side) bool { return a.Version == b.Version && a.Digest == b.Digest }
