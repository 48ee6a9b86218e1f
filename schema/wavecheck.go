package schema

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// waveFindings is what a schema cannot say of a policy's waves.
func waveFindings(waves []Wave, at string) []finding {
	var found []finding
	seen := map[string]int{}
	for i := range waves {
		w := &waves[i]
		here := fmt.Sprintf("%s/%d", at, i)
		if first, taken := seen[w.Name]; taken {
			found = append(found, finding{pointer: here + "/name", rule: ruleWaveName,
				msg: fmt.Sprintf("the waves %d and %d are both called %s", first+1, i+1, quote(w.Name)), hint: "give each a name of its own"})
		} else {
			seen[w.Name] = i
		}
		found = append(found, selectorFindings(w.Selector, here+"/selector")...)
		if t := w.SuccessThreshold; t != nil && t.Value == 0 {
			found = append(found, finding{pointer: here + "/successThreshold", rule: ruleRange,
				msg:  fmt.Sprintf("with %s of its devices the wave %s would be done before it has begun", t, quote(w.Name)),
				hint: "1% to 100%; a wave that may have nobody is optional: true"})
		}
	}
	return found
}

// crew is a policy's devices as far as its waves and budgets need them.
type crew struct {
	all  []*Member
	free []*Member // those that are not pinned, and so in waves
}

func (c *crew) add(m *Member) {
	c.all = append(c.all, m)
	if !m.Pinned {
		c.free = append(c.free, m)
	}
}

// needsCrew says whether a policy has something to be compared with its
// devices.
func needsCrew(s *PolicySpec) bool {
	return len(s.Waves) > 0 || len(s.Budgets) > 0 || s.Pilot != nil
}

// checkWaves compares the waves of a policy with its devices.
func (p *pass) checkWaves(f *file, c *crew) {
	s := &f.content.policy.Spec
	members := map[string]int{}
	for _, m := range c.free {
		members[m.Wave]++
	}
	for i := range s.Waves {
		w := &s.Waves[i]
		here := fmt.Sprintf("/spec/waves/%d", i)
		n := members[w.Name]
		switch {
		case n > 0 && w.MinSuccess > n:
			p.warnAt(f, here+"/minSuccess", ruleWaveShort, fmt.Sprintf("%d devices can never be done in the wave %s: it has %d", w.MinSuccess, w.Name, n),
				"the later waves wait for them; put more devices into the wave, or write a smaller number")
		case n == 0:
			p.checkEmptyWave(f, c, i)
		}
	}
	p.checkCanary(f, c, members)
}

// checkEmptyWave finds out why a wave has no devices.
func (p *pass) checkEmptyWave(f *file, c *crew, i int) {
	waves := f.content.policy.Spec.Waves
	w := &waves[i]
	at := fmt.Sprintf("/spec/waves/%d/selector", i)
	earlier := map[string]bool{}
	taken := 0
	for _, m := range c.free {
		if w.Selector.Matches(m.Labels()) {
			earlier[m.Wave] = true
			taken++
		}
	}
	if taken > 0 {
		var names []string
		for _, e := range waves[:i] {
			if earlier[e.Name] {
				names = append(names, e.Name)
			}
		}
		p.warnAt(f, at, ruleWaveShadowed, fmt.Sprintf("the wave %s gets nobody: the %s that it selects %s in an earlier one (%s)",
			w.Name, count(taken, "device"), areIs(taken), clip(strings.Join(names, ", "))), "the first wave that selects a device has it; put the narrower wave first")
		return
	}
	if w.Optional {
		return
	}
	hint := "the later waves would wait for ever; correct the selector, or say optional: true"
	if near := p.meant(w.Selector, c.free); near != "" {
		hint = near + " " + hint
	}
	p.warnAt(f, at, ruleWaveNobody, fmt.Sprintf("the wave %s matches no device of the policy", w.Name), hint)
}

func areIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// modelLabels are the names of labels, whatever stands before a slash, whose
// values are taken for models of hardware: what breaks on one of them is not
// found by trying another one.
var modelLabels = []string{"model", "hardware", "hardware-model", "hw", "hw-model", "board", "machine", "arch"}

func isModelLabel(key string) bool {
	return slices.Contains(modelLabels, strings.ToLower(key[strings.LastIndexByte(key, '/')+1:]))
}

// checkCanary looks for models that nobody tries before everybody gets the
// release.
func (p *pass) checkCanary(f *file, c *crew, members map[string]int) {
	s := &f.content.policy.Spec
	keys := map[string]bool{}
	for _, m := range c.free {
		for k := range m.Labels() {
			if isModelLabel(k) {
				keys[k] = true
			}
		}
	}
	for _, key := range sortedKeys(keys) {
		values := map[string]int{} // of all
		tried := map[string]bool{} // of the first wave
		for _, m := range c.free {
			v, ok := m.Labels()[key]
			if !ok {
				continue
			}
			values[v]++
			if len(s.Waves) > 0 && m.Wave == s.Waves[0].Name {
				tried[v] = true
			}
		}
		if s.Pilot != nil && s.Pilot.Count < len(values) {
			p.warnAt(f, "/spec/pilot/count", ruleCanary, fmt.Sprintf("a pilot of %s cannot try all %d values of %s", count(s.Pilot.Count, "device"), len(values), key),
				fmt.Sprintf("what breaks only on one of them may be found after the pilot; %d devices could try each", len(values)))
		}
		if len(s.Waves) == 0 || members[s.Waves[0].Name] == 0 {
			continue
		}
		var missing []string
		devices := 0
		for _, v := range sortedKeys(values) {
			if !tried[v] {
				missing = append(missing, v)
				devices += values[v]
			}
		}
		if len(missing) > 0 {
			p.warnAt(f, "/spec/waves/0", ruleCanary, fmt.Sprintf("no device of the first wave %s has %s %s; %s of the later waves %s",
				s.Waves[0].Name, key, someOf(missing), count(devices, "device"), haveHas(devices)),
				"what breaks only there would be found too late; put one of each into the first wave")
		}
	}
}

func haveHas(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// someOf lists values: "a, b or c"; of many it names the first few.
func someOf(values []string) string {
	shown := values[:min(len(values), maxNamed)]
	if rest := len(values) - len(shown); rest > 0 {
		return fmt.Sprintf("%s or %d others", strings.Join(shown, ", "), rest)
	}
	if len(shown) == 1 {
		return shown[0]
	}
	last := len(shown) - 1
	return strings.Join(shown[:last], ", ") + " or " + shown[last]
}

// budgetFindings is what a schema cannot say of budgets.
func budgetFindings(budgets []Budget, at string) []finding {
	var found []finding
	for i := range budgets {
		b := &budgets[i]
		here := fmt.Sprintf("%s/%d", at, i)
		for j, label := range b.GroupBy {
			if slices.Index(b.GroupBy, label) < j {
				found = append(found, finding{pointer: fmt.Sprintf("%s/groupBy/%d", here, j), rule: ruleValue,
					msg: fmt.Sprintf("the label %s stands here twice", quote(label)), hint: "once is enough"})
			}
		}
		if b.MaxUnavailable.Percent && b.MaxUnavailable.Value == 100 {
			found = append(found, finding{pointer: here + "/maxUnavailable", rule: ruleLimit, warning: true,
				msg: "the budget holds nobody back: all devices of a group may be unavailable", hint: "leave it out, or write a smaller number"})
		}
	}
	return found
}

// checkGroups looks for labels of budgets that devices do not have.
func (p *pass) checkGroups(f *file, budgets []Budget, devices []*Member) {
	if len(devices) == 0 {
		return // reported where nobody is selected
	}
	for i := range budgets {
		for j, label := range budgets[i].GroupBy {
			var without []string
			lack := 0
			for _, m := range devices {
				if _, ok := m.Labels()[label]; ok {
					continue
				}
				if lack++; len(without) < maxNamed {
					without = append(without, m.ID)
				}
			}
			at := fmt.Sprintf("/spec/budgets/%d/groupBy/%d", i, j)
			switch {
			case lack == len(devices):
				p.warnAt(f, at, ruleGroupLabel, fmt.Sprintf("no device has the label %s, so the budget divides nothing", quote(label)), labelHint(label, devices))
			case lack > 0:
				p.warnAt(f, at, ruleGroupLabel, fmt.Sprintf("%d of %s %s no label %s and %s (%s)", lack, count(len(devices), "device"), haveHas(lack), quote(label), ownGroup(lack), named(without, lack)),
					"give each the label; those without share one budget, wherever they are")
			}
		}
	}
}

func ownGroup(n int) string {
	if n == 1 {
		return "is a group of its own"
	}
	return "form one group"
}

// labelHint is the label that was probably meant.
func labelHint(label string, devices []*Member) string {
	seen := map[string]bool{}
	for _, m := range devices {
		for k := range m.Labels() {
			seen[k] = true
		}
	}
	known := make([]string, 0, len(seen))
	for k := range seen {
		known = append(known, k)
	}
	sort.Strings(known)
	if near := Nearest(label, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if len(known) == 0 {
		return "the devices have no labels"
	}
	return "the labels there are " + clip(strings.Join(known, ", "))
}
