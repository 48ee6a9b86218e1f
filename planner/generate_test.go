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
		Stopped:    rapid.SampledFrom([]string{"", "", "", "", "history was rewritten"}).Draw(t, "stopped"),
		NoTimeouts: rapid.IntRange(0, 9).Draw(t, "noTimeouts") == 0,
	}
	if rapid.Bool().Draw(t, "watching") {
		in.Watching = ago(t, "watching since")
	}
	in.Fleet = drawFleetWide(t)
	for i := range rapid.IntRange(1, 3).Draw(t, "policies") {
		in.Policies = append(in.Policies, drawPolicy(t, fmt.Sprintf("p%d", i)))
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "devices") {
		in.Devices = append(in.Devices, drawDevice(t, fmt.Sprintf("d%02d", i), in.Policies))
	}
	return in
}

func drawPolicy(t *rapid.T, name string) Policy {
	p := Policy{
		Name: name, Line: name,
		Enabled:       rapid.IntRange(0, 9).Draw(t, "enabled") > 0,
		TargetVersion: rapid.SampledFrom([]string{"v1.5.0", "v1.5.0", "v1.6.0", "v1.4.0", ""}).Draw(t, "target"),
		MaxInFlight:   rapid.IntRange(0, 4).Draw(t, "maxInFlight"),
		Paused:        rapid.SampledFrom([]string{"", "", "", "", "incident"}).Draw(t, "paused"),
		RollbackFrom:  rapid.SampledFrom([][]string{nil, {"v1.6.0"}}).Draw(t, "rollbackFrom"),
		MinAvailable:  drawLimit(t, "minAvailable"),
		FailureLimit:  drawLimit(t, "failureLimit"),
		RefusalLimit:  drawLimit(t, "refusalLimit"),
		MaxAttempts:   rapid.IntRange(0, 3).Draw(t, "maxAttempts"),
		Settle:        rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Minute}).Draw(t, "settle"),
		OfflineAfter:  15 * time.Minute,
	}
	if rapid.IntRange(0, 4).Draw(t, "percent") == 0 {
		p.MaxInFlight, p.MaxInFlightPercent = 0, rapid.IntRange(1, 100).Draw(t, "maxInFlightPercent")
	}
	if rapid.IntRange(0, 9).Draw(t, "forgets") == 0 {
		p.ForgetBefore = ago(t, "forgetBefore")
	}
	if rapid.IntRange(0, 19).Draw(t, "bad") == 0 {
		p.MaxInFlight = -1
	}
	drawRollout(t, &p)
	return p
}

func drawLimit(t *rapid.T, name string) Limit {
	return rapid.SampledFrom([]Limit{{}, {}, {Set: true}, {Count: 2}, {Percent: 25}, {Percent: 60}}).Draw(t, name)
}

func drawDevice(t *rapid.T, id string, policies []Policy) Device {
	p := rapid.SampledFrom(policies).Draw(t, "policy")
	version := p.TargetVersion
	if version == "" {
		version = "v1.5.0"
	}
	d := Device{
		ID: id, Policy: p.Name, Target: Target{Version: version, Digest: version + "-" + id}, Rollout: p.Name + version,
		Version:         rapid.SampledFrom([]string{"v1.4.0", "v1.4.0", "v1.4.0", "v1.5.0", "v1.6.0", "v0.0.0", "devel", ""}).Draw(t, "version"),
		ProtocolVersion: rapid.SampledFrom([]int{1, 1, 1, 1, 0}).Draw(t, "protocol"),
		Seen:            rapid.IntRange(0, 9).Draw(t, "seen") > 0,
		Online:          rapid.IntRange(0, 9).Draw(t, "online") > 0,
		Busy:            rapid.IntRange(0, 9).Draw(t, "busy") == 0,
		AdminHeld:       rapid.IntRange(0, 9).Draw(t, "held") == 0,
		Upgrading:       rapid.IntRange(0, 19).Draw(t, "upgrading") == 0,
		Pinned:          rapid.IntRange(0, 9).Draw(t, "pinned") == 0,
		Duplicate:       rapid.IntRange(0, 19).Draw(t, "duplicate") == 0,
		Removed:         rapid.IntRange(0, 14).Draw(t, "removed") == 0,
		Wave:            rapid.SampledFrom([]string{"", "canary", "canary", "main", "gone"}).Draw(t, "wave"),
		Labels:          drawLabels(t),
		InstallID:       rapid.SampledFrom([]string{"i1", "i1", "i1", "i2"}).Draw(t, "install"),
		LastSeen:        caseNow.Add(-time.Minute),
	}
	if d.Version == version && rapid.Bool().Draw(t, "same content") {
		d.Digest = d.Target.Digest
	} else if rapid.Bool().Draw(t, "tells digest") {
		d.Digest = "other-" + id
	}
	if rapid.IntRange(0, 4).Draw(t, "silent") == 0 {
		d.LastSeen = ago(t, "lastSeen")
	}
	if rapid.IntRange(0, 14).Draw(t, "capable") == 0 {
		d.Missing = []string{"os.ostree"}
	}
	if rapid.IntRange(0, 19).Draw(t, "has target") == 0 {
		d.NoTarget = "no release"
	}
	if rapid.IntRange(0, 9).Draw(t, "hasForget") == 0 {
		d.ForgetBefore = ago(t, "forgetBefore")
	}
	if rapid.IntRange(0, 2).Draw(t, "has since") == 0 {
		d.Since = ago(t, "since")
	}
	n := rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 3}).Draw(t, "attempts")
	for i := range n {
		d.Attempts = append(d.Attempts, drawAttempt(t, d, int64(i+1), i == n-1, policies))
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
		Begun:    rapid.IntRange(0, 3).Draw(t, "begun") == 0,
		Starting: rapid.IntRange(0, 3).Draw(t, "starting") == 0,
		Settled:  rapid.Bool().Draw(t, "settled"),
		Recalled: int64(rapid.IntRange(0, n).Draw(t, "saw recall")),
		Outcome:  rapid.SampledFrom([]string{"", "", "ok", "failed", "refused", "exhausted"}).Draw(t, "said outcome"),
		Phase:    rapid.SampledFrom([]string{"Updated", "Updated", "Waiting", "Preparing", "Starting", "Applying", "Degraded", "Error"}).Draw(t, "phase"),
	}
	return d
}

func drawAttempt(t *rapid.T, d Device, number int64, last bool, policies []Policy) Attempt {
	a := Attempt{
		Number: number, Policy: d.Policy, Line: d.Policy, Target: d.Target, Rollout: d.Rollout, Pinned: d.Pinned,
		InstallID:  rapid.SampledFrom([]string{"i1", "i1", "i1", "i2", ""}).Draw(t, "attempt install"),
		AssignedAt: ago(t, "assigned"),
		Outcome: rapid.SampledFrom([]Outcome{OK, Failed, Lost, Refused, Exhausted, Deferred, Unreached, "", "", ""}).
			Draw(t, "outcome"),
		RecallDelivered: rapid.Bool().Draw(t, "delivered"),
	}
	if rapid.IntRange(0, 2).Draw(t, "other target") == 0 {
		a.Target, a.Rollout = Target{Version: "v1.4.5", Digest: "v1.4.5-" + d.ID}, "r0"
	}
	if rapid.IntRange(0, 9).Draw(t, "other policy") == 0 {
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
