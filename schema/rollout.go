package schema

import (
	"bytes"
	"errors"
	"sort"
)

// rolloutKey is what one rollout digest is worked out for.
type rolloutKey struct {
	policy, line, version string
}

// releaseKey names a release.
type releaseKey struct {
	line, version string
}

// releaseDigests are those of what policies and devices are to go to.
func (p *pass) releaseDigests() map[releaseKey]string {
	digests := map[releaseKey]string{}
	add := func(key releaseKey) {
		release := p.lines[key.line][key.version]
		if _, known := digests[key]; known || release == nil {
			return
		}
		digests[key] = ""
		if tree, ok := p.withDigests(release); ok {
			if text, err := canonicalJSON(tree); err == nil {
				digests[key] = PayloadDigest(text)
			}
		}
	}
	for _, f := range p.policies {
		if f.content.policy == nil {
			continue
		}
		target := f.policy().Spec.TargetVersion
		if target == "" {
			target = p.loader.OwnVersion
		}
		add(releaseKey{releaseLine(f.policy()), target})
	}
	for _, f := range p.devices {
		if s := p.states[f.path]; s != nil {
			add(releaseKey{s.member.Line, s.member.Version})
		}
	}
	return digests
}

// rollouts gives every device that has somewhere to go its rollout digest.
// What a rollout shares is the release and every overlay that selects one of
// the policy's devices; who else is selected, and what a device adds, is not
// part of it.
func (p *pass) rollouts() {
	overlays := map[string]map[*file]bool{}
	for _, f := range p.devices {
		s := p.states[f.path]
		if s.group == nil || s.member.Policy == "" {
			continue
		}
		of := overlays[s.member.Policy]
		if of == nil {
			of = map[*file]bool{}
			overlays[s.member.Policy] = of
		}
		for _, o := range s.group.overlays {
			of[o] = true
		}
	}
	digests := map[rolloutKey]string{}
	for _, f := range p.devices {
		s := p.states[f.path]
		m := s.member
		if m.NoTarget != "" {
			continue
		}
		key := rolloutKey{m.Policy, m.Line, m.Version}
		digest, known := digests[key]
		if !known {
			digest = p.rolloutDigest(key, overlays[m.Policy])
			digests[key] = digest
		}
		if m.Rollout == digest {
			continue
		}
		// The member may belong to the fleet of an earlier revision.
		moved, state := *m, *s
		moved.Rollout = digest
		state.member = &moved
		p.states[f.path] = &state
	}
}

// rolloutDigest is "" where a document of the rollout has problems.
func (p *pass) rolloutDigest(key rolloutKey, overlays map[*file]bool) string {
	shared := map[string]any{"policy": key.policy, "line": key.line, "version": key.version, "release": nil}
	if release := p.lines[key.line][key.version]; release != nil {
		tree, ok := p.withDigests(release)
		if !ok {
			return ""
		}
		shared["release"] = tree
	}
	type part struct {
		order int
		text  []byte
		tree  map[string]any
	}
	parts := []part{}
	for o := range overlays {
		desired, ok := p.withDigests(o)
		if !ok {
			return ""
		}
		// The file's name and its selector are left out: moving the file, or
		// selecting one device more, does not change what the others get.
		tree := map[string]any{"order": int64(overlayOrder(o)), "vars": o.content.overlay.Spec.Vars, "desired": desired}
		text, err := canonicalJSON(tree)
		if err != nil {
			return ""
		}
		parts = append(parts, part{overlayOrder(o), text, tree})
	}
	sort.Slice(parts, func(i, j int) bool {
		if parts[i].order != parts[j].order {
			return parts[i].order < parts[j].order
		}
		return bytes.Compare(parts[i].text, parts[j].text) < 0
	})
	list := make([]any, len(parts))
	for i := range parts {
		list[i] = parts[i].tree
	}
	shared["overlays"] = list
	text, err := canonicalJSON(shared)
	if err != nil {
		return ""
	}
	return PayloadDigest(text)
}

// withDigests is what a document sets, with the content of each source in
// place of its path.
func (p *pass) withDigests(f *file) (map[string]any, bool) {
	if !p.usable(f) {
		return nil, false
	}
	if len(f.sources) == 0 {
		return f.desired, true
	}
	out, err := withContents(f.desired, func(_ []string, entry map[string]any) (map[string]any, error) {
		source, _ := entry["source"].(string)
		if source == "" {
			return entry, nil
		}
		pl, err := p.payloadOf(source, false)
		if err != nil {
			return nil, err
		}
		if pl.digest == "" {
			return nil, errors.New(pl.msg)
		}
		entry = cloneMap(entry)
		entry["source"] = pl.digest
		return entry, nil
	})
	return out, err == nil
}
