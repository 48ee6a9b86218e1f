package schema

import (
	"fmt"
	"sort"
	"strings"
)

// deviceState is what is remembered of one device between two revisions. It
// does not change once the Load that made it is done.
type deviceState struct {
	file     *file
	key      string
	policies []*file // all that select it
	group    *group
	member   *Member
	findings []*findingKey
	more     int  // findings beyond maxProblems
	wrong    bool // one of all these is an error
	bytes    int64
}

// layers are the documents that its spec is merged from, the last one first.
func (s *deviceState) layers() []*file {
	layers := []*file{s.file}
	if s.group == nil {
		return layers
	}
	for i := len(s.group.overlays) - 1; i >= 0; i-- {
		layers = append(layers, s.group.overlays[i])
	}
	if s.group.release != nil {
		layers = append(layers, s.group.release)
	}
	return layers
}

// members works out every device, or takes it over from the last revision.
func (p *pass) members() error {
	sort.SliceStable(p.overlays, func(i, j int) bool { return overlayOrder(p.overlays[i]) < overlayOrder(p.overlays[j]) })
	same := p.shared == p.loader.shared
	for _, f := range p.devices {
		old := p.loader.states[f.path]
		if old != nil && same && old.file == f && old.key == p.key(f) {
			p.states[f.path] = old
			p.rendered += old.bytes
			if old.group != nil {
				p.groups[old.group.key] = old.group
			}
			continue
		}
		if err := p.state(f, old); err != nil {
			return err
		}
	}
	return nil
}

func overlayOrder(f *file) int {
	if f.content.overlay == nil {
		return 0
	}
	return f.content.overlay.Spec.Order
}

func (p *pass) state(f *file, old *deviceState) error {
	if p.loader.Stop != nil {
		if err := p.loader.Stop(); err != nil {
			return err
		}
	}
	device := f.content.device
	if device == nil { // no readable YAML: it stands for a device all the same
		device = &Device{Metadata: Metadata{Name: f.place.name}}
	}
	s := &deviceState{file: f, key: p.key(f), member: &Member{ID: f.place.name, Path: f.path, Device: device, Pinned: device.Spec.Pin != ""}}
	p.states[f.path] = s
	for _, pol := range p.policies {
		if pol.selects(device.Metadata.Labels) {
			s.policies = append(s.policies, pol)
		}
	}
	m := s.member
	release := p.aim(s)
	if m.NoTarget != "" {
		return p.tryRender(s)
	}
	s.group = p.groupOf(release, device)
	unfit := !p.usable(f) || s.group.broken || s.wrong
	p.noteAll(s, s.group.conflicts)
	if unfit {
		return nil
	}
	if old != nil && old.group == s.group && old.file == f && old.key == s.key && old.member.Rendered != nil {
		m.Rendered, s.bytes = old.member.Rendered, old.bytes
		p.rendered += old.bytes
		return nil
	}
	if len(s.group.conflicts) > 0 {
		return nil
	}
	return p.render(s)
}

// tryRender looks for what would not render once the policy is mended, so that
// its problems hide none of the templates'. Nothing of it is kept.
func (p *pass) tryRender(s *deviceState) error {
	if len(s.policies) != 1 || !s.policies[0].broken || !p.usable(s.file) {
		return nil
	}
	device := s.member.Device
	version := s.policies[0].content.policy.Spec.TargetVersion
	if s.member.Pinned {
		version = device.Spec.Pin
	}
	release := p.lines[s.member.Line][version]
	if release == nil && device.Spec.Release != ReleaseNone {
		return nil
	}
	if device.Spec.Release == ReleaseNone {
		release = nil
	}
	trial := *s
	member := *s.member
	trial.member = &member
	trial.group = p.groupOf(release, device)
	p.noteAll(&trial, trial.group.conflicts)
	if !trial.group.broken && !trial.wrong {
		if err := p.render(&trial); err != nil {
			return err
		}
	}
	s.findings, s.more, s.wrong, s.group, s.bytes = trial.findings, trial.more, trial.wrong, trial.group, trial.bytes
	return nil
}

func (p *pass) noteAll(s *deviceState, found []findingKey) {
	for _, k := range found {
		p.note(s, k)
	}
}

// selects says whether a policy governs what has these labels. A broken one
// does only where its selector could be read: one that is missing because it
// was misspelled would select everything.
func (f *file) selects(labels map[string]string) bool {
	pol := f.content.policy
	if pol == nil {
		return false
	}
	if f.broken {
		if pol.Spec.Selector == nil {
			return false
		}
		for _, p := range f.problems {
			if strings.HasPrefix(p.Pointer, "/spec/selector") {
				return false
			}
		}
	}
	return pol.Spec.Selector.Matches(labels)
}

// aim sets where a device should go, and gives the release of that version.
func (p *pass) aim(s *deviceState) *file {
	m, spec := s.member, &s.member.Device.Spec
	switch len(s.policies) {
	case 0:
		m.NoTarget = "no policy selects it"
		return nil
	case 1:
	default:
		var names []string
		for _, f := range s.policies {
			names = append(names, f.place.name)
		}
		m.NoTarget = "more than one policy selects it: " + clip(strings.Join(names, ", "))
		return nil
	}
	pol := s.policies[0].policy()
	m.Policy = pol.Metadata.Name
	m.Line = releaseLine(pol)
	m.Wave = pol.Spec.Wave(m.Labels())
	switch {
	case s.file.broken:
		m.NoTarget = "its file has problems"
		return nil
	case s.policies[0].broken:
		m.NoTarget = fmt.Sprintf("the file of policy %s has problems", m.Policy)
		return nil
	}
	m.Version = pol.Spec.TargetVersion
	if m.Version == "" {
		m.Version = p.loader.OwnVersion
	}
	if m.Pinned {
		m.Version = spec.Pin
	}
	if !p.isVersion(m.Version) {
		m.NoTarget = fmt.Sprintf("policy %s names no target, and the own build %s is no version", m.Policy, quote(m.Version))
		m.Version = ""
		return nil
	}
	if spec.Release == ReleaseNone {
		return nil
	}
	release := p.lines[m.Line][m.Version]
	if release == nil {
		m.NoTarget = fmt.Sprintf("there is no release %s/%s", m.Line, m.Version)
		if m.Pinned && p.lines[m.Line] != nil {
			p.note(s, p.located(s.file, finding{pointer: "/spec/pin", rule: rulePin,
				msg: fmt.Sprintf("there is no release %s in releases/%s/", m.Version, m.Line), hint: releaseHint(m.Version, p.versions(m.Line))}))
		}
	}
	return release
}

// isVersion is [isVersion] of the versions that devices go to, which are few.
func (p *pass) isVersion(v string) bool {
	is, known := p.areVersions[v]
	if !known {
		is = isVersion(v)
		p.areVersions[strings.Clone(v)] = is // it may stand in the text of a document
	}
	return is
}

func releaseLine(pol *Policy) string {
	if pol.Spec.ReleaseLine != "" {
		return pol.Spec.ReleaseLine
	}
	return pol.Metadata.Name
}

func (p *pass) versions(line string) []string {
	var names []string
	for v := range p.lines[line] {
		names = append(names, v)
	}
	sort.Strings(names)
	return names
}

// group is what the devices with one release and the same overlays share.
type group struct {
	key       string
	release   *file
	overlays  []*file // by order, then path
	base      map[string]any
	vars      map[string]string
	broken    bool
	conflicts []findingKey
	static    map[uintptr]staticFile // files of base that no device's values change, by the identity of their map
	varies    bool                   // base has templates
	plain     *Rendered              // for devices that add nothing, where base has no templates
}

func (p *pass) groupOf(release *file, device *Device) *group {
	if p.alike == nil {
		return p.findGroup(release, device)
	}
	known := alikeKey{release, p.alike}
	g := p.groupsAlike[known]
	if g == nil {
		g = p.findGroup(release, device)
		p.groupsAlike[known] = g
	}
	return g
}

// alikeKey finds the group of a device by another one of its labels, so that
// the selectors of all overlays are asked once for both.
type alikeKey struct {
	release *file
	device  *Device
}

func (p *pass) findGroup(release *file, device *Device) *group {
	var overlays []*file
	key := "none"
	if release != nil {
		key = p.key(release)
		for _, o := range p.overlays {
			if o.content.overlay != nil && o.content.overlay.Spec.Selector.Matches(device.Metadata.Labels) {
				overlays = append(overlays, o)
				key += "\x01" + p.key(o)
			}
		}
	}
	if g, ok := p.groups[key]; ok {
		return g
	}
	if g, ok := p.loader.groups[key]; ok {
		p.groups[key] = g
		return g
	}
	g := &group{key: key, release: release, overlays: overlays, vars: map[string]string{}}
	p.groups[key] = g
	g.base = map[string]any{}
	if release != nil {
		g.base = mergePatch(nil, release.desired, nil)
		g.broken = !p.usable(release)
	}
	for _, o := range overlays {
		if !p.usable(o) {
			g.broken = true
			continue
		}
		g.base = mergeSpec(g.base, o.desired, nil)
		for k, v := range o.content.overlay.Spec.Vars {
			g.vars[k] = v
		}
	}
	if !g.broken {
		p.checkConflicts(g)
	}
	return g
}
