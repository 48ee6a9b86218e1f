package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/gitopsd/gitopsd/planner"
)

// warnings are what an author should know before the change is merged.
func (c *comparer) warnings(p *Plan) []string {
	list := append(slices.Clone(c.Standing), c.updatedAgain()...)
	list = append(list, c.staysNewer()...)
	list = append(list, c.goesBack()...)
	list = append(list, c.leaves(p)...)
	for _, s := range c.Head.Plan.Policies {
		for _, w := range s.Warnings {
			list = append(list, s.Policy+": "+w)
		}
	}
	slices.Sort(list)
	return append([]string{}, slices.Compact(list)...)
}

// updatedAgain names versions that now mean something else. Where a status was
// read, the devices that are on one of them count; else those that should be.
func (c *comparer) updatedAgain() []string {
	again := c.again
	if c.Present != nil {
		again = map[versionOf]int{}
		for i := range c.Head.Plan.Verdicts {
			v := &c.Head.Plan.Verdicts[i]
			d := &v.Device
			if !d.Observes && v.Target.Version == d.Version && d.Digest != "" && v.Target.Digest != d.Digest &&
				v.Code != planner.Current && v.Code != planner.Upgrading {
				again[versionOf{d.Policy, d.Version}]++
			}
		}
	}
	var list []string
	for v, n := range again {
		list = append(list, fmt.Sprintf("%s: the content of %s has changed: %s on it will be updated again", v.policy, v.version, devices(n)))
	}
	return list
}

// behind are devices that a target leaves where they are.
type behind struct{ policy, version, target string }

// newer counts the devices that are newer than their target.
func (c *comparer) newer() map[behind]int {
	newer := map[behind]int{}
	for i := range c.Head.Plan.Verdicts {
		if v := &c.Head.Plan.Verdicts[i]; v.Code == planner.Newer {
			newer[behind{v.Device.Policy, v.Device.Version, v.Target.Version}]++
		}
	}
	return newer
}

// staysNewer names devices that a target leaves behind.
func (c *comparer) staysNewer() []string {
	var list []string
	for g, n := range c.newer() {
		list = append(list, fmt.Sprintf("%s: %s on %s, newer than the target %s, will stay there; rollbackFrom: [%s] would let %s go down",
			g.policy, devices(n), g.version, g.target, g.version, pick(n == 1, "it", "them")))
	}
	return list
}

// goesBack names policies whose target falls though nobody may go down, where
// no status tells which devices that concerns.
func (c *comparer) goesBack() []string {
	if c.Base == nil {
		return nil
	}
	newer := c.newer()
	var list []string
	for _, head := range c.Head.Fleet.Policies {
		name := head.Metadata.Name
		base := c.Base.Fleet.Policy(name)
		if base == nil {
			continue
		}
		from, to := base.Spec.TargetVersion, head.Spec.TargetVersion
		a, errA := semver.NewVersion(from)
		b, errB := semver.NewVersion(to)
		if errA != nil || errB != nil || !b.LessThan(a) || slices.Contains(head.Spec.RollbackFrom, from) || newer[behind{name, from, to}] > 0 {
			continue
		}
		list = append(list, fmt.Sprintf("%s: the target goes back from %s to %s, and rollbackFrom does not name %s: devices that are on it will stay there", name, from, to, from))
	}
	return list
}

// leaves names devices that a policy loses, and the guard that they may run
// into.
func (c *comparer) leaves(p *Plan) []string {
	var list []string
	type way struct{ from, to string }
	moved := map[way][]string{}
	for _, m := range p.Membership.Moved {
		moved[way{m.From, m.To}] = append(moved[way{m.From, m.To}], m.Device)
	}
	for w, ids := range moved {
		switch {
		case w.to == "":
			list = append(list, fmt.Sprintf("no policy governs %s any more (was %s): %s", few(ids), w.from, pick(len(ids) == 1, "it stays as it is", "they stay as they are")))
		case w.from != "":
			list = append(list, fmt.Sprintf("%s: from policy %s to %s, with its limits and its target", few(ids), w.from, w.to))
		}
	}
	reasons := map[string][]string{}
	for _, n := range p.Membership.NoTarget {
		reasons[n.Reason] = append(reasons[n.Reason], n.Device)
	}
	for why, ids := range reasons {
		list = append(list, fmt.Sprintf("%s: nothing to go to any more: %s", few(ids), why))
	}
	gone, total := c.gone()
	limit, leave := p.Membership.DeletionLimit, pick(gone == 1, "leaves", "leave")
	switch {
	case gone == 0:
	case c.DeletionLimit != nil && (gone > limit || gone == total):
		who := fmt.Sprintf("%s of %d %s", devices(gone), total, leave)
		if total == 1 {
			who = "the only device leaves"
		}
		list = append(list, fmt.Sprintf("%s the fleet; up to %d may at once, and never all: the sweep will stop, unless the message of a commit has the line \"Gitopsd-Accept-Deletions: %d\"",
			who, limit, gone))
	default:
		list = append(list, fmt.Sprintf("%s of %d %s the fleet; %s", devices(gone), total, leave, pick(gone == 1, "it keeps what it runs", "they keep what they run")))
	}
	return list
}

// few names the first devices and counts the others.
func few(ids []string) string {
	const named = 3
	ids = slices.SortedFunc(slices.Values(ids), cmp.Compare[string])
	if len(ids) <= named {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:named], ", "), len(ids)-named)
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
