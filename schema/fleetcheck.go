package schema

import (
	"fmt"
	"path"
	"slices"
	"sort"
)

// policyUse is what a policy is in charge of.
type policyUse struct {
	count    int   // devices
	releases int   // of them, those that need a release
	crew     *crew // nil where nothing of the policy is compared with them
}

// policyPair are two policies that select one device.
type policyPair struct{ first, second *file }

// beginUses is before the first use.
func (p *pass) beginUses() {
	for _, f := range p.policies {
		p.uses[f] = &policyUse{}
		if f.content.policy != nil && needsCrew(&f.content.policy.Spec) {
			p.uses[f].crew = &crew{}
		}
	}
}

// use counts a device with the policies that select it. What is kept of it is
// its member, or one that is equal to it but for the name.
func (p *pass) use(f *file, s *deviceState, kept *Member) {
	p.everyone = append(p.everyone, kept)
	p.unsure = p.unsure || f.broken
	for i, pol := range s.policies {
		u := p.uses[pol]
		u.count++
		if u.crew != nil && i == 0 {
			u.crew.add(kept)
		}
		if s.member.Device.Spec.Release != ReleaseNone {
			u.releases++
		}
		if i == 0 {
			continue
		}
		both := policyPair{s.policies[0], pol}
		o := p.overlaps[both]
		if o == nil {
			o = &spreadFinding{}
			p.overlaps[both] = o
		}
		if o.count++; len(o.devices) < maxNamed {
			o.devices = append(o.devices, s.member.ID)
		}
	}
}

// settle takes over what was found about a device, after everything that
// could find something was there.
func (p *pass) settle(f *file, s *deviceState) {
	if len(s.policies) == 0 && !f.broken && !p.policiesUnsure() {
		p.problem(Problem{File: f.path, Rule: ruleNoPolicy, Severity: SeverityWarning, Pointer: "/metadata/labels",
			Message: fmt.Sprintf("no policy selects the device %s", s.member.ID), Hint: "it keeps what it runs until one does"})
	}
	for _, found := range s.findings {
		p.collect(*found, s.member.ID)
	}
	if s.more > 0 {
		p.problem(unlistedOf(s))
	}
}

// policiesUnsure says whether some policy is broken, and so not known to
// select nobody.
func (p *pass) policiesUnsure() bool {
	return slices.ContainsFunc(p.policies, func(f *file) bool { return f.broken })
}

// checkPolicies looks at what policies select, and at where they point.
func (p *pass) checkPolicies() {
	for both, o := range p.overlaps {
		p.find(both.second, finding{pointer: "/spec/selector", rule: ruleOverlap,
			msg:  fmt.Sprintf("the policies %s and %s both select %s", both.first.place.name, both.second.place.name, named(o.devices, o.count)),
			hint: "a device belongs to one policy; narrow one of the selectors"})
	}
	uses, unsure := p.uses, p.unsure
	for _, f := range p.policies {
		if f.content.policy != nil && !f.broken {
			if uses[f].count == 0 && !unsure {
				p.warnAt(f, "/spec/selector", ruleNoDevice, "the policy selects no device", p.meant(f.content.policy.Spec.Selector, p.everyone))
			}
			p.checkTarget(f, uses[f])
			p.checkRollback(f)
			p.checkLimits(f, uses[f].count)
			if c := uses[f].crew; c != nil && uses[f].count > 0 && !unsure {
				p.checkWaves(f, c)
				p.checkGroups(f, f.content.policy.Spec.Budgets, c.all)
			}
		}
	}
	p.checkSpellings()
	if !unsure {
		p.checkFleetDocument()
	}
}

// checkSpellings finds releases whose versions differ only in the v.
func (p *pass) checkSpellings() {
	for _, f := range p.releases {
		v := f.place.name
		if twin := "v" + v; p.lines[f.place.line][twin] != nil {
			p.warnAt(f, "/metadata/name", ruleSpelling, fmt.Sprintf("%s and %s are one version, and both are releases of %s", v, twin, clip(f.place.line)),
				"keep one of them: from one to the other is no upgrade")
		}
	}
}

// checkFleetDocument compares what holds over all policies with all devices.
func (p *pass) checkFleetDocument() {
	f := p.fleetFile
	if f == nil || f.broken || len(f.content.fleet.Spec.Budgets) == 0 {
		return
	}
	p.checkGroups(f, f.content.fleet.Spec.Budgets, p.everyone)
}

func (p *pass) checkTarget(f *file, use *policyUse) {
	pol := f.policy()
	line, target := releaseLine(pol), pol.Spec.TargetVersion
	known := p.lines[line]
	switch {
	case known == nil && pol.Spec.ReleaseLine != "":
		p.find(f, finding{pointer: "/spec/releaseLine", rule: ruleLine, msg: fmt.Sprintf("there is no folder releases/%s/ with releases", clip(line)), hint: p.lineHint(line)})
		return
	case use.count > 0 && use.releases == 0:
		return
	case target == "":
		p.checkOwnVersion(f, line, use)
	case !isVersion(target): // reported with the document
	case known == nil:
		p.find(f, finding{pointer: "/spec/targetVersion", rule: ruleLine, msg: fmt.Sprintf("there is no folder releases/%s/ with releases", clip(line)), hint: p.lineHint(line)})
	case known[target] == nil:
		p.find(f, finding{pointer: "/spec/targetVersion", rule: ruleTarget, msg: fmt.Sprintf("there is no release %s in releases/%s/", target, line), hint: releaseHint(target, p.versions(line))})
	}
}

// checkRollback only warns: a release that was deleted may still be what
// devices run.
func (p *pass) checkRollback(f *file) {
	pol := f.policy()
	line := releaseLine(pol)
	known := p.lines[line]
	if known == nil {
		return // reported with the target, or nothing here needs a release
	}
	for i, v := range pol.Spec.RollbackFrom {
		if isVersion(v) && known[v] == nil {
			p.warnAt(f, fmt.Sprintf("/spec/rollbackFrom/%d", i), ruleRollback,
				fmt.Sprintf("there is no release %s in releases/%s/", v, clip(line)), releaseHint(v, p.versions(line)))
		}
	}
}

func (p *pass) lineHint(line string) string {
	var names []string
	for l := range p.lines {
		names = append(names, l)
	}
	sort.Strings(names)
	if near := Nearest(line, names); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "name the folder with releaseLine"
}

// checkOwnVersion only warns: whether it is a problem depends on the program
// that looks, and not on the repository alone.
func (p *pass) checkOwnVersion(f *file, line string, use *policyUse) {
	own := p.loader.OwnVersion
	if use.count == 0 || isVersion(own) && p.lines[line][own] != nil {
		return
	}
	msg := fmt.Sprintf("the policy names no target, and the own build %s is no version", quote(own))
	if isVersion(own) {
		msg = fmt.Sprintf("the policy names no target, and there is no release %s in releases/%s/ for the own build", own, clip(line))
	}
	p.warnAt(f, "/spec", ruleOwnVersion, msg, "set targetVersion")
}

func (p *pass) checkLimits(f *file, devices int) {
	s := &f.content.policy.Spec
	if m := s.MinAvailable; m != nil && !m.Percent && m.Value >= devices && devices > 1 {
		p.warnAt(f, "/spec/minAvailable", ruleLimit, fmt.Sprintf("%d of %d devices can never stay available while one moves; %d is what holds", m.Value, devices, devices-1), "")
	}
	if l := s.FailureLimit; l != nil && !l.Percent && l.Value >= devices && devices > 0 {
		p.warnAt(f, "/spec/failureLimit", ruleLimit, fmt.Sprintf("with %s the policy would never halt, whatever fails", count(devices, "device")), "a small count, such as 1, stops a bad release early")
	}
}

// count writes a number of things: 1 device, 2 devices.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// What hosting services recommend at most, as counts.
const (
	largeFolder = 1000
	largeFleet  = 5000
)

// warnings looks at the shape of the repository.
func (p *pass) warnings() {
	if n := len(p.everyone); n > largeFleet {
		p.problem(Problem{File: dirDevices, Rule: ruleBigFleet, Severity: SeverityWarning,
			Message: fmt.Sprintf("%d devices in one repository; hosting services recommend at most %d files that change often", n, largeFleet), Hint: "split the fleet, by site or by customer"})
	}
	children := map[string]int{}
	for i := range p.entries {
		for dir := path.Dir(p.entries[i].Path); ; dir = path.Dir(dir) {
			children[dir]++
			// A folder is one entry of its parent, whatever it holds.
			if children[dir] > 1 || dir == "." || dir == "/" {
				break
			}
		}
	}
	for dir, n := range children {
		if n > largeFolder {
			p.problem(Problem{File: clip(dir), Rule: ruleBigFolder, Severity: SeverityWarning,
				Message: fmt.Sprintf("the folder has %d entries; hosting services recommend at most %d", n, largeFolder), Hint: "divide it into folders"})
		}
	}
}
