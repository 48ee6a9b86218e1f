package sweep

import (
	"context"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// duplicateFor is how long one installation has to report alone before
	// two are no longer believed in, and duplicateHeartbeats the same in its
	// heartbeats, where those are rare: the other one had its turn by then.
	duplicateFor        = time.Hour
	duplicateHeartbeats = 3

	// duplicateNoted is how often it is written down whose turn it is: seldom,
	// because two machines that report every minute would otherwise make a
	// commit a minute.
	duplicateNoted = 15 * time.Minute
)

// isDuplicate says whether two installations take turns under one name. An
// installation's id is made up at random and never comes back once another
// one took its place, so a report whose id stands in an earlier attempt, while
// a different one was observed after it, is of a second machine. Once that is
// on the status branch it stays until one installation went on reporting
// alone. All of it is told from the status branch and the report, so that
// daemons that remember different things are of one mind; what this daemon
// remembers (turned) only adds what no attempt tells.
func isDuplicate(rec *Record, r *schema.Report, turned bool, now time.Time) bool {
	if rec == nil || rec.Status.Observed == nil {
		return turned
	}
	o := rec.Status.Observed
	if !standsDuplicate(rec.Status) {
		return turned || r != nil && o.InstallID != "" && r.InstallID != o.InstallID && rec.knew(r.InstallID)
	}
	alone := r != nil && r.InstallID == o.InstallID && r.Sequence > o.Sequence
	return turned || !alone || now.Sub(o.Since) < max(duplicateFor, duplicateHeartbeats*heartbeatOf(r))+duplicateNoted
}

func standsDuplicate(s *schema.DeviceStatus) bool { return s.Verdict.Code == string(planner.Duplicate) }

// knew says whether an installation had an assignment before.
func (rec *Record) knew(install string) bool {
	if rec.Assignment != nil && rec.Assignment.For == install {
		return true
	}
	return slices.ContainsFunc(rec.Status.Attempts, func(a schema.Attempt) bool { return a.InstallID == install })
}

// isClone says whether a report is of a second machine that has a copy of the
// first one's disk, and so the same installation id. The id of a boot is made
// up at each start and never comes back: one that says something new after
// another one had spoken runs beside it. So does one that nobody knows and
// whose sequence does not go on: a machine that was started again uses no
// number twice. What is old of a boot that is known proves nothing, it may have
// been read late.
func (s *seenState) isClone(r *schema.Report) bool {
	if r.BootID == "" || s.Boot == "" || r.BootID == s.Boot {
		return false
	}
	if i := s.bootIndex(r.BootID); i >= 0 {
		return r.Sequence > s.Boots[i].Sequence
	}
	return r.Sequence <= s.Sequence
}

func (s *seenState) bootIndex(id string) int {
	return slices.IndexFunc(s.Boots, func(b seenBoot) bool { return b.ID == id })
}

// booted notes the boot that a newer report is of.
func (s *seenState) booted(id string) {
	if id == "" || id == s.Boot {
		return
	}
	if i := s.bootIndex(id); i >= 0 {
		s.Boots = slices.Delete(s.Boots, i, i+1)
	}
	if s.Boot != "" {
		s.Boots = append(s.Boots, seenBoot{ID: s.Boot, Sequence: s.Sequence})
	}
	if over := len(s.Boots) - keptBoots; over > 0 {
		s.Boots = s.Boots[over:]
	}
	s.Boot = id
}

// keepsTurn says whether what was observed of two installations stays as it
// is written: it would change with every report.
func (d *draft) keepsTurn(now time.Time) bool {
	if d.old == nil || !d.facts.Duplicate || !standsDuplicate(d.old.Status) {
		return false
	}
	o, r := d.status.Observed, d.facts.Report
	return o != nil && (r == nil || r.InstallID == o.InstallID || now.Sub(o.Since) < duplicateNoted)
}

// sayDuplicate logs once that two installations were found, and when only one
// of them is left.
func (p *pass) sayDuplicate(ctx context.Context, id string, f Facts) {
	d := p.d
	switch {
	case f.Duplicate == d.duplicates[id]:
		return
	case !f.Duplicate:
		delete(d.duplicates, id)
		d.log.InfoContext(ctx, "only one installation reports under this name again", keyDevice, id)
		return
	}
	d.duplicates[id] = true
	var reports, observed string
	if f.Report != nil {
		reports = f.Report.InstallID
	}
	if o := p.observed(id); o != nil {
		observed = o.InstallID
	}
	d.log.WarnContext(ctx, "two installations take turns under one name", keyDevice, id, keyInstall, reports, keyOld, observed)
}
