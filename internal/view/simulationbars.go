package view

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/simulate"
	"github.com/gitopsd/gitopsd/planner"
)

// Widths of a timeline, in characters.
const (
	barWidth   = 60 // where the width is not limited
	barLeast   = 10 // below it a bar gets a line of its own
	labelLeast = 6  // of the names of waves and sites
	labelMost  = 24
)

// row is one line of a timeline.
type row struct {
	label string
	simulate.Progress
	in func(*simulate.Device) bool
}

func (t *simulationText) timeline(p *simulate.Policy) {
	rows := t.rows(p)
	label, count, end := labelLeast, len("DONE"), len("DONE AT")
	for _, r := range rows {
		label = max(label, min(labelMost, utf8.RuneCountInString(r.label)))
		count = max(count, len(r.count()))
		end = max(end, utf8.RuneCountInString(t.endText(&r)))
	}
	bar, below := barWidth, false
	if t.look.Width > 0 {
		bar = t.look.Width - label - count - end - 3*gap
		if below = bar < barLeast; below {
			bar = max(barLeast, t.look.Width-gap)
		}
	}
	span := t.span()
	axis := t.axisText(span, bar)
	if below {
		t.plain(t.look.paint(colorHead, strings.Repeat(" ", gap)+axis))
	} else {
		head := fmt.Sprintf("%-*s%s%*s%s%s%s%s", label, "WAVE", spaces(gap), count, "DONE", spaces(gap), axis, spaces(gap), "DONE AT")
		t.plain(t.look.paint(colorHead, head))
	}
	for i := range rows {
		r := &rows[i]
		text := shorten(r.label, label)
		text += spaces(label-utf8.RuneCountInString(text)) + spaces(gap) + spaces(count-len(r.count())) + r.count() + spaces(gap)
		cells := t.bar(r, span, bar)
		if below {
			t.plain(strings.TrimRight(text+t.endText(r), " "))
			t.plain(strings.TrimRight(spaces(gap)+cells, " "))
			continue
		}
		t.plain(strings.TrimRight(text+cells+spaces(gap)+t.endText(r), " "))
	}
}

func (t *simulationText) plain(text string) { fmt.Fprintln(t.b, text) }

func spaces(n int) string { return strings.Repeat(" ", max(0, n)) }

func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

func (r *row) count() string { return fmt.Sprintf("%d/%d", r.Current+r.Arrived, r.Devices) }

// endText is when a row is done; "" = it is not.
func (t *simulationText) endText(r *row) string {
	switch {
	case r.Current == r.Devices:
		return "already"
	case r.Current+r.Arrived < r.Devices && r.FirstAt.IsZero():
		return "never"
	case r.Current+r.Arrived < r.Devices:
		return "not all"
	}
	return clock(r.DoneAt, t.s.Start)
}

// rows are the waves of a policy, and where there are several sites, those
// below each.
func (t *simulationText) rows(p *simulate.Policy) []row {
	var rows []row
	for i := range p.Waves {
		w := &p.Waves[i]
		name := Clean(w.Wave)
		switch {
		case w.Wave != "":
		case len(p.Waves) == 1 && w.Devices == p.Devices && !t.hasWaves(p):
			name = "all"
		default:
			name = "the rest"
		}
		in := func(d *simulate.Device) bool { return d.Policy == p.Policy && t.waveOf(p, d) == w.Wave }
		rows = append(rows, row{label: name, Progress: w.Progress, in: in})
		if len(w.Sites) < 2 {
			if len(t.s.Sites) > 1 && w.Sites[0].Site != "" {
				rows[len(rows)-1].label += " (" + Clean(w.Sites[0].Site) + ")"
			}
			continue
		}
		sites := slices.Clone(w.Sites)
		if len(sites) > shownSites {
			// The last ones are those that somebody waits for.
			slices.SortStableFunc(sites, func(a, b simulate.Site) int { return lateness(&b).Compare(lateness(&a)) })
			sites = sites[:shownSites]
		}
		for _, site := range sites {
			rows = append(rows, row{label: "  " + or(Clean(site.Site), "no "+Clean(t.s.By)), Progress: site.Progress, in: func(d *simulate.Device) bool {
				return in(d) && d.Site == site.Site
			}})
		}
		if more := len(w.Sites) - len(sites); more > 0 {
			rows[len(rows)-1-len(sites)].label += fmt.Sprintf(" (%d of %d sites)", len(sites), len(w.Sites))
		}
	}
	return rows
}

// hasWaves says whether a device of the policy is in a wave that has a name.
func (t *simulationText) hasWaves(p *simulate.Policy) bool {
	return slices.ContainsFunc(p.Waves, func(w simulate.Wave) bool { return w.Wave != "" })
}

// waveOf is the wave that a device is counted in.
func (t *simulationText) waveOf(p *simulate.Policy, d *simulate.Device) string {
	if slices.ContainsFunc(p.Waves, func(w simulate.Wave) bool { return w.Wave == d.Wave }) {
		return d.Wave
	}
	return ""
}

// lateness orders sites by when they are done; those that never are come last.
func lateness(s *simulate.Site) time.Time {
	if s.Current+s.Arrived < s.Devices {
		return time.Unix(1<<40, 0)
	}
	return s.DoneAt
}

// span is the time that timelines show: from the first assignment until nothing
// moves any more.
func (t *simulationText) span() [2]time.Time {
	var from, to time.Time
	for i := range t.s.Devices {
		d := &t.s.Devices[i]
		for _, at := range []time.Time{d.AssignedAt, d.StartedAt, d.DoneAt, d.FailedAt} {
			if at.IsZero() {
				continue
			}
			if from.IsZero() || at.Before(from) {
				from = at
			}
			if at.After(to) {
				to = at
			}
		}
	}
	if !to.After(from) {
		to = from.Add(time.Minute)
	}
	return [2]time.Time{from, to}
}

// axisText is the head of the bars: when they begin and end.
func (t *simulationText) axisText(span [2]time.Time, width int) string {
	from, to := clock(span[0], t.s.Start), clock(span[1], span[0])
	fill := width - utf8.RuneCountInString(from) - utf8.RuneCountInString(to) - 2
	switch {
	case fill >= 0:
		return from + " " + strings.Repeat("─", fill) + " " + to
	case width >= utf8.RuneCountInString(to):
		return spaces(width-utf8.RuneCountInString(to)) + to
	}
	return spaces(width)
}

// levels are how much of a row is done, from little to all.
var levels = []rune("▁▂▃▄▅▆▇█")

const (
	cellWaiting = ' ' // nobody moves, nobody is done
	cellMoving  = '·' // somebody is on the way, nobody is done
	cellFailed  = '×' // somebody failed
)

// bar draws a row: each cell is a stretch of time, as high as the share of the
// row that is done at its end.
func (t *simulationText) bar(r *row, span [2]time.Time, width int) string {
	length := span[1].Sub(span[0])
	at := func(when time.Time) int {
		return min(width-1, max(0, int(float64(when.Sub(span[0]))/float64(length)*float64(width))))
	}
	done, moving, failed := make([]int, width), make([]int, width+1), make([]bool, width)
	for i := range t.s.Devices {
		d := &t.s.Devices[i]
		if !r.in(d) {
			continue
		}
		isDone := d.Code == string(planner.Current)
		from := 0
		if isDone && !d.DoneAt.IsZero() {
			from = at(d.DoneAt)
		}
		if isDone {
			done[from]++
		}
		if !d.FailedAt.IsZero() {
			failed[at(d.FailedAt)] = true
		}
		if !d.AssignedAt.IsZero() {
			moving[at(d.AssignedAt)]++
			switch {
			case isDone:
				moving[from+1]--
			case !d.FailedAt.IsZero():
				moving[at(d.FailedAt)+1]--
			default:
				moving[width]--
			}
		}
	}
	var b strings.Builder
	sum, under := 0, 0
	for i := range width {
		sum += done[i]
		under += moving[i]
		cell, color := cellWaiting, ""
		switch {
		case failed[i]:
			cell, color = cellFailed, colorBad
		case sum == r.Devices:
			cell, color = levels[len(levels)-1], colorGood
		case sum > 0:
			cell, color = levels[min(len(levels)-2, sum*len(levels)/r.Devices)], colorBusy
		case under > 0:
			cell, color = cellMoving, colorBusy
		}
		b.WriteString(t.look.paint(color, string(cell)))
	}
	return b.String()
}
