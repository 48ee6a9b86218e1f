package demo

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

func (s *show) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// judge counts what happened, holds it against the promises, and prints the
// summary.
func (s *show) judge(ctx context.Context) error {
	s.screen.finish()
	history, err := s.history(ctx)
	if err != nil {
		return fmt.Errorf("read the history of the status branch: %w", err)
	}
	started := s.started(history, bad)
	recorded, err := s.recorded(bad)
	if err != nil {
		return err
	}
	worst, problems := s.mostInFlight(history)
	s.screen.print("", "summary")
	s.screen.item("%d devices: %s", len(s.devices), s.counts())
	s.screen.item("blast radius of %s: %d of %d devices ever started it (%s), in %d attempts",
		bad, len(started), len(s.devices), names(started), len(s.view.attemptsOf(bad)))
	s.screen.item("looked up twice: every commit of the status branch says %s, and what the devices wrote down says %s", names(started), names(recorded))
	s.screen.item("most gateways in flight at one time: %s", worst)
	s.screen.item("%d commits on the status branch for %d merges, in %.0f seconds", len(history), len(s.repo.limits), time.Since(s.began).Seconds())

	// failureLimit 0 and one at a time: the promised bound is one device.
	s.promise(len(started) == badInFlight, "%s was started on %d devices (%s), promised was %d", bad, len(started), strings.Join(started, ", "), badInFlight)
	s.promise(slices.Equal(started, recorded), "the status branch says that %s was started on %v, the devices say on %v", bad, started, recorded)
	s.differs = append(s.differs, problems...)
	if err := s.untouched(); err != nil {
		return err
	}

	victim := heldDevice
	if len(started) > 0 {
		victim = started[0]
	}
	s.screen.print(append([]string{""}, s.commands(victim)...)...)
	return nil
}

// commands are for looking around afterwards; they are printed to be copied,
// so they are never broken to fit.
func (s *show) commands(victim string) []string {
	at, name := s.repo.path, s.procs.command()
	head := "look around"
	if !s.cfg.Keep {
		at = "DIR/fleet.git"
		head = "to look around, run " + name + " demo --keep; then, with the folder that it names for DIR"
	}
	return []string{
		head,
		"  " + name + " status --repo " + at,
		"  " + name + " explain " + victim + " --repo " + at,
		"  " + name + " explain " + heldDevice + " --repo " + at,
		"  git -C " + at + " log --stat gitopsd/status",
		"  git -C " + at + " log -p gitopsd/status -- " + s.statusFile(victim),
	}
}

func names(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}

// history reads every commit of the status branch, oldest first.
func (s *show) history(ctx context.Context) ([]view, error) {
	if err := s.repo.git.Fetch(ctx, statusRef, s.view.commit, true); err != nil {
		return nil, err
	}
	var commits []string
	if err := s.repo.git.Log(ctx, s.view.commit, "", func(hash, _ string, _ time.Time, _ string) bool {
		commits = append(commits, hash)
		return true
	}); err != nil {
		return nil, err
	}
	slices.Reverse(commits)
	var views []view
	known := map[string]*schema.DeviceStatus{}
	for _, commit := range commits {
		v, err := s.repo.read(ctx, commit, known)
		if err != nil {
			return nil, err
		}
		known = v.blobs
		views = append(views, v)
	}
	return views, nil
}

// started gives the devices of which any commit says that they started a
// version.
func (s *show) started(history []view, version string) []string {
	var ids []string
	for _, d := range s.devices {
		if slices.ContainsFunc(history, func(v view) bool {
			return slices.ContainsFunc(v.attempts(d.id, version), began)
		}) {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// recorded gives the devices that say so themselves.
func (s *show) recorded(version string) ([]string, error) {
	var ids []string
	for _, d := range s.devices {
		was, err := d.wasGiven(version)
		if err != nil {
			return nil, err
		}
		if was {
			ids = append(ids, d.id)
		}
	}
	return ids, nil
}

// mostInFlight holds each commit against the limit of the source commit that
// it was planned from.
func (s *show) mostInFlight(history []view) (worst string, problems []string) {
	most := map[int]int{} // limit → most in flight under it
	for _, v := range history {
		limit, known := 0, false
		if v.fleet != nil {
			limit, known = s.repo.limits[v.fleet.SourceCommit]
		}
		if !known {
			continue
		}
		n := v.inFlight(policy)
		most[limit] = max(most[limit], n)
		if n > limit {
			problems = append(problems, fmt.Sprintf("%d gateways were in flight in commit %s, the limit was %d", n, v.commit, limit))
		}
	}
	var parts []string
	for limit, n := range most {
		parts = append(parts, fmt.Sprintf("%d of %d allowed", n, limit))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", "), problems
}

// untouched promises that the devices that were to be left alone were.
func (s *show) untouched() error {
	for _, id := range []string{heldDevice, boxedDevice} {
		tree, err := s.device(id).tree()
		if err != nil {
			return err
		}
		for path := range tree {
			inside := strings.HasPrefix(controlFile, path+"/") || path == controlFile || path == "." || path == "var" || path == "var/lib"
			s.promise(inside, "%s was to be left alone, but has %s", id, path)
		}
		s.promise(len(s.view.attemptsOfDevice(id)) == 0, "%s was to be left alone, but has attempts", id)
	}
	s.promise(on(s.view, pinnedDevice, first), "%s is pinned to %s, but runs %s", pinnedDevice, first, s.view.version(pinnedDevice))
	for _, version := range []string{good, bad} {
		was, err := s.device(busyDevice).wasGiven(version)
		if err != nil {
			return err
		}
		s.promise(!was, "%s was busy, but was given %s", busyDevice, version)
	}
	return nil
}

// counts says how many devices run what.
func (s *show) counts() string {
	by := map[string]int{}
	for _, d := range s.devices {
		version := s.view.version(d.id)
		switch d.id {
		case benchDevice:
			by["on "+version+" (policy bench)"]++
		case pinnedDevice:
			by["on "+version+" (pinned)"]++
		case heldDevice:
			by["held"]++
		case boxedDevice:
			by["never seen"]++
		default:
			by["on "+version]++
		}
	}
	var parts []string
	for what, n := range by {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	slices.Reverse(parts)
	return strings.Join(parts, ", ")
}

// rows is the table.
func (s *show) rows() []row {
	var rows []row
	for _, d := range s.devices {
		r := row{device: d.id, version: s.view.version(d.id), state: s.view.code(d.id)}
		if status := s.view.devices[d.id]; status != nil {
			r.why = oneLine(status.Verdict.Reason)
			if r.state == "Upgrading" {
				r.why = progress(status)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// progress says how far an upgrade is, shorter than its verdict.
func progress(status *schema.DeviceStatus) string {
	if len(status.Attempts) == 0 {
		return ""
	}
	a := status.Attempts[len(status.Attempts)-1]
	switch o := status.Observed; {
	case a.Recall != nil:
		return "told to go to " + a.Version + ", taken back: " + oneLine(a.Recall.Because)
	case a.StartedAt == nil:
		return "told to go to " + a.Version
	case o != nil && o.Attempt == a.Attempt:
		return "to " + a.Version + ": " + string(o.Phase)
	default:
		return "to " + a.Version
	}
}

// title says how far the gateways are.
func (s *show) title() string {
	if s.view.fleet == nil {
		return ""
	}
	for _, r := range s.view.fleet.Rollouts {
		if r.Policy == policy {
			return titleOf(r, s.aside(r.Policy))
		}
	}
	return ""
}

// titleOf is a rollout on one line; aside are its devices by what keeps them
// out of it.
func titleOf(r schema.RolloutStatus, aside map[string]int) string {
	head := fmt.Sprintf("%s → %s: ", r.Policy, r.Version)
	var kept []string
	n := 0
	for _, what := range slices.Sorted(maps.Keys(aside)) {
		kept = append(kept, fmt.Sprintf("%d %s", aside[what], what))
		n += aside[what]
	}
	// Whoever is held or in its box keeps a rollout from being done by the
	// book; for the reader it has come out.
	if r.Done > 0 && r.Done+n == r.Total && len(r.InFlight) == 0 {
		return head + strings.Join(append([]string{fmt.Sprintf("done on %d of %d", r.Done, r.Total)}, kept...), ", ")
	}
	return head + fmt.Sprintf("%s, %d of %d done, %d moving, %d waiting, %d left alone, %d in need of attention",
		r.State, r.Done, r.Total, r.Moving, r.Waiting, r.Total-r.Done-r.Moving-r.Waiting-r.Attention, r.Attention)
}

// aside counts the devices of a policy that take no part: held, or never
// seen.
func (s *show) aside(policy string) map[string]int {
	by := map[string]int{}
	for _, d := range s.view.devices {
		if d.Policy != policy {
			continue
		}
		switch d.Verdict.Code {
		case "Held":
			by["held"]++
		case "NeverSeen":
			by["never seen"]++
		}
	}
	return by
}

// statusFile is where the status branch has a device.
func (s *show) statusFile(id string) string {
	return "devices/" + s.device(id).site + "/" + id + ".yaml"
}

// oneLine makes text fit for one line of a terminal: control characters in
// what a device said do nothing there.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) }), " ")
}
