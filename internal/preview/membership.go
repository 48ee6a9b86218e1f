package preview

import (
	"cmp"
	"slices"
)

// membership is who comes, goes, and is governed by another policy.
func (c *comparer) membership() Membership {
	m := Membership{Added: []string{}, Removed: []string{}, Moved: []Move{}, NoTarget: []NoTarget{}, Settings: []DeviceSetting{}}
	if c.Base != nil {
		for _, b := range c.Base.Fleet.Devices {
			if c.Head.Fleet.Member(b.ID) == nil {
				m.Removed = append(m.Removed, b.ID)
			}
		}
	} else {
		for id, p := range c.Present {
			if !p.Removed && c.Head.Fleet.Member(id) == nil {
				m.Removed = append(m.Removed, id)
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
			if from, _ := c.wanted(h.ID); from.Spec != nil {
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
	m.Settings = c.settings()
	if c.DeletionLimit != nil {
		_, total := c.gone()
		m.DeletionLimit = c.DeletionLimit(total)
	}
	return m
}

// gone counts the devices that are not in the head, and those that were there:
// by the status, where one was read, since the guard of the sweep counts so.
func (c *comparer) gone() (gone, total int) {
	count := func(id string) {
		total++
		if c.Head.Fleet.Member(id) == nil {
			gone++
		}
	}
	switch {
	case c.Present != nil:
		for id, p := range c.Present {
			if !p.Removed {
				count(id)
			}
		}
	case c.Base != nil:
		for _, m := range c.Base.Fleet.Devices {
			count(m.ID)
		}
	}
	return gone, total
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

// Way is what devices that come from one policy and go to one have in common.
type Way struct {
	From, To string // "" = no policy
	Devices  []string
}

// Ways are the moves, which are in order, with those that are alike together.
func (m *Membership) Ways() []Way {
	var ways []Way
	for _, v := range m.Moved {
		if n := len(ways); n == 0 || ways[n-1].From != v.From || ways[n-1].To != v.To {
			ways = append(ways, Way{From: v.From, To: v.To})
		}
		last := &ways[len(ways)-1]
		last.Devices = append(last.Devices, v.Device)
	}
	return ways
}
