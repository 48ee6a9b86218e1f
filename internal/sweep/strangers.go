package sweep

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	conditionStranger = "UnknownDevice"

	// shownStrangers bounds what devices that nobody knows make us write.
	shownStrangers = 3

	// maxID is the longest name that a device can have.
	maxID = 63

	// nearEnough is how many letters of a name may differ to be a mistake in
	// typing: two that changed places are two.
	nearEnough = 2
)

// noticeStrangers makes a condition of good reports whose device is not in
// the fleet and never was: as a rule its name is mistyped on one side. It
// depends on the names alone, so heartbeats change nothing.
func (p *pass) noticeStrangers(ctx context.Context) {
	d := p.d
	var ids []string
	all := d.reports
	if d.memory.heard == len(all) {
		all = nil // they are all of the fleet
	}
	for id, v := range all {
		if v.tip != "" && v.report != nil && p.fleet.fleet.Member(id) == nil && p.status.record(id) == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		d.news("strangers", "")
		return
	}
	slices.Sort(ids)
	shown := ids[:min(len(ids), shownStrangers)]
	parts := make([]string, 0, len(shown)+1)
	for _, id := range shown {
		text := quoteID(id) + " reports, but is not in the fleet"
		if meant := d.meant(p.fleet, id); meant != "" {
			text += " (did you mean " + meant + "?)"
		}
		parts = append(parts, text)
	}
	if len(ids) > len(shown) {
		parts = append(parts, "and others")
	}
	c := schema.Condition{
		Type:    conditionStranger,
		Reason:  "NotInFleet",
		Message: strings.Join(parts, "; "),
		Remedy:  "correct the name in the agent's configuration, or add the device to the fleet; a report that nobody sends any more goes with its ref: git push --delete REPOSITORY " + d.cfg.ReportRefs + refWord(ids[0]),
	}
	p.notices = append(p.notices, c)
	if d.news("strangers", c.Message) {
		d.log.WarnContext(ctx, c.Message, keyRemedy, c.Remedy)
	}
}

// keepStrangers lets the condition stand while no fleet can be compared with.
func (p *pass) keepStrangers() {
	if p.status == nil || p.status.Fleet == nil {
		return
	}
	for _, c := range p.status.Fleet.Conditions {
		if c.Type == conditionStranger {
			p.notices = append(p.notices, c)
		}
	}
}

// strangeName stands in a command for a name that no shell takes as it is.
const strangeName = "NAME"

// refWord is an id in a command; what a shell would not take as it stands is
// for a person to fill in.
func refWord(id string) string {
	if quoteID(id) != id {
		return strangeName
	}
	return id
}

// quoteID writes a name that anybody may have chosen.
func quoteID(id string) string {
	plain := len(id) <= maxID && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
	if plain {
		return id
	}
	if len(id) > maxID {
		id = strings.ToValidUTF8(id[:maxID], "") + "…"
	}
	return strconv.Quote(id)
}

// meant is the device of the fleet whose name is nearest; "" = none is near.
// The answer is kept, because it is asked again in every pass.
func (d *Daemon) meant(lf *loadedFleet, id string) string {
	if d.meantAt != lf.commit {
		d.meantAt, d.meantIDs = lf.commit, map[string]string{}
	}
	if known, ok := d.meantIDs[id]; ok {
		return known
	}
	best, distance := "", nearEnough+1
	for _, m := range lf.fleet.Devices {
		if n := schema.EditDistance(id, m.ID, distance); n < distance || n == distance && n <= nearEnough && m.ID < best {
			best, distance = m.ID, n
		}
	}
	d.meantIDs[id] = best
	return best
}
