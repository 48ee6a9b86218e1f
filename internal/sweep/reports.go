package sweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/schema"
)

// maxReport bounds a report: a few failures of 8 KiB each and a list of drifted
// paths fit many times.
const maxReport = 1 << 20

// reportView is what this daemon has read of one report ref.
type reportView struct {
	tip     string
	report  *schema.Report // the newest good one; nil = none yet
	problem string         // why the newest one is not good; "" = it is
}

// readReports reads the reports whose refs moved, all in one exchange.
func (p *pass) readReports(ctx context.Context) error {
	d := p.d
	refs := p.refs
	if p.relist || !d.sameRepository() {
		var err error
		if refs, err = d.cfg.Reports.Refs(ctx, d.cfg.ReportRefs); err != nil {
			return fmt.Errorf("list the reports: %w", err)
		}
	}
	changed, still := map[string]string{}, 0
	for ref, tip := range refs {
		id, ok := strings.CutPrefix(ref, d.cfg.ReportRefs)
		if !ok || id == "" {
			continue
		}
		v := d.reports[id]
		if v != nil {
			still++
		}
		if v == nil || v.tip != tip {
			changed[ref] = tip
		}
	}
	gone := still < len(d.reports)
	if len(changed) > 0 {
		p.heard = true
		contents, err := d.cfg.Reports.Tips(ctx, changed, maxReport)
		if err != nil {
			return fmt.Errorf("read %d reports: %w", len(changed), err)
		}
		var strangers []string
		for _, ref := range slices.Sorted(maps.Keys(changed)) {
			id := strings.TrimPrefix(ref, d.cfg.ReportRefs)
			files, found := contents[ref]
			problem := p.takeReport(id, changed[ref], files, found)
			switch {
			case problem == "":
			case p.isDevice(id):
				d.log.WarnContext(ctx, "a report is refused", keyDevice, id, keyReason, problem)
			default:
				strangers = append(strangers, quoteID(id))
			}
		}
		if n := len(strangers); n > 0 {
			const named = 10 // whoever may push can make as many as they like
			d.log.WarnContext(ctx, "reports of no device of the fleet are refused", "count", n, "such_as", strings.Join(strangers[:min(n, named)], " "))
		}
	}
	if gone || !d.firstRead {
		p.forgetReports(refs)
	}
	d.firstRead = true
	return nil
}

// forgetReports lets go of reports whose refs are gone. The last good one of a
// device that has a status stays.
func (p *pass) forgetReports(refs map[string]string) {
	d := p.d
	if !d.firstRead { // what the state folder remembers
		for id := range d.state.seen {
			if refs[d.cfg.ReportRefs+id] == "" && p.status.Devices[id] == nil {
				delete(d.state.seen, id)
				d.state.note(id)
			}
		}
	}
	for id, v := range d.reports {
		if refs[d.cfg.ReportRefs+id] != "" {
			continue
		}
		p.heard = p.heard || v.tip != ""
		if v.tip, v.problem = "", ""; p.status.Devices[id] == nil {
			delete(d.reports, id)
			delete(d.state.seen, id)
			d.state.note(id)
			d.news("report "+id, "")
		}
	}
}

// isDevice says whether the fleet has a device, as far as is known before the
// head is looked at.
func (p *pass) isDevice(id string) bool {
	valid := p.d.valid
	return p.status.Devices[id] != nil || valid != nil && valid.fleet.Member(id) != nil
}

// takeReport notes one moved report. A bad one never replaces a good one; it
// becomes a problem in the device's status, and is given where it is news.
func (p *pass) takeReport(id, tip string, files map[string][]byte, found bool) string {
	d := p.d
	v := d.reports[id]
	if v == nil {
		v = &reportView{}
		d.reports[id] = v
	}
	v.tip = tip
	report, problem := readReport(id, files, found)
	if problem == "" {
		problem = p.noteSeen(id, report)
	}
	v.problem = problem
	if problem == "" {
		v.report = report
	}
	if !d.news("report "+id, problem) {
		return ""
	}
	return problem
}

func readReport(id string, files map[string][]byte, found bool) (*schema.Report, string) {
	if !found {
		return nil, fmt.Sprintf("the report is larger than %d bytes", maxReport)
	}
	if files == nil {
		return nil, "the report cannot be read: its ref names no commit, or one that is damaged or lacks a part"
	}
	data, ok := files[reportFile]
	if !ok {
		return nil, "the report ref holds no " + reportFile
	}
	r := &schema.Report{}
	for _, problem := range schema.DecodeReport(reportFile, data, r) {
		if problem.Severity == schema.SeverityError {
			return nil, fmt.Sprintf("%s:%d: %s", reportFile, problem.Line, oneLine(problem.Message))
		}
	}
	if r.Metadata.Name != id {
		return nil, fmt.Sprintf("the report is of another device: it names %q", r.Metadata.Name)
	}
	return r, ""
}

// noteSeen stamps when a sequence was first seen. It says what is wrong with
// the order of the reports, or "".
func (p *pass) noteSeen(id string, r *schema.Report) string {
	d := p.d
	d.state.note(id)
	s := d.state.seen[id]
	observed := p.observed(id)
	if s == nil {
		s = &seenState{Install: r.InstallID, Sequence: r.Sequence, At: p.now, Boot: r.BootID}
		if !d.firstRead { // it may have been there long before this daemon was
			s.At = saidAt(r, p.now)
		}
		if observed != nil && observed.InstallID != "" && observed.InstallID != r.InstallID {
			s.Installs = []string{observed.InstallID}
		}
		d.state.seen[id] = s
		return ""
	}
	if s.Install == r.InstallID {
		if s.isClone(r) {
			s.Duplicate = p.now
		}
		if r.Sequence < s.Sequence {
			return fmt.Sprintf("sequence %d is below %d, which was seen before", r.Sequence, s.Sequence)
		}
		if r.Sequence > s.Sequence {
			s.booted(r.BootID)
			s.Sequence, s.At = r.Sequence, p.now
		}
		return ""
	}
	if slices.Contains(s.Installs, r.InstallID) {
		s.Duplicate = p.now
	}
	s.Installs = append(slices.DeleteFunc(s.Installs, func(i string) bool { return i == r.InstallID || i == s.Install }), s.Install)
	if over := len(s.Installs) - keptInstalls; over > 0 {
		s.Installs = s.Installs[over:]
	}
	s.Install, s.Sequence, s.At = r.InstallID, r.Sequence, p.now
	s.Boot, s.Boots = r.BootID, nil
	return ""
}

// saidAt is when a report was made, for somebody who finds it there at some
// time: the device's own word is all there is, as far as it can be true.
func saidAt(r *schema.Report, now time.Time) time.Time {
	if at := stamp(r.ReportedAt); r.ReportedAt.Before(now) && wasSet(at) {
		return at
	}
	return now
}

// HeardOf is what somebody has heard from a device who only now reads its
// report; nil = it has none.
func HeardOf(r *schema.Report, now time.Time) Heard {
	if r == nil {
		return Heard{}
	}
	return Heard{Report: r, Present: true, At: saidAt(r, now)}
}

func (p *pass) observed(id string) *schema.Observed {
	if rec := p.status.Devices[id]; rec != nil {
		return rec.Status.Observed
	}
	return nil
}

// heardOf is what is known of a device from its reports.
func (p *pass) heardOf(id string) Heard {
	h := Heard{Ignored: p.unheard[id]}
	if v := p.d.reports[id]; v != nil {
		h.Report, h.Problem, h.Present = v.report, v.problem, v.tip != ""
	}
	if s := p.d.state.seen[id]; s != nil {
		h.At, h.TwoAt = s.At, s.Duplicate
	}
	return h
}

// oneLine keeps the words of devices and people from breaking a document's
// line, or the terminal of whoever reads it.
func oneLine(s string) string {
	const most = 500 // a status file is read by people
	if len(s) <= most && isPlain(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return '?'
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// isPlain says whether nothing has to be done to a string; most are so, and
// every device's are looked at in every pass.
func isPlain(s string) bool {
	for i := range len(s) {
		space := s[i] == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ')
		if s[i] < ' ' || s[i] > '~' || space {
			return false
		}
	}
	return true
}
