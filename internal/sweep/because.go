package sweep

import (
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// lead is a change that devices were assigned something by.
type lead struct {
	*schema.Because
	last time.Time // when one was
}

// becauseOf is the change that leads a device to its target: that of its
// rollout, which is the commit that was swept when the first device was assigned
// it, or the one that is swept now where the device's own part changed, or where
// it comes back to a rollout that the others have never left.
func (p *pass) becauseOf(m *schema.Member) *schema.Because {
	now := &schema.Because{Commit: p.fleet.commit, Subject: p.fleet.subject, Author: p.fleet.author, Policy: m.Policy}
	var own *schema.Attempt
	if rec := p.status.Devices[m.ID]; rec != nil {
		own = lastAttempt(rec.Status)
	}
	again := own != nil && ofRollout(own, m)
	if again && m.Rendered != nil && own.Digest != m.Rendered.Digest {
		return now
	}
	key := rolloutKey(m)
	found, ok := p.d.because[key]
	if !ok {
		found = p.causeOf(m)
	}
	if found.Because == nil || own != nil && !again && own.AssignedAt.After(found.last) {
		found.Because = now
	}
	found.last = p.now
	p.d.because[key] = found
	return found.Because
}

// causeOf is what those were assigned their rollout by who are in it, but for
// its devices whose own part has changed within it.
func (p *pass) causeOf(m *schema.Member) (found lead) {
	for _, rec := range p.status.Devices {
		a, doc := lastAttempt(rec.Status), rec.Assignment
		if doc == nil || doc.Because == nil || a == nil || a.Attempt != doc.Attempt || !ofRollout(a, m) {
			continue
		}
		if n := len(rec.Status.Attempts); n > 1 {
			if before := &rec.Status.Attempts[n-2]; ofRollout(before, m) && before.Digest != a.Digest {
				continue
			}
		}
		if found.Because == nil || a.AssignedAt.After(found.last) || a.AssignedAt.Equal(found.last) && doc.Because.Commit < found.Commit {
			found = lead{doc.Because, a.AssignedAt}
		}
	}
	return found
}

func ofRollout(a *schema.Attempt, m *schema.Member) bool {
	return a.Policy == m.Policy && a.Version == m.Version && a.Rollout == m.Rollout
}

// forgetBecause lets go of what led to rollouts by which no device of another
// fleet goes any more.
func (p *pass) forgetBecause() {
	if p.d.memory.fleet == p.fleet.fleet || len(p.d.because) == 0 {
		return
	}
	kept := map[string]lead{}
	for _, m := range p.fleet.fleet.Devices {
		key := rolloutKey(m)
		if c, ok := p.d.because[key]; ok {
			kept[key] = c
		}
	}
	p.d.because = kept
}

func rolloutKey(m *schema.Member) string { return m.Policy + "\x00" + m.Version + "\x00" + m.Rollout }
