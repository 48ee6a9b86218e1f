package sweep

import (
	"context"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// causes are the changes that lead devices to what they are assigned now, by
// id: of each the newest commit that made its desired spec what it is. Where
// none is found, it is the commit that is swept, and the words say so.
func (p *pass) causes(ctx context.Context, drafts []*draft) map[string]*schema.Because {
	if len(drafts) == 0 {
		return nil
	}
	t := newTrace(p.d.cfg.Remote, p.d.loader)
	for _, dr := range drafts {
		t.seek(dr.member, dr.assignedLast())
	}
	t.follow(ctx, p.fleet)

	said := map[string]*schema.Because{}
	causes := make(map[string]*schema.Because, len(drafts))
	for _, s := range t.sought {
		b := &schema.Because{Commit: p.fleet.commit, Subject: schema.BecauseSwept}
		switch {
		case s.as != nil:
			b = s.as
		case s.commit != "":
			known, ok := said[s.commit]
			if !ok {
				known = p.changeAt(ctx, s.commit)
				said[s.commit] = known
			}
			if known != nil {
				b = known
			}
		}
		causes[s.member.ID] = inWave(b, s.member)
	}
	return causes
}

// changeAt says who made a commit and why; nil = that cannot be read.
func (p *pass) changeAt(ctx context.Context, commit string) *schema.Because {
	b := &schema.Because{Commit: commit}
	err := p.d.cfg.Remote.Log(ctx, commit, "", func(_, author string, _ time.Time, message string) bool {
		b.Author = oneLine(author)
		subject, _, _ := strings.Cut(message, "\n")
		b.Subject = oneLine(subject)
		return false
	})
	if err != nil {
		return nil
	}
	return b
}

// assignedLast is the last document of a device that carries a spec, as far as
// it is known; nil = none is.
func (d *draft) assignedLast() *schema.Assignment {
	for _, doc := range []*schema.Assignment{d.doc, d.kept} {
		if doc != nil && doc.Spec != nil {
			return doc
		}
	}
	return nil
}

// inWave is the change that led to an assignment, as its device is told.
func inWave(b *schema.Because, m *schema.Member) *schema.Because {
	own := *b
	own.Policy = m.Policy
	if own.Wave = m.Wave; m.Pinned {
		own.Wave = "" // pinned devices are in no wave
	}
	return &own
}
