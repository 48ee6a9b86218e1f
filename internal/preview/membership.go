package preview

import (
	"cmp"
	"slices"
)

// membership is who comes, goes, and is governed by another policy.
func (c *comparer) membership() Membership {
	m := Membership{Added: []string{}, Removed: []string{}, Moved: []Move{}, NoTarget: []NoTarget{}}
	total := 0
	gone := func(id string) {
		if c.Head.Fleet.Member(id) == nil {
			m.Removed = append(m.Removed, id)
		}
	}
	if c.Base != nil {
		for _, b := range c.Base.Fleet.Devices {
			gone(b.ID)
		}
		total = len(c.Base.Fleet.Devices)
	}
	if c.Present != nil {
		total = 0
		for id, p := range c.Present {
			if p.Removed {
				continue
			}
			total++
			if c.Base == nil {
				gone(id)
			}
		}
	}
	for _, h := range c.Head.Fleet.Devices {
		had, policy := c.was(h.ID)
		switch {
		case !had:
			m.Added = append(m.Added, h.ID)
			continue
		case policy != h.Policy:
			m.Moved = append(m.Moved, Move{Device: h.ID, From: policy, To: h.Policy})
		}
		if h.NoTarget != "" && h.Policy != "" {
			if from, _ := c.before(h.ID); from.Spec != nil {
				m.NoTarget = append(m.NoTarget, NoTarget{Device: h.ID, Reason: h.NoTarget})
			}
		}
	}
	slices.Sort(m.Added)
	slices.Sort(m.Removed)
	slices.SortFunc(m.Moved, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Device, b.Device))
	})
	slices.SortFunc(m.NoTarget, func(a, b NoTarget) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Device, b.Device))
	})
	if c.DeletionLimit != nil {
		m.DeletionLimit = c.DeletionLimit(total)
	}
	return m
}

// was says whether a device was there, and which policy governed it.
func (c *comparer) was(id string) (bool, string) {
	if c.Base != nil {
		b := c.Base.Fleet.Member(id)
		if b == nil {
			return false, ""
		}
		return true, b.Policy
	}
	p, known := c.Present[id]
	return known && !p.Removed, p.Policy
}
