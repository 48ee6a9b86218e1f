package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/simulate"
	"github.com/gitopsd/gitopsd/planner"
)

// Bounds of what the text shows of a simulation; the JSON has all of it.
const (
	shownSites     = 12 // of one wave
	shownObstacles = 20 // kinds of them
	shownPeaks     = 5  // sites with the most devices away
)

// Widths of a timeline, in characters.
const (
	barWidth   = 60 // where the width is not limited
	barLeast   = 10 // below it a bar gets a line of its own
	labelLeast = 6  // of the names of waves and sites
	labelMost  = 24
)

// WriteSimulation writes how a rollout unfolds: a timeline for each policy,
// who is away at most, who never gets there, and how far a bad release would.
func WriteSimulation(w io.Writer, s *simulate.Simulation, look Look) error {
	var b bytes.Buffer
	t := simulationText{planText{b: &b, look: look}, s}
	t.outcome()
	for i := range s.Policies {
		if p := &s.Policies[i]; p.Devices > 0 {
			t.policy(p)
		}
	}
	t.legend()
	t.away()
	t.never()
	t.badRelease()
	_, err := w.Write(b.Bytes())
	return err
}

// simulationText writes the parts of a simulation.
type simulationText struct {
	planText
	s *simulate.Simulation
}

// outcome says in a line or two what comes out.
func (t *simulationText) outcome() {
	s := t.s
	move := s.Arrived + s.Remaining
	switch {
	case s.Total == 0:
		t.line(0, "there are no devices")
		return
	case move == 0:
		t.line(0, fmt.Sprintf("nothing to do: %s on target", isOrAre(s.Current, s.Total)))
		return
	case s.Arrived == 0:
		t.line(0, fmt.Sprintf("none of %s gets there", counted(move, "device")))
	case s.Remaining == 0:
		t.line(0, fmt.Sprintf("all %s get there in %s, by %s", counted(move, "device"), lengthText(s.DoneAt.Sub(s.Start)), instant(s.DoneAt)))
	default:
		t.line(0, fmt.Sprintf("%d of %s get there in %s, by %s; %d do not", s.Arrived, counted(move, "device"), lengthText(s.DoneAt.Sub(s.Start)), instant(s.DoneAt), s.Remaining))
	}
	if s.State == simulate.Unfinished {
		t.line(0, "and it is not over: this looks no further ahead than "+instant(s.End))
	}
}

func isOrAre(n, of int) string {
	if n == of {
		return fmt.Sprintf("all %d are", n)
	}
	return fmt.Sprintf("%d of %d are", n, of)
}

// policy writes the timeline of a policy.
func (t *simulationText) policy(p *simulate.Policy) {
	t.section(t.look.hang(fmt.Sprintf("%s → %s", Clean(p.Policy), Clean(or(p.Target, "no target"))), gap))
	var words []string
	if p.Current > 0 {
		words = append(words, fmt.Sprintf("%d there already", p.Current))
	}
	words = append(words, fmt.Sprintf("%d of %d arrive", p.Arrived, p.Devices-p.Current))
	if p.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", p.Failed))
	}
	if p.Refused > 0 {
		words = append(words, fmt.Sprintf("%d refused", p.Refused))
	}
	if p.Halted {
		words = append(words, "HALTED")
	}
	t.line(0, strings.Join(words, " · "))
	if p.FirstAt.IsZero() {
		return
	}
	t.timeline(p)
}

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

// legend says how bars are to be read, once.
func (t *simulationText) legend() {
	moved := slices.ContainsFunc(t.s.Policies, func(p simulate.Policy) bool { return !p.FirstAt.IsZero() })
	if moved {
		t.b.WriteByte('\n')
		t.line(0, "bars: · on the way, ▁▄▇ the share that is done, █ all, × a failure")
	}
}

// away says how many devices are unavailable because of updates.
func (t *simulationText) away() {
	s := t.s
	if s.InFlight.Devices == 0 {
		return
	}
	t.section("AWAY AT MOST")
	text := fmt.Sprintf("%s at one time (first at %s)", counted(s.InFlight.Devices, "device"), clock(s.InFlight.At, s.Start))
	if s.Working.Devices != s.InFlight.Devices {
		text += fmt.Sprintf(", %d of them really at work", s.Working.Devices)
	}
	t.line(0, text)
	if len(s.Sites) < 2 {
		return
	}
	sites := slices.Clone(s.Sites)
	slices.SortStableFunc(sites, func(a, b simulate.SitePeak) int { return b.Devices - a.Devices })
	sites = slices.DeleteFunc(sites, func(p simulate.SitePeak) bool { return p.Devices == 0 })
	var words []string
	for i, p := range sites {
		if i == shownPeaks {
			words = append(words, fmt.Sprintf("and %d more", len(sites)-i))
			break
		}
		words = append(words, fmt.Sprintf("%s %d of %d", or(Clean(p.Site), "no "+Clean(s.By)), p.Devices, p.Of))
	}
	t.line(0, "by "+Clean(s.By)+": "+strings.Join(words, " · "))
}

// never lists who does not get there, and why.
func (t *simulationText) never() {
	list := t.s.Never
	if len(list) == 0 {
		return
	}
	name := "NEVER THERE"
	if t.s.State == simulate.Unfinished {
		name = "NOT THERE BY THEN"
	}
	t.section(name)
	for i := range list {
		if i == shownObstacles {
			t.line(0, fmt.Sprintf("and %d more reasons: -o json has them", len(list)-i))
			return
		}
		o := &list[i]
		t.line(0, fmt.Sprintf("%s  %s  %s  %s", Clean(o.Code), Clean(or(o.Policy, "no policy")), counted(len(o.Devices), "device"), namesText(o.Devices)))
		t.line(2, Clean(or(o.Detail, o.Reason)))
	}
}

// badRelease says how far a release would get of which every update fails.
func (t *simulationText) badRelease() {
	bad := t.s.BadRelease
	if bad == nil || len(bad.Policies) == 0 {
		return
	}
	t.section("IF EVERY UPDATE FAILED")
	for _, p := range bad.Policies {
		text := fmt.Sprintf("%s  %s starts on %d of %s", Clean(p.Policy), Clean(or(p.Target, "it")), p.Started, counted(p.Of, "device"))
		switch {
		case p.Halted:
			text += fmt.Sprintf(", the last at %s; then the policy halts", clock(p.LastAt, t.s.Start))
		case p.Started > 0:
			text += fmt.Sprintf(", the last at %s; the policy does not halt", clock(p.LastAt, t.s.Start))
		}
		t.line(0, text)
	}
}

// instant is a time in full.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// lengthText is a length of time to two units: "2d 3h", "1h 5m", "40s".
func lengthText(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return strings.TrimSuffix(fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour), " 0h")
	case d >= time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute), " 0m")
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
