package planner

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestProperty12_OnlyDifferencesOfTimeCount(t *testing.T) { check(t, onlyDifferencesCount) }

func onlyDifferencesCount(t *rapid.T, in Input, _ Result) {
	by := time.Duration(rapid.Int64Range(-int64(5e16), int64(5e16)).Draw(t, "shift"))
	if was, is := codes(Plan(shift(in, 0))), codes(Plan(shift(in, by))); !maps.Equal(was, is) {
		t.Fatalf("%v later: %v, then %v", by, was, is)
	}
}

func shift(in Input, by time.Duration) Input {
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	move(&in.Now)
	in.Fleet.Freezes = nil
	move(&in.Watching)
	in.Policies = slices.Clone(in.Policies)
	for i := range in.Policies {
		move(&in.Policies[i].ForgetBefore)
		in.Policies[i].Windows, in.Policies[i].Freezes = nil, nil // these go by the calendar
	}
	in.Devices = slices.Clone(in.Devices)
	for i := range in.Devices {
		d := &in.Devices[i]
		move(&d.LastSeen)
		move(&d.HeardAt)
		move(&d.OfflineSince)
		move(&d.Since)
		move(&d.ForgetBefore)
		d.Attempts = slices.Clone(d.Attempts)
		for j := range d.Attempts {
			a := &d.Attempts[j]
			for _, t := range []*time.Time{&a.AssignedAt, &a.PickupFrom, &a.StartedAt, &a.OnTargetAt, &a.EndedAt} {
				move(t)
			}
		}
	}
	return in
}

// What a plan says that was heard is recorded once, and changes nothing else.
func TestWhatWasHeardIsRecordedOnce(t *testing.T) { check(t, heardOnce) }

func heardOnce(t *rapid.T, in Input, first Result) {
	in.Devices = slices.Clone(in.Devices)
	at := map[string]int{}
	for i := range in.Devices {
		if !in.Devices[i].Removed {
			at[in.Devices[i].ID] = i
		}
	}
	for i := range first.Verdicts {
		if v := &first.Verdicts[i]; v.Heard {
			d := &in.Devices[at[v.Device.ID]]
			if !d.HeardAt.Before(d.LastSeen) {
				t.Fatalf("%s was heard at %v, which the record shows: %v", d.ID, d.LastSeen, d.HeardAt)
			}
			d.HeardAt = d.LastSeen
		}
	}
	again := Plan(in)
	for _, r := range []Result{first, again} {
		for i := range r.Verdicts {
			r.Verdicts[i].Device = Device{}
		}
	}
	for i := range again.Verdicts {
		if again.Verdicts[i].Heard {
			t.Fatalf("%v is to be recorded again", first.Verdicts[i])
		}
	}
	if a, b := encode(t, first), encode(t, again); a != b {
		t.Fatalf("once it is recorded, the plan is another one\n%s\n%s", a, b)
	}
}

// Once it is recorded, a report that decides nothing says the same of its
// device as when it was new: verdicts do not alternate with heartbeats.
func TestReportsSayTheSameOnRecord(t *testing.T) { check(t, sameOnRecord) }

func sameOnRecord(t *rapid.T, in Input, first Result) {
	if len(first.Decisions) > 0 {
		return
	}
	in.Devices = slices.Clone(in.Devices)
	for i := range in.Devices {
		in.Devices[i].Said.Fresh = false
	}
	again := Plan(in)
	for i, v := range again.Verdicts {
		if was := first.Verdicts[i]; was.Code != v.Code {
			t.Fatalf("%s is %s by a new report, and %s once that is on record: %+v", v.Device.ID, was.Code, v.Code, v.Device)
		}
	}
}

// A plan that decides nothing says until when it holds; a daemon that hears
// nothing new need not plan again before that.
func TestNothingChangesBeforeNextChange(t *testing.T) { check(t, holdsUntilNextChange) }

func holdsUntilNextChange(t *rapid.T, in Input, _ Result) {
	moving := map[int]bool{} // heard from at any time that is asked about
	for i := range in.Devices {
		// One that does not count as online is not heard from: its reason
		// names when it was.
		moving[i] = in.Devices[i].Online && rapid.IntRange(0, 4).Draw(t, "heard now") == 0
	}
	at := func(now time.Time) Result {
		later := in
		later.Now = now
		later.Devices = slices.Clone(in.Devices)
		for i := range later.Devices {
			if moving[i] {
				later.Devices[i].LastSeen = now
			}
		}
		r := Plan(later)
		for i := range r.Verdicts {
			r.Verdicts[i].Device = Device{}
		}
		return r
	}
	first := at(in.Now)
	if len(first.Decisions) > 0 {
		return
	}
	until := first.NextChange
	if until.IsZero() {
		until = in.Now.Add(10 * 365 * day)
	}
	if !until.After(in.Now) {
		t.Fatalf("changes at %s, which is not after %s", until, in.Now)
	}
	now := in.Now.Add(time.Duration(rapid.Int64Range(0, int64(until.Sub(in.Now))-1).Draw(t, "later")))
	for _, now := range []time.Time{now, until.Add(-1)} {
		again := at(now)
		again.NextChange, first.NextChange = time.Time{}, time.Time{}
		if a, b := encode(t, first), encode(t, again); a != b {
			t.Fatalf("the plan holds until %s, but at %s it is another one\n%s\n%s", until, now, a, b)
		}
	}
}
