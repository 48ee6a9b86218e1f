package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// Events tells what changes say happened, newest first. changes are newest
// first as well. The order is that of the commits, and in one of them the
// cause comes before the effect: times are whole seconds, and clocks are set.
func Events(changes []Change) []Event {
	list := []Event{}
	var since *time.Time // when the present verdict began, where that is known
	for i := len(changes) - 1; i >= 0; i-- {
		c := &changes[i]
		t := teller{change: c, since: since}
		t.tell()
		for k := range t.list {
			t.list[k].Commit = c.Commit
		}
		list = append(list, t.list...)
		since = t.since
	}
	slices.Reverse(list)
	return list
}

// eventsOf is what a device's record alone remembers, without the history.
func eventsOf(d *schema.DeviceStatus) []Event {
	t := teller{change: &Change{After: Standing{Status: d}}, list: []Event{}}
	t.attempts()
	slices.Reverse(t.list)
	return t.list
}

// teller tells of one change.
type teller struct {
	change *Change
	list   []Event
	since  *time.Time // see Events
	folded bool       // the verdict's change was told with an assignment
	ended  string     // version of an attempt that ended well
	// toldHold says that a hold was told of, which a verdict then repeats.
	toldHold bool
}

func (t *teller) add(kind, text string) *Event {
	t.list = append(t.list, Event{Time: t.change.Time.UTC(), Kind: kind, Text: text})
	return &t.list[len(t.list)-1]
}

func (t *teller) tell() {
	before, after := &t.change.Before, &t.change.After
	if after.Status == nil {
		t.add(EventRemoved, "its record was deleted")
		t.since = nil
		return
	}
	if before.Status != nil {
		t.place(before, after)
	}
	t.observed()
	t.attempts()
	t.holds()
	t.verdict()
}

// place tells where a device belongs.
func (t *teller) place(before, after *Standing) {
	switch was, is := before.gone(), after.gone(); {
	case !was && is:
		t.add(EventRemoved, "removed from the fleet")
	case was && !is:
		e := t.add(EventReturned, "in the fleet again")
		e.To = after.Path
	case !is && before.Path != after.Path:
		e := t.add(EventMoved, fmt.Sprintf("moved from %s to %s", before.Path, after.Path))
		e.From, e.To = before.Path, after.Path
	}
	was, is := before.Status.Policy, after.Status.Policy
	if was != is && !after.gone() {
		e := t.add(EventPolicy, fmt.Sprintf("policy %s → %s", or(was, "none"), or(is, "none")))
		e.From, e.To = was, is
	}
}

// observed tells what the device itself is.
func (t *teller) observed() {
	is := t.change.After.Status.Observed
	if is == nil || t.change.Before.Status == nil || t.change.Before.Status.Observed == nil {
		return
	}
	was := t.change.Before.Status.Observed
	if was.InstallID != is.InstallID && was.InstallID != "" {
		e := t.add(EventInstalled, fmt.Sprintf("another installation reports: %s → %s", was.InstallID, is.InstallID))
		e.From, e.To = was.InstallID, is.InstallID
	}
	switch {
	case was.Online && !is.Online:
		e := t.add(EventOffline, "offline")
		if is.OfflineSince != nil {
			e.Since = is.OfflineSince
			e.Text = "offline since " + Stamp(*is.OfflineSince)
		}
	case !was.Online && is.Online:
		t.add(EventOnline, "online again")
	}
}

// step is one thing that happens to an attempt once.
type step struct {
	attempt int64
	what    string
}

// attempts tells what happened to attempts that had not happened before.
func (t *teller) attempts() {
	told := map[step]bool{}
	if before := t.change.Before.Status; before != nil {
		for i := range before.Attempts {
			for _, e := range steps(&before.Attempts[i]) {
				told[step{e.Attempt, e.Kind + string(e.Outcome)}] = true
			}
		}
	}
	after := &t.change.After
	for i := range after.Status.Attempts {
		a := &after.Status.Attempts[i]
		for _, e := range steps(a) {
			if told[step{e.Attempt, e.Kind + string(e.Outcome)}] {
				continue
			}
			if e.Kind == EventAssigned {
				t.assigned(&e, a)
			}
			if e.Kind == EventEnded && e.Outcome == schema.OutcomeOK {
				t.ended = a.Version
			}
			t.list = append(t.list, e)
		}
	}
	t.version()
}

// version tells of a version that no attempt explains.
func (t *teller) version() {
	before, after := t.change.Before.Status, t.change.After.Status
	if before == nil || before.Observed == nil || after.Observed == nil {
		return
	}
	was, is := before.Observed.Version, after.Observed.Version
	open := len(before.Attempts) > 0 && before.Attempts[len(before.Attempts)-1].Outcome == ""
	if was == is || was == "" || is == t.ended || open {
		return
	}
	e := t.add(EventVersion, fmt.Sprintf("reports %s, before that %s", or(is, "no version"), was))
	e.From, e.To = was, is
}

// assigned adds to an assignment whose change led to it, and from where.
func (t *teller) assigned(e *Event, a *schema.Attempt) {
	if doc := t.change.After.Assignment; doc != nil && doc.Because != nil && doc.Attempt == a.Attempt {
		e.Because = doc.Because
		if doc.Because.Wave != "" {
			e.Text += " in wave " + doc.Because.Wave
		}
		if text := becauseText(doc.Because); text != "" {
			e.Text += ", by " + text
		}
	}
	before, after := t.change.Before.Status, t.change.After.Status
	if before == nil || t.folded || after.Verdict.Code != string(planner.Upgrading) || before.Verdict.Code == after.Verdict.Code {
		return
	}
	t.folded = true
	e.From, e.To, e.Since, e.Reason = before.Verdict.Code, after.Verdict.Code, t.since, before.Verdict.Reason
	e.Text += "; it was " + e.From
	if t.since != nil {
		e.Text += " since " + clock(*t.since, e.Time)
	}
}

// becauseText is a commit of the source branch for people.
func becauseText(b *schema.Because) string {
	var words []string
	if b.Commit != "" {
		words = append(words, Short(b.Commit))
	}
	switch b.Subject {
	case "":
	case schema.BecauseSwept: // nobody's words
		words = append(words, "("+b.Subject+")")
	default:
		words = append(words, `"`+b.Subject+`"`)
	}
	if b.Author != "" {
		words = append(words, "of "+b.Author)
	}
	return strings.Join(words, " ")
}

// steps are what happened to one attempt, in order.
func steps(a *schema.Attempt) []Event {
	var list []Event
	add := func(at time.Time, kind, text string) *Event {
		list = append(list, Event{
			Time: at.UTC(), Kind: kind, Text: fmt.Sprintf("attempt %d: %s", a.Attempt, text), Attempt: a.Attempt, Version: a.Version, Digest: a.Digest,
		})
		return &list[len(list)-1]
	}
	text := a.Version
	if a.Digest != "" {
		text += " (" + shortDigest(a.Digest) + ")"
	}
	add(a.AssignedAt, EventAssigned, text+" was assigned")
	if a.StartedAt != nil {
		add(*a.StartedAt, EventStarted, "its start was seen") // by a sweep; the device began before
	}
	if a.Recall != nil {
		e := add(a.Recall.At, EventRecalled, "recalled, "+or(a.Recall.Because, string(a.Recall.Outcome)))
		e.Reason = a.Recall.Because
	}
	if a.EndedAt != nil {
		text := string(a.Outcome)
		if why := said(a.Message, a.Stage); why != "" {
			text += ": " + why
		}
		e := add(*a.EndedAt, EventEnded, text)
		e.Outcome, e.Stage, e.Message = a.Outcome, a.Stage, a.Message
	}
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Compare(a.Time.Unix(), b.Time.Unix()) })
	return list
}

// holds tells of a hold that began or ended, in git or on the device.
func (t *teller) holds() {
	hold := func(s *Standing) (inGit, onDevice string) {
		if s.Assignment != nil && s.Assignment.Hold != nil {
			inGit = or(s.Assignment.Hold.Reason, "held")
		}
		if s.Status != nil && s.Status.Observed != nil {
			onDevice = s.Status.Observed.Held
		}
		return inGit, onDevice
	}
	say := func(was, is, where string) {
		switch {
		case was == is:
		case is == "":
			e := t.add(EventReleased, "no longer held "+where+": "+was)
			e.From, e.Reason = where, was
		default:
			t.toldHold = true
			e := t.add(EventHeld, "held "+where+": "+is)
			e.To, e.Reason = where, is
		}
	}
	wasGit, wasDevice := hold(&t.change.Before)
	isGit, isDevice := hold(&t.change.After)
	// Where the assignment was not read, the verdict alone tells of it.
	say(wasGit, isGit, "in git")
	say(wasDevice, isDevice, "on the device")
}

// saysWhy are the codes of which another reason is news of its own.
var saysWhy = map[string]bool{
	string(planner.Held): true, string(planner.Paused): true, string(planner.Stopped): true, string(planner.Frozen): true,
}

// verdict tells of another verdict or another target.
func (t *teller) verdict() {
	var was schema.Verdict
	if t.change.Before.Status != nil {
		was = t.change.Before.Status.Verdict
	}
	is := t.change.After.Status.Verdict
	changed := was.Code != is.Code
	if changed {
		now := t.change.Time.UTC()
		t.since = &now
	}
	newTarget := is.Target != "" && is.Target != was.Target && !t.folded
	newReason := !changed && was.Reason != is.Reason && saysWhy[is.Code]
	changed = changed && !t.folded
	if !changed && !newTarget && !newReason {
		return
	}
	var text string
	switch {
	case changed && was.Code != "":
		text = was.Code + " → " + is.Code
	case changed || newReason:
		text = is.Code
	}
	if newTarget {
		text = strings.TrimPrefix(text+", wanted "+is.Target, ", ")
	}
	if (changed || newReason) && tellsReason(is.Code) && is.Reason != "" && !t.toldHold {
		text += ": " + is.Reason
	}
	e := t.add(EventVerdict, text)
	e.From, e.To, e.Version, e.Reason = was.Code, is.Code, is.Target, is.Reason
}

// tellsReason says whether the reason of a verdict says more than its code and
// what stands beside it in the history.
func tellsReason(code string) bool {
	switch planner.Code(code) {
	case planner.Current, planner.Upgrading, planner.CodeFailed, planner.CodeRefused, planner.Queued, planner.Offline, planner.Absent:
		return false
	}
	return true
}

// stamps writes the times of events: with seconds where two of them are in
// one minute.
func stamps(events []Event) []string {
	const seconds = "2006-01-02T15:04:05Z"
	in := map[string]int{}
	for i := range events {
		in[Stamp(events[i].Time)]++
	}
	list := make([]string, len(events))
	for i := range events {
		list[i] = Stamp(events[i].Time)
		if in[list[i]] > 1 {
			list[i] = events[i].Time.UTC().Format(seconds)
		}
	}
	return list
}
