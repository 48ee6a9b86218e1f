package sweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	assignmentFile = "assignment.yaml"
	reportFile     = "report.yaml"

	// maxNamed is how many refs are asked for by name; for more, all deliveries
	// are listed, which a server answers in less time.
	maxNamed = 100

	// maxDelivery bounds a delivery that is read back: an assignment with its
	// payloads.
	maxDelivery = 256 << 20
)

// repair makes the delivery refs carry what the status branch says. All are
// compared at the start, after an uncertain push and hourly; in each pass
// those whose answer matters: an open recall, a lost attempt, a ref that was
// refused before.
func (p *pass) repair(ctx context.Context) error {
	d := p.d
	values, err := p.deliveryValues(ctx)
	if err != nil || p.mute {
		return err
	}
	p.delivery = values
	if p.rebuilt || (p.tip == "" && len(values) == 0) {
		return nil
	}
	if p.tip == "" {
		return p.statusLoss(ctx, stop{
			reason: "StatusMissing",
			message: fmt.Sprintf("the status branch %s is gone, but there are assignments of %s (such as %s)",
				d.cfg.StatusBranch, count(len(values), "device"), slices.Min(slices.Collect(maps.Keys(values)))),
			remedy: "push the branch again, or " + p.rebuildRemedy(),
		})
	}
	if err := p.repairWrong(ctx, values); err != nil {
		if s, ok := p.asStop(err); ok {
			return p.statusLoss(ctx, s)
		}
		return err
	}
	if p.mute || p.rebuilt {
		return nil
	}
	if p.full {
		d.repairedAt = p.now
	}
	p.noticeRefusals()
	return nil
}

func (p *pass) repairWrong(ctx context.Context, values map[string]string) error {
	wrong, err := p.compare(ctx, values)
	if err != nil {
		return err
	}
	return p.rewrite(ctx, wrong, values)
}

// deliveryValues reads the delivery refs that are to be compared: device →
// commit, "" = absent. Every read counts as fresh: it is of this pass.
func (p *pass) deliveryValues(ctx context.Context) (map[string]string, error) {
	d := p.d
	values := map[string]string{}
	if p.full {
		for ref, commit := range p.refs {
			if id, ok := strings.CutPrefix(ref, d.cfg.DeviceRefs); ok && id != "" {
				values[id] = commit
			}
		}
		d.delivered = maps.Clone(values)
		return values, nil
	}
	d.forgetGone(p.status)
	for id := range p.status.counted().awaiting {
		values[id] = ""
	}
	for id := range d.unsure {
		values[id] = ""
	}
	if len(values) == 0 {
		return values, nil
	}
	p.relist = true
	names := []string{d.cfg.DeviceRefs}
	if len(values) <= maxNamed {
		names = names[:0]
		for id := range values {
			names = append(names, d.cfg.DeviceRefs+id)
		}
		slices.Sort(names)
	}
	refs, err := d.cfg.Remote.Refs(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list the deliveries in question: %w", err)
	}
	for id := range values {
		values[id] = refs[d.cfg.DeviceRefs+id]
		d.delivered[id] = values[id]
	}
	return values, nil
}

// forgetGone forgets what is to be looked at, and what was refused, of devices
// that have no document any more.
func (d *Daemon) forgetGone(s *Status) {
	gone := func(id string) bool {
		rec := s.Devices[id]
		return rec == nil || rec.Assignment == nil
	}
	maps.DeleteFunc(d.unsure, func(id string, _ bool) bool { return gone(id) })
	maps.DeleteFunc(d.refused, func(ref, _ string) bool { return gone(strings.TrimPrefix(ref, d.cfg.DeviceRefs)) })
}

// awaitsDelivery says whether the outcome of the last attempt depends on what
// the device could see when it reported.
func awaitsDelivery(rec *Record) bool {
	a := lastAttempt(rec.Status)
	return a != nil && ((a.Outcome == "" && a.Recall != nil) || a.Outcome == schema.OutcomeLost)
}

func lastAttempt(s *schema.DeviceStatus) *schema.Attempt {
	if s == nil || len(s.Attempts) == 0 {
		return nil
	}
	return &s.Attempts[len(s.Attempts)-1]
}

// compare finds the devices whose ref differs from what it should carry.
func (p *pass) compare(ctx context.Context, values map[string]string) ([]string, error) {
	d := p.d
	var wrong []string
	ids := slices.Collect(maps.Keys(values))
	if p.full {
		for id := range p.status.Devices {
			if _, ok := values[id]; !ok {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		rec := p.status.Devices[id]
		if rec == nil || rec.Assignment == nil {
			wrong = append(wrong, id) // there is a ref, and no document for it
			continue
		}
		want, err := p.expected(ctx, rec)
		if err != nil {
			return nil, err
		}
		if values[id] != want {
			wrong = append(wrong, id)
			continue
		}
		p.confirmed[id] = true
		if awaitsDelivery(rec) {
			p.relist = true // one listing is no order: its reports may be older
		}
		delete(d.unsure, id)
		delete(d.refused, d.cfg.DeviceRefs+id)
	}
	return slices.DeleteFunc(wrong, func(id string) bool {
		rec := p.status.Devices[id]
		return values[id] == "" && (rec == nil || rec.Assignment == nil)
	}), nil
}

// rewrite puts right what differs, each ref by the value that was read and
// whose generation was compared, so that no device ever sees one fall.
func (p *pass) rewrite(ctx context.Context, wrong []string, values map[string]string) error {
	d := p.d
	if len(wrong) == 0 {
		return nil
	}
	generations, blind, err := p.deliveredGenerations(ctx, wrong, values)
	if err != nil {
		return err
	}
	moves, absent := map[string][2]string{}, false
	for _, id := range wrong {
		ref := d.cfg.DeviceRefs + id
		there, here := generations[id], p.status.generation(id)
		if there > here {
			if err := p.checkTip(ctx); err != nil {
				return err
			}
			return p.statusLoss(ctx, p.rewound(id, there, here))
		}
		rec := p.status.Devices[id]
		switch {
		case blind[id] && d.mayHaveIt(values[id], p.now):
			d.unsure[id] = true
		case rec != nil && rec.Assignment != nil:
			// Made anew: the remote may have forgotten what it did not push.
			want, err := p.deliver(ctx, rec.payloads, assignedPath(rec.Path), p.status.blob)
			if err != nil {
				return err
			}
			moves[ref] = [2]string{values[id], want}
			absent = absent || values[id] == ""
		case p.status.Retired[id] != nil:
			if p.sawItsLast(id) {
				moves[ref] = [2]string{values[id], ""}
			}
		case d.news("foreign "+id, values[id]):
			d.log.WarnContext(ctx, "there is a delivery for a device that the status branch does not know; it is left alone", keyRef, ref)
		}
	}
	if len(moves) == 0 {
		return nil
	}
	if absent {
		// An absent ref has no generation to compare: its device may have been
		// put away since the status branch was listed.
		if err := p.checkTip(ctx); err != nil {
			return err
		}
	}
	p.relist = true
	refused, err := d.cfg.Remote.Publish(ctx, nil, moves)
	if err != nil {
		d.uncertain()
		return fmt.Errorf("repair %d deliveries: %w", len(moves), err)
	}
	for _, id := range wrong {
		ref := d.cfg.DeviceRefs + id
		move, ok := moves[ref]
		if !ok {
			continue
		}
		if why, no := refused[ref]; no {
			d.unsure[id] = true
			d.refused[ref] = why
			continue
		}
		d.delivered[id] = move[1]
		delete(d.unsure, id)
		delete(d.refused, ref)
		delete(d.blind, move[0])
		if rec := p.status.Devices[id]; rec != nil && rec.Assignment != nil {
			p.confirmed[id] = true
			d.restartPickup(rec, p.now)
			d.log.InfoContext(ctx, "delivery repaired", keyDevice, id, keyRef, ref)
		}
	}
	return nil
}

// sawItsLast says whether a device has reported that it knows its newest
// document. Before that its delivery must not go: a push that was held up could
// bring an older document back where there is none, and the device would act
// on it.
func (p *pass) sawItsLast(id string) bool {
	v := p.d.reports[id]
	return v != nil && v.report != nil && v.report.Generation >= p.status.generation(id)
}

// mayHaveIt says whether somebody may still have a commit that could not be
// read: a replica that lags shows a ref before it has what the ref names, and
// nobody may write over a generation that is not known. What nobody could read
// for so long is damaged.
func (d *Daemon) mayHaveIt(commit string, now time.Time) bool {
	since, known := d.blind[commit]
	if !known {
		d.blind[commit] = now
		return true
	}
	return now.Sub(since) < repairEvery
}

// uncertain notes that a push may or may not have arrived.
func (d *Daemon) uncertain() { d.repairedAt = time.Time{} }

// noticeRefusals makes refused deliveries a condition: a server's rule, never
// a failure of devices.
func (p *pass) noticeRefusals() {
	d := p.d
	if len(d.refused) == 0 {
		return
	}
	ref := slices.Min(slices.Collect(maps.Keys(d.refused)))
	p.notices = append(p.notices, schema.Condition{
		Type:    conditionRefused,
		Reason:  "ServerRefusesRefs",
		Message: fmt.Sprintf("%s does not move: %s", ref, d.refused[ref]),
		Remedy:  fmt.Sprintf("let the daemon's account push %s*, or configure another prefix under refs.devices", d.cfg.DeviceRefs),
	})
}
