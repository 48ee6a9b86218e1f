package planner

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// fleet draws a fleet as a sweep would hand it over: every device with a
// digest of its own, attempts in order, reports that fit or do not.
func fleet(t *rapid.T) Input {
	in := Input{
		Now:        caseNow,
		OwnVersion: rapid.SampledFrom([]string{"v1.5.0", "v1.4.0", "devel"}).Draw(t, "own"),
	}
	if one(t, 20, "stopped") {
		in.Stopped = "history was rewritten"
	}
	in.NoTimeouts = one(t, 12, "noTimeouts")
	if rapid.Bool().Draw(t, "watching") {
		in.Watching = ago(t, "watching since")
	}
	in.Fleet = drawFleetWide(t)
	for i := range rapid.IntRange(1, 3).Draw(t, "policies") {
		in.Policies = append(in.Policies, drawPolicy(t, fmt.Sprintf("p%d", i)))
	}
	for i := range rapid.SampledFrom([]int{8, 3, 5, 12, 1, 0}).Draw(t, "devices") {
		in.Devices = append(in.Devices, drawDevice(t, fmt.Sprintf("d%02d", i), in.Policies))
	}
	return in
}

// one draws one case of so many; the common one is what a failure shrinks to.
func one(t *rapid.T, of int, name string) bool {
	return rapid.IntRange(1, of).Draw(t, name) == of
}

func drawPolicy(t *rapid.T, name string) Policy {
	p := Policy{
		Name: name, Line: name, Enabled: true, TargetVersion: "v1.5.0", OfflineAfter: 15 * time.Minute,
		MaxInFlight:  rapid.IntRange(0, 4).Draw(t, "maxInFlight"),
		RollbackFrom: rapid.SampledFrom([][]string{nil, {"v1.6.0"}}).Draw(t, "rollbackFrom"),
		MinAvailable: drawLimit(t, "minAvailable"),
		FailureLimit: drawLimit(t, "failureLimit"),
		RefusalLimit: drawLimit(t, "refusalLimit"),
		MaxAttempts:  rapid.IntRange(0, 3).Draw(t, "maxAttempts"),
		Settle:       rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Minute}).Draw(t, "settle"),
	}
	if one(t, 3, "other target") {
		p.TargetVersion = rapid.SampledFrom([]string{"v1.6.0", "v1.4.0", ""}).Draw(t, "target")
	}
	if one(t, 12, "disabled") {
		p.Enabled = false
	}
	if one(t, 12, "paused") {
		p.Paused = "incident"
	}
	if one(t, 5, "percent") {
		p.MaxInFlight, p.MaxInFlightPercent = 0, rapid.IntRange(1, 100).Draw(t, "maxInFlightPercent")
	}
	if one(t, 10, "forgets") {
		p.ForgetBefore = ago(t, "forgetBefore")
	}
	if one(t, 20, "bad") {
		p.MaxInFlight = -1
	}
	drawRollout(t, &p)
	return p
}

func drawLimit(t *rapid.T, name string) Limit {
	return rapid.SampledFrom([]Limit{{}, {}, {Set: true}, {Count: 2}, {Percent: 25}, {Percent: 60}}).Draw(t, name)
}

// drawDevice draws one that waits, or one that is done, or any.
func drawDevice(t *rapid.T, id string, policies []Policy) Device {
	p := rapid.SampledFrom(policies).Draw(t, "policy")
	version := p.TargetVersion
	if version == "" {
		version = "v1.5.0"
	}
	d := Device{
		ID: id, Policy: p.Name, Target: Target{Version: version, Digest: version + "-" + id}, Rollout: p.Name + version,
		Version: "v1.4.0", ProtocolVersion: 1, Seen: true, Online: true, InstallID: "i1", LastSeen: caseNow.Add(-time.Minute),
		Wave:   rapid.SampledFrom([]string{"canary", "", "canary", "main", "gone"}).Draw(t, "wave"),
		Labels: drawLabels(t),
	}
	if one(t, 3, "has since") {
		d.Since = ago(t, "since")
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0, 1:
		return d
	case 2:
		d.Version, d.Digest = d.Target.Version, d.Target.Digest
		a := drawAttempt(t, d, 1, true, policies)
		a.Target, a.Outcome, a.Recalled = d.Target, OK, ""
		if a.EndedAt.IsZero() {
			a.EndedAt = later(a.AssignedAt, a.OnTargetAt)
		}
		d.Attempts = []Attempt{a}
		if one(t, 3, "silent") {
			d.LastSeen = ago(t, "lastSeen")
		}
		if one(t, 3, "heard on record") {
			d.HeardAt = ago(t, "heardAt")
		}
		return d
	}
	drawOdd(t, &d, policies)
	return d
}

// drawOdd makes a device what it likes.
func drawOdd(t *rapid.T, d *Device, policies []Policy) {
	d.Version = rapid.SampledFrom([]string{"v1.4.0", "v1.4.0", "v1.4.0", "v1.5.0", "v1.6.0", "v0.0.0", "devel", ""}).Draw(t, "version")
	d.InstallID = rapid.SampledFrom([]string{"i1", "i1", "i1", "i2"}).Draw(t, "install")
	for _, odd := range []struct {
		name string
		of   int
		set  func()
	}{
		{"protocol", 10, func() { d.ProtocolVersion = 0 }},
		{"never seen", 12, func() { d.Seen = false }},
		{"not online", 12, func() { d.Online = false }},
		{"busy", 12, func() { d.Busy = true }},
		{"held", 12, func() { d.AdminHeld = true }},
		{"upgrading", 20, func() { d.Upgrading = true }},
		{"pinned", 10, func() { d.Pinned = true }},
		{"observes", 8, func() { d.Observes = true }},
		{"duplicate", 20, func() { d.Duplicate = true }},
		{"removed", 15, func() { d.Removed = true }},
		{"silent", 5, func() { d.LastSeen = ago(t, "lastSeen") }},
		{"lacks", 15, func() { d.Missing = []string{"os.ostree"} }},
		{"no target", 20, func() { d.NoTarget = "no release" }},
		{"forgets", 10, func() { d.ForgetBefore = ago(t, "forgetBefore") }},
	} {
		if one(t, odd.of, odd.name) {
			odd.set()
		}
	}
	if d.Version == d.Target.Version && rapid.Bool().Draw(t, "same content") {
		d.Digest = d.Target.Digest
	} else if rapid.Bool().Draw(t, "tells digest") {
		d.Digest = "other-" + d.ID
	}
	n := rapid.SampledFrom([]int{1, 0, 1, 2, 3}).Draw(t, "attempts")
	for i := range n {
		d.Attempts = append(d.Attempts, drawAttempt(t, *d, int64(i+1), i == n-1, policies))
	}
	slices.SortStableFunc(d.Attempts, func(a, b Attempt) int { return a.AssignedAt.Compare(b.AssignedAt) })
	for i := range d.Attempts {
		d.Attempts[i].Number = int64(i + 1)
		if i < n-1 && d.Attempts[i].Outcome == "" {
			d.Attempts[i].Outcome = Deferred
		}
	}
	d.Said = Said{
		Fresh:    rapid.Bool().Draw(t, "fresh"),
		Attempt:  int64(rapid.IntRange(0, n).Draw(t, "says")),
		Begun:    one(t, 4, "begun"),
		Starting: one(t, 4, "starting"),
		Settled:  rapid.Bool().Draw(t, "settled"),
		Recalled: int64(rapid.IntRange(0, n).Draw(t, "saw recall")),
		Outcome:  rapid.SampledFrom([]string{"", "", "ok", "failed", "refused", "exhausted", "observed"}).Draw(t, "said outcome"),
		Phase:    rapid.SampledFrom([]string{"Updated", "Updated", "Observing", "Waiting", "Preparing", "Starting", "Applying", "Degraded", "Error"}).Draw(t, "phase"),
	}
}

func drawAttempt(t *rapid.T, d Device, number int64, last bool, policies []Policy) Attempt {
	a := Attempt{
		Number: number, Policy: d.Policy, Line: d.Policy, Target: d.Target, Rollout: d.Rollout, Pinned: d.Pinned,
		InstallID:  rapid.SampledFrom([]string{"i1", "i1", "i1", "i2", ""}).Draw(t, "attempt install"),
		AssignedAt: ago(t, "assigned"),
		Outcome: rapid.SampledFrom([]Outcome{OK, Failed, Lost, Refused, Exhausted, Observed, Deferred, Unreached, "", "", ""}).
			Draw(t, "outcome"),
		RecallDelivered: rapid.Bool().Draw(t, "delivered"),
	}
	if one(t, 3, "other target") {
		a.Target, a.Rollout = Target{Version: "v1.4.5", Digest: "v1.4.5-" + d.ID}, "r0"
	}
	if one(t, 10, "other policy") {
		a.Policy = rapid.SampledFrom(policies).Draw(t, "attempt policy").Name
		a.Line = a.Policy
	}
	between := func(name string, from time.Time) time.Time {
		return from.Add(time.Duration(rapid.Int64Range(0, int64(caseNow.Sub(from))).Draw(t, name)))
	}
	if rapid.Bool().Draw(t, "started") {
		a.StartedAt = between("startedAt", a.AssignedAt)
		if rapid.IntRange(0, 3).Draw(t, "was on target") == 0 {
			a.OnTargetAt = between("onTargetAt", a.StartedAt)
		}
	}
	if a.Outcome != "" {
		a.EndedAt = between("endedAt", a.AssignedAt)
	} else if rapid.IntRange(0, 2).Draw(t, "recalled") == 0 && last {
		a.Recalled = rapid.SampledFrom([]Outcome{Deferred, Unreached}).Draw(t, "recall")
	}
	return a
}

// ago draws a time of the last minutes, hours or days.
func ago(t *rapid.T, name string) time.Time {
	unit := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 24 * time.Hour}).Draw(t, name+" unit")
	return caseNow.Add(-time.Duration(rapid.IntRange(0, 40).Draw(t, name)) * unit)
}
