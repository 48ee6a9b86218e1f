package sweep

import "github.com/gitopsd/gitopsd/schema"

// becauseOf is the change that led to a rollout: the commit that was swept
// when its first device was assigned it.
func (p *pass) becauseOf(m *schema.Member) *schema.Because {
	key := rolloutKey(m)
	if b := p.d.because[key]; b != nil {
		return b
	}
	var found *schema.Because
	for _, rec := range p.status.Devices {
		a := lastAttempt(rec.Status)
		if doc := rec.Assignment; doc != nil && doc.Because != nil && a != nil && a.Attempt == doc.Attempt &&
			a.Policy == m.Policy && a.Version == m.Version && a.Rollout == m.Rollout &&
			(found == nil || doc.Because.Commit < found.Commit) {
			found = doc.Because
		}
	}
	if found == nil {
		found = &schema.Because{Commit: p.fleet.commit, Subject: p.fleet.subject, Author: p.fleet.author, Policy: m.Policy}
	}
	p.d.because[key] = found
	return found
}

// forgetBecause lets go of what led to rollouts by which no device of another
// fleet goes any more.
func (p *pass) forgetBecause() {
	if p.d.memory.fleet == p.fleet.fleet || len(p.d.because) == 0 {
		return
	}
	kept := map[string]*schema.Because{}
	for _, m := range p.fleet.fleet.Devices {
		key := rolloutKey(m)
		if b := p.d.because[key]; b != nil {
			kept[key] = b
		}
	}
	p.d.because = kept
}

func rolloutKey(m *schema.Member) string { return m.Policy + "\x00" + m.Version + "\x00" + m.Rollout }
