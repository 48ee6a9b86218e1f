package sweep

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// smallChange says what changed where no attempt moved: a verdict, what is
// observed of a device, or what concerns the fleet.
func (p *pass) smallChange(changes map[string]string) string {
	byCode := map[string][]string{}
	var verdicts, reports []string
	for _, dr := range p.drafts {
		if dr.old == nil || dr.old.Status.Verdict.Code != dr.status.Verdict.Code {
			byCode[dr.status.Verdict.Code] = append(byCode[dr.status.Verdict.Code], dr.id)
			verdicts = append(verdicts, dr.id)
		} else if word := dr.changed(); word != "" {
			reports = append(reports, dr.id+" "+word)
		}
	}
	switch {
	case len(byCode) == 1:
		return names(verdicts) + " " + p.codeOf(verdicts[0])
	case len(byCode) > 1:
		parts := make([]string, 0, len(byCode))
		for _, code := range slices.Sorted(maps.Keys(byCode)) {
			parts = append(parts, fmt.Sprintf("%d %s", len(byCode[code]), code))
		}
		return fmt.Sprintf("%d devices: %s", len(verdicts), strings.Join(parts, ", "))
	case len(reports) > 0:
		slices.Sort(reports)
		if len(reports) > 1 {
			return fmt.Sprintf("%s; and %s", reports[0], count(len(reports)-1, "more device"))
		}
		return reports[0]
	}
	return p.fleetChange(changes)
}

func (p *pass) codeOf(id string) string {
	for _, dr := range p.drafts {
		if dr.id == id {
			return dr.status.Verdict.Code
		}
	}
	return ""
}

// fleetChange says what changed beside the devices.
func (p *pass) fleetChange(changes map[string]string) string {
	var before []schema.Condition
	if p.status.Fleet != nil {
		before = p.status.Fleet.Conditions
	}
	same := func(a schema.Condition) func(schema.Condition) bool {
		return func(b schema.Condition) bool { return a.Type == b.Type && a.Reason == b.Reason }
	}
	now := p.conditions()
	for _, c := range now {
		if !slices.ContainsFunc(before, same(c)) {
			return c.Type + ", " + c.Reason
		}
	}
	for _, c := range before {
		if !slices.ContainsFunc(now, same(c)) {
			return "no longer " + c.Type + ", " + c.Reason
		}
	}
	for _, dir := range []struct{ is, word string }{
		{fleetFile, "progress of the rollouts"}, {failuresDir, "failure marks"}, {payloadsDir, "payloads that nobody needs any more"},
	} {
		for path := range changes {
			if strings.HasPrefix(path, dir.is) {
				return dir.word
			}
		}
	}
	return count(len(changes), "file")
}

func (d *draft) docChanged() bool {
	if d.force && d.doc != nil {
		return true
	}
	if d.doc == nil || d.old == nil || d.old.Assignment == nil {
		return d.doc != nil
	}
	if d.doc == d.old.Assignment {
		return false
	}
	a, b := *d.doc, *d.old.Assignment
	a.Generation, b.Generation = 0, 0
	return !reflect.DeepEqual(a, b)
}

// statusChanged says whether the status is worth a commit: a sequence alone
// is not.
func (d *draft) statusChanged() bool {
	if d.force || d.old == nil || d.old.Path != d.path {
		return true
	}
	a, b := d.status, d.old.Status
	if a.Policy != b.Policy || a.Verdict != b.Verdict || !samePointee(a.Assignment, b.Assignment) {
		return true
	}
	if !sameObserved(a.Observed, b.Observed) {
		return true
	}
	return d.moved || len(a.Attempts) != len(b.Attempts)
}

func samePointee[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameObserved(a, b *schema.Observed) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Sequence, y.Sequence = 0, 0
	if !timeOf(x.OfflineSince).Equal(timeOf(y.OfflineSince)) || !timeOf(x.HeardAt).Equal(timeOf(y.HeardAt)) || !x.Since.Equal(y.Since) {
		return false
	}
	x.OfflineSince, y.OfflineSince, x.HeardAt, y.HeardAt = nil, nil, nil, nil
	x.Since, y.Since = time.Time{}, time.Time{}
	return x == y
}

// changed says in a few words what is new about a device whose verdict is the
// same; "" = nothing that is committed.
func (d *draft) changed() string {
	if d.retire {
		return "is forgotten"
	}
	if d.old.Path != d.path {
		return "moved to " + d.path
	}
	if word := d.docWord(); word != "" {
		return word
	}
	if !d.statusChanged() {
		return ""
	}
	if word := observedWord(d.old.Status.Observed, d.status.Observed); word != "" {
		return word
	}
	if d.old.Status.Policy != d.status.Policy {
		return "belongs to " + or(d.status.Policy, "no policy")
	}
	if d.old.Status.Verdict != d.status.Verdict {
		return d.status.Verdict.Code + ", other words"
	}
	switch a := lastAttempt(d.status); {
	case d.moved && a != nil && a.Outcome == "" && a.OnTargetAt != nil:
		return "is on " + a.Version + " and settles"
	case !samePointee(d.status.Assignment, d.old.Status.Assignment):
		return "has its assignment on record again"
	}
	return "has news"
}

func (d *draft) docWord() string {
	if !d.docChanged() || d.old.Assignment == nil {
		return ""
	}
	was, is := d.old.Assignment, d.doc
	switch {
	case is.Removed && !was.Removed:
		return "left the fleet"
	case is.Hold != nil && (was.Hold == nil || was.Hold.Reason != is.Hold.Reason):
		return "is told to hold"
	case is.Hold == nil && was.Hold != nil:
		return "is no longer told to hold"
	}
	return "has a new assignment"
}

func observedWord(was, is *schema.Observed) string {
	switch {
	case is == nil:
		return ""
	case was == nil:
		return "reports for the first time"
	case was.InstallID != is.InstallID:
		return "is another installation"
	case was.Problem != is.Problem:
		if is.Problem == "" {
			return "sends good reports again"
		}
		return "sent a report that is refused"
	case was.Online != is.Online:
		if is.Online {
			return "is online again"
		}
		return "is offline"
	case was.Version != is.Version:
		return "runs " + is.Version
	case was.Digest != is.Digest:
		return "runs other content of " + is.Version
	case was.Held != is.Held:
		if is.Held == "" {
			return "is no longer held on the device"
		}
		return "is held on the device"
	case was.Busy != is.Busy:
		if is.Busy {
			return "is busy"
		}
		return "is no longer busy"
	case was.Phase != is.Phase || was.Attempt != is.Attempt || was.Reason != is.Reason:
		return "reports " + string(is.Phase)
	case !timeOf(was.HeardAt).Equal(timeOf(is.HeardAt)):
		return "has soaked"
	case was.Generation != is.Generation:
		return fmt.Sprintf("has seen generation %d", is.Generation)
	case was.AgentVersion != is.AgentVersion:
		return "has agent " + is.AgentVersion
	}
	return ""
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// count writes a number of things.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
