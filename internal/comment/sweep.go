package comment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/planner"
)

// sweep is what the next sweep would decide.
func (d *document) sweep(p *preview.Plan) {
	d.counts(p)
	d.moving(p)
	d.blocked(p)
}

// counts is a table of the verdicts of each wave.
func (d *document) counts(p *preview.Plan) {
	type wave struct{ policy, name string }
	var order []wave
	byCode := map[wave]map[string]int{}
	add := func(w wave) {
		if byCode[w] == nil {
			order = append(order, w)
			byCode[w] = map[string]int{}
		}
	}
	for i := range p.Summary.Policies {
		for _, name := range p.Summary.Policies[i].Waves {
			add(wave{p.Summary.Policies[i].Policy, name})
		}
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		w := wave{v.Policy, v.Wave}
		add(w)
		byCode[w][v.Code]++
	}
	order = slices.DeleteFunc(order, func(w wave) bool { return len(byCode[w]) == 0 })
	const most = 40 // waves
	d.table(keepCounts, "Next sweep", []string{"policy", "wave", "devices"}, most, len(order), func(i int) []string {
		w := order[i]
		return []string{orDash(w.policy), orDash(w.name), codes(byCode[w])}
	})
}

func codes(counts map[string]int) string {
	var words []string
	for _, c := range view.CodeOrder(counts) {
		words = append(words, fmt.Sprintf("%d %s", counts[c], prose(c)))
	}
	return strings.Join(words, " · ")
}

// moving lists who goes, and who is called back.
func (d *document) moving(p *preview.Plan) {
	var moves []*preview.Verdict
	for i := range p.Verdicts {
		if p.Verdicts[i].Upgrade {
			moves = append(moves, &p.Verdicts[i])
		}
	}
	const most = 20 // devices
	d.list(keepMoving, "Moves next", most, len(moves)+len(p.Recalls), func(i int) string {
		if i < len(p.Recalls) {
			r := &p.Recalls[i]
			return code(clip(r.Device, longestName)) + " is recalled: " + prose(r.Because)
		}
		v := moves[i-len(p.Recalls)]
		return code(clip(v.Device, longestName)) + ": " + prose(view.WhyText(v, p.Summary.Assumed))
	})
}

// standing is a reason that several devices have in common.
type standing struct {
	code, reason string
	urgency      int
	devices      []string
}

// blocked groups the devices that do not move, though they are not where they
// should be, by the reason.
func (d *document) blocked(p *preview.Plan) {
	groups := standings(p)
	const most = 30 // reasons
	d.table(keepBlocked, "Waiting", []string{"verdict", "devices", "reason"}, most, len(groups), func(i int) []string {
		g := &groups[i]
		return []string{prose(g.code), fmt.Sprintf("%d: %s", len(g.devices), names(g.devices)), g.reason}
	})
}

// standings are the groups, those first that somebody has to do something about,
// and then the largest.
func standings(p *preview.Plan) []standing {
	type key struct{ code, reason string }
	at := map[key]int{}
	var list []standing
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		switch planner.Code(v.Code) {
		case planner.Current, planner.Upgrading, planner.Upgrade:
			continue
		}
		k := key{v.Code, view.WhyText(v, p.Summary.Assumed)}
		n, known := at[k]
		if !known {
			n = len(list)
			at[k] = n
			list = append(list, standing{code: v.Code, reason: k.reason, urgency: urgency(v.Code)})
		}
		list[n].devices = append(list[n].devices, v.Device)
	}
	slices.SortStableFunc(list, func(a, b standing) int {
		return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(len(b.devices), len(a.devices)))
	})
	return merged(list)
}

// merged puts together what is left of a code after its first reasons: each
// device of many may have one of its own.
func merged(list []standing) []standing {
	const most = 4 // reasons of one code
	var out []standing
	seen, others := map[string]int{}, map[string]int{} // reasons; where the rest of a code is in out
	for _, s := range list {
		seen[s.code]++
		if seen[s.code] <= most {
			s.reason = prose(s.reason)
			out = append(out, s)
			continue
		}
		n, known := others[s.code]
		if !known {
			n = len(out)
			others[s.code] = n
			out = append(out, standing{code: s.code})
		}
		out[n].devices = append(out[n].devices, s.devices...)
		out[n].reason = counted(seen[s.code]-most, "other reason")
	}
	return out
}

// urgency orders codes by what they ask of a person.
func urgency(code string) int {
	switch planner.Code(code).Kind() {
	case planner.Wait:
		return 1
	case planner.Leave:
		return 2
	}
	return 0 // needs attention, or is of a newer program
}

// everyDevice is a table of all devices, folded. A version that is assumed of
// all of them is no column.
func (d *document) everyDevice(p *preview.Plan) {
	open, closing := fold("The verdict for " + counted(len(p.Verdicts), "device"))
	assumed := p.Summary.Assumed
	const version = 2 // its column
	cells := func(all ...string) []string {
		if assumed {
			return slices.Delete(all, version, version+1)
		}
		return all
	}
	d.add(part{
		keep: keepEveryDevice, title: "the verdict of each device", close: closing, more: "\n",
		open: open + tableHead(cells("device", "verdict", "version", "target", "reason")),
		rows: len(p.Verdicts), row: func(i int) string {
			v := &p.Verdicts[i]
			return tableRow(cells(code(clip(v.Device, longestName)), prose(v.Code), orDash(v.Version), orDash(v.Target), prose(view.WhyText(v, assumed))))
		},
	})
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return code(clip(s, longestName))
}
