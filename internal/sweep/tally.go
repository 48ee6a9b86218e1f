package sweep

import (
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// tally is what is counted over all records of a status, so that nobody has to
// go through them for a few. It is counted once for a status that was read, and
// kept up by [builder.apply]; its promise is that both give the same.
type tally struct {
	newest   time.Time       // on record, ever: it never falls, as clocks must not
	awaiting map[string]bool // devices whose delivery matters to an outcome
	open     map[string]bool // devices with an open attempt
	failed   map[string]bool // devices with a failure on record
	payloads map[string]int  // digest → records that need it
	tidy     bool            // the branch has just those payloads
}

// counted is the tally of a status.
func (s *Status) counted() *tally {
	if s.tally == nil {
		s.tally = &tally{awaiting: map[string]bool{}, open: map[string]bool{}, failed: map[string]bool{}, payloads: map[string]int{}}
		for _, rec := range s.Devices {
			s.tally.add(rec)
		}
		s.tally.noteFleet(s.Fleet)
	}
	return s.tally
}

func (t *tally) add(rec *Record) {
	if rec.Assignment != nil && awaitsDelivery(rec) {
		t.awaiting[rec.ID] = true
	}
	if a := lastAttempt(rec.Status); a != nil && a.Outcome == "" {
		t.open[rec.ID] = true
	}
	if counts(rec.Status) {
		t.failed[rec.ID] = true
	}
	for _, digest := range rec.needs() {
		t.payloads[digest]++
	}
	for i := range rec.Status.Attempts {
		a := &rec.Status.Attempts[i]
		for _, at := range []time.Time{a.AssignedAt, timeOf(a.StartedAt), timeOf(a.OnTargetAt), timeOf(a.EndedAt)} {
			t.note(at)
		}
	}
}

func (t *tally) remove(rec *Record) {
	delete(t.awaiting, rec.ID)
	delete(t.open, rec.ID)
	delete(t.failed, rec.ID)
	for _, digest := range rec.needs() {
		if t.payloads[digest]--; t.payloads[digest] == 0 {
			delete(t.payloads, digest)
		}
	}
}

func (t *tally) noteFleet(f *schema.FleetStatus) {
	if f != nil {
		t.note(f.SweptAt)
	}
}

func (t *tally) note(at time.Time) {
	if at.After(t.newest) {
		t.newest = at
	}
}
