package planner

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// rounds is how many times rapid's 100 fleets each property is tried with: all
// together that makes more than ten thousand.
const rounds = 10

// property is what holds of every plan.
type property func(t *rapid.T, in Input, r Result)

// check runs a property over generated fleets; on failure rapid prints the
// seed and the flag that repeats it.
func check(t *testing.T, holds property) {
	t.Helper()
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			in := fleet(t)
			holds(t, in, Plan(in))
		})
	}
}

func codes(r Result) map[string]Code {
	m := map[string]Code{}
	for _, v := range r.Verdicts {
		m[v.Device.ID] = v.Code
	}
	return m
}

func upgrades(r Result) map[string]bool {
	m := map[string]bool{}
	for _, v := range r.Verdicts {
		if v.Upgrade {
			m[v.Device.ID] = true
		}
	}
	return m
}

func encode(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// governs is the policy of a device; the fleets of this test have one.
func governs(in Input, d Device) Policy {
	return in.Policies[slices.IndexFunc(in.Policies, func(p Policy) bool { return p.Name == d.Policy })]
}

func summaryOf(r Result, policy string) Summary {
	return r.Policies[slices.IndexFunc(r.Policies, func(s Summary) bool { return s.Policy == policy })]
}

func TestProperty01_OneVerdictWithOneReasonEach(t *testing.T) {
	check(t, checkShape)
}

// checkShape holds for any input at all.
func checkShape(t *rapid.T, in Input, r Result) {
	present := slices.DeleteFunc(slices.Clone(in.Devices), func(d Device) bool { return d.Removed })
	if len(r.Verdicts) != len(present) || len(r.Policies) != len(in.Policies) {
		t.Fatalf("%d verdicts of %d devices, %d summaries of %d policies", len(r.Verdicts), len(present), len(r.Policies), len(in.Policies))
	}
	line := func(what, s string) {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x85 }) || !utf8.ValidString(s) {
			t.Fatalf("%s is no line: %q", what, s)
		}
	}
	total := map[Code]int{}
	for i, v := range r.Verdicts {
		if encode(t, v.Device) != encode(t, present[i]) {
			t.Fatalf("verdict %d is of %+v", i, v.Device)
		}
		if v.Code.Kind() == "" {
			t.Fatalf("%s has code %q", v.Device.ID, v.Code)
		}
		if v.Reason == "" || strings.HasSuffix(v.Reason, ".") && v.Code == Upgrade {
			t.Fatalf("%s has reason %q", v.Device.ID, v.Reason)
		}
		if v.Upgrade != (v.Code == Upgrade) {
			t.Fatalf("%s: upgrade %v, code %s", v.Device.ID, v.Upgrade, v.Code)
		}
		line("reason", v.Reason)
		line("detail", v.Detail)
		line("field", v.Field)
		if (v.Field == "") != (v.FieldIn == "") {
			t.Fatalf("%s: field %q in %q", v.Device.ID, v.Field, v.FieldIn)
		}
		for _, passed := range r.Passed(v) {
			line("passed", passed.Text)
		}
		total[v.Code]++
	}
	for _, d := range r.Decisions {
		set := 0
		for _, is := range []bool{d.Started, d.OnTarget, d.End != "", d.Recall != ""} {
			if is {
				set++
			}
		}
		if set != 1 || d.Because == "" {
			t.Fatalf("decision %+v", d)
		}
		line("because", d.Because)
	}
}

func TestProperty02_Deterministic(t *testing.T) { check(t, deterministic) }

func deterministic(t *rapid.T, in Input, r Result) {
	before := encode(t, in)
	if again := Plan(in); encode(t, again) != encode(t, r) {
		t.Fatalf("the same input gives\n%s\nand\n%s", encode(t, r), encode(t, again))
	}
	if encode(t, in) != before {
		t.Fatal("the input changed")
	}
	shuffled := in
	shuffled.Devices = rapid.Permutation(in.Devices).Draw(t, "order")
	other := Plan(shuffled)
	slices.SortFunc(other.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Device.ID, b.Device.ID) })
	sorted := slices.Clone(r.Verdicts)
	slices.SortFunc(sorted, func(a, b Verdict) int { return cmp.Compare(a.Device.ID, b.Device.ID) })
	if encode(t, other.Verdicts) != encode(t, sorted) || encode(t, other.Policies) != encode(t, r.Policies) || encode(t, other.Fleet) != encode(t, r.Fleet) {
		t.Fatalf("the order of the devices matters:\n%s\n%s", encode(t, sorted), encode(t, other.Verdicts))
	}
	byDevice := func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Attempt, b.Attempt))
	}
	slices.SortFunc(other.Decisions, byDevice)
	decisions := slices.Clone(r.Decisions)
	slices.SortFunc(decisions, byDevice)
	if encode(t, other.Decisions) != encode(t, decisions) {
		t.Fatalf("the order of the devices matters:\n%s\n%s", encode(t, decisions), encode(t, other.Decisions))
	}
}

func effectiveAttempts(p Policy) int { return max(1, p.MaxAttempts) }

func TestProperty05_OnlyWhatMayBeUpgradedIs(t *testing.T) { check(t, onlyUpgrades) }

func onlyUpgrades(t *rapid.T, in Input, r Result) {
	judged := apply(in, Result{Decisions: r.Decisions})
	for _, v := range r.Verdicts {
		if !v.Upgrade {
			continue
		}
		d := judged.Devices[slices.IndexFunc(judged.Devices, func(d Device) bool { return d.ID == v.Device.ID })]
		p := governs(in, d)
		silent := !in.NoTimeouts && in.Now.Sub(d.LastSeen) > p.OfflineAfter
		if !d.Seen || !d.Online || silent || d.Busy || d.AdminHeld || d.ProtocolVersion < 1 || len(d.Missing) > 0 || d.Upgrading || d.Duplicate {
			t.Fatalf("%+v is upgraded", d)
		}
		have, want := parseVersion(d.Version), parseVersion(d.Target.Version)
		if have == nil || want == nil {
			t.Fatalf("from %q to %q", d.Version, d.Target.Version)
		}
		switch have.Compare(want) {
		case 0:
			if d.Said.Phase != phaseObserving && (d.Digest == "" || d.Digest == d.Target.Digest) {
				if n := len(d.Attempts); n == 0 || !slices.Contains([]Outcome{Lost, Failed, Observed}, d.Attempts[n-1].Outcome) {
					t.Fatalf("%+v is on its target", d)
				}
			}
		case 1:
			if !slices.Contains(p.RollbackFrom, d.Version) {
				t.Fatalf("%s goes down from %s to %s", d.ID, d.Version, d.Target.Version)
			}
		}
		failures := 0
		forget := later(notYet(in.Now, p.ForgetBefore), notYet(in.Now, d.ForgetBefore))
		for _, a := range d.Attempts {
			if a.Outcome == "" {
				t.Fatalf("%s is in flight", d.ID)
			}
			if a.Target != d.Target || a.EndedAt.Before(forget) || a.InstallID != "" && a.InstallID != d.InstallID {
				continue
			}
			wait := DefaultBackoffBase
			switch a.Outcome {
			case Failed, Lost:
				failures++
			case Refused, Observed:
				t.Fatalf("%s has %s its target", d.ID, a.Outcome)
			case OK:
				wait = 0
			}
			if a.EndedAt.Add(wait).After(in.Now) {
				t.Fatalf("%s is tried again %v after %s", d.ID, in.Now.Sub(a.EndedAt), a.Outcome)
			}
		}
		if failures >= effectiveAttempts(p) {
			t.Fatalf("%s failed %d times", d.ID, failures)
		}
	}
}

func notYet(now, t time.Time) time.Time {
	if t.After(now) {
		return time.Time{}
	}
	return t
}

func TestProperty07_ABlockerNeverHelps(t *testing.T) { check(t, blockersNeverHelp) }

func blockersNeverHelp(t *rapid.T, in Input, r Result) {
	if len(in.Devices) == 0 {
		return
	}
	i := rapid.IntRange(0, len(in.Devices)-1).Draw(t, "blocked")
	for name, block := range map[string]func(*Device){
		"busy":     func(d *Device) { d.Busy = true },
		"held":     func(d *Device) { d.AdminHeld = true },
		"offline":  func(d *Device) { d.Online = false },
		"protocol": func(d *Device) { d.ProtocolVersion = 0 },
		"hold":     func(d *Device) { d.HeldReason = "mine" },
	} {
		blocked := in
		blocked.Devices = slices.Clone(in.Devices)
		block(&blocked.Devices[i])
		if upgrades(Plan(blocked))[in.Devices[i].ID] {
			t.Fatalf("%s is upgraded though %s", in.Devices[i].ID, name)
		}
	}
}

func TestProperty11_AttemptsAtOtherTargetsDoNotCount(t *testing.T) { check(t, otherAttemptsDoNotCount) }

func otherAttemptsDoNotCount(t *rapid.T, in Input, r Result) {
	more := in
	more.Devices = slices.Clone(in.Devices)
	for i := range more.Devices {
		d := &more.Devices[i]
		old := Attempt{
			Number: -1, Policy: d.Policy, Line: "another", Target: Target{Version: "v9.0.0", Digest: "x" + d.ID}, Rollout: "another",
			AssignedAt: in.Now.Add(-1000 * time.Hour), EndedAt: in.Now.Add(-time.Minute),
			Outcome: rapid.SampledFrom([]Outcome{Failed, Refused, Exhausted, Deferred, Lost, OK}).Draw(t, "old outcome"),
		}
		elsewhere := old // at this very target, but in another rollout, and long ago
		elsewhere.Number, elsewhere.Target = -2, d.Target
		elsewhere.Outcome, elsewhere.EndedAt = Unreached, in.Now.Add(-999*time.Hour)
		d.Attempts = append([]Attempt{elsewhere, old}, d.Attempts...)
	}
	other := Plan(more)
	if was, is := codes(r), codes(other); !maps.Equal(was, is) {
		t.Fatalf("was %v and is %v", was, is)
	}
	for i, s := range r.Policies {
		if o := other.Policies[i]; encode(t, s.Waves) != encode(t, o.Waves) || encode(t, s.Pilot) != encode(t, o.Pilot) {
			t.Fatalf("was %s and is %s", encode(t, s), encode(t, o))
		}
	}
}
