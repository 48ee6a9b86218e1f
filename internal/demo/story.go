package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// The releases of the story, in its order.
const (
	first  = "v1.0.0"
	good   = "v1.1.0"
	bad    = "v1.2.0"
	fix    = "v1.2.1"
	policy = "gateways"
)

// How many gateways may move at a time, as the policy of each pull request
// says: the more a release may break, the fewer.
const (
	firstInFlight = 6
	goodInFlight  = 3
	badInFlight   = 1
	fixInFlight   = 3
)

// readingTime is for two lines of narration and a look at the table.
const readingTime = 4 * time.Second

// sweepInterval is short beside the default of a minute; the daemon also
// sweeps as soon as the local repository changes.
const sweepInterval = "500ms"

// tell goes through the story, one merge after the other.
func (s *show) tell(ctx context.Context) error {
	chapters := []func(context.Context) error{s.install, s.goodRelease, s.cutOff, s.failedCheck, s.fixed}
	for i, chapter := range chapters {
		if i > 0 {
			if err := s.pause(ctx); err != nil {
				return err
			}
		}
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pause lets a person read what has just happened; a file has time.
func (s *show) pause(ctx context.Context) error {
	if !s.cfg.Terminal {
		return nil
	}
	timer := time.NewTimer(readingTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// install starts everything and brings the first release to the devices.
func (s *show) install(ctx context.Context) error {
	if err := s.repo.target(first, firstInFlight); err != nil {
		return err
	}
	if err := s.repo.merge(ctx, firstInFlight, "a fleet of gateways on "+first); err != nil {
		return err
	}
	s.screen.say("the fleet repository has its first commit: %s for every gateway, %d at a time. One daemon and one agent per device start now.", first, firstInFlight)
	if err := s.procs.start("serve", "serve", "--repo", s.repo.path, "--interval", sweepInterval, "--state", s.path("state")); err != nil {
		return err
	}
	for _, d := range s.devices {
		if d.id == boxedDevice {
			continue
		}
		if err := s.procs.start(d.id, "agent", "--config", d.config); err != nil {
			return err
		}
	}
	if err := s.until(ctx, "every device that may is on "+first, func(v view) bool {
		return s.everyMovable(v, current(first)) && on(v, busyDevice, first) && on(v, pinnedDevice, first) &&
			v.code(benchDevice) == "Current" && v.code(heldDevice) == "Held" && v.code(boxedDevice) == "NeverSeen"
	}); err != nil {
		return err
	}
	s.screen.say("left alone: %s is held, %s never reported, %s has a policy of its own. %s is pinned to %s and stays there.",
		heldDevice, boxedDevice, benchDevice, pinnedDevice, first)
	return nil
}

// goodRelease rolls out a release that works, around a device that is busy.
func (s *show) goodRelease(ctx context.Context) error {
	if err := s.device(busyDevice).setBusy("a call is going on"); err != nil {
		return err
	}
	s.repo.release(good)
	if err := s.bump(ctx, good, goodInFlight); err != nil {
		return err
	}
	s.screen.say("%s is merged, %d at a time. On %s a call is going on: running work is never interrupted, so it declines when it is told to go, another one gets its slot, and it is asked again later.",
		good, goodInFlight, busyDevice)
	return s.until(ctx, "every device that may is on "+good, func(v view) bool {
		return s.everyMovable(v, current(good)) && on(v, busyDevice, first) && v.inFlight(policy) == 0
	})
}

// cutOff rolls out a release that breaks what its devices reach control with.
func (s *show) cutOff(ctx context.Context) error {
	before, err := s.trees()
	if err != nil {
		return err
	}
	if err := s.repo.releaseMoved(); err != nil {
		return err
	}
	if err := s.bump(ctx, bad, badInFlight); err != nil {
		return err
	}
	s.screen.say("%s is merged, one at a time. It is bad: it sends the devices to a server that does not exist, where nobody could ever reach them again.", bad)
	if err := s.until(ctx, bad+" has failed on one device and stands still everywhere else", func(v view) bool {
		return s.ended(v, bad, 1) && s.stopped(v)
	}); err != nil {
		return err
	}
	victim, attempt := s.lastAttempt(bad)
	s.screen.say("%s could not reach control after the update and put %s back by itself: %q. Nobody else gets %s.",
		victim, good, oneLine(attempt.Message), bad)
	return s.putBack(before, victim)
}

// failedCheck changes the bad release under its version; it is still bad.
func (s *show) failedCheck(ctx context.Context) error {
	before, err := s.trees()
	if err != nil {
		return err
	}
	victim, _ := s.lastAttempt(bad)
	s.repo.release(bad)
	if err := s.repo.merge(ctx, badInFlight, policy+": "+bad+" stays on this server, and switches TLS on"); err != nil {
		return err
	}
	s.screen.say("%s is changed and merged under the same version, so it is tried again: first on %s, where it failed. Now it fails its own check.", bad, victim)
	if err := s.until(ctx, "the changed "+bad+" has failed on "+victim+" and stands still everywhere else", func(v view) bool {
		return s.ended(v, bad, 2) && s.stopped(v)
	}); err != nil {
		return err
	}
	again, attempt := s.lastAttempt(bad)
	s.promise(again == victim, "the changed %s was tried first on %s, not on %s where it had failed", bad, again, victim)
	s.screen.say("%s is on %s again, the others never left it: %q.", again, good, oneLine(attempt.Message))
	return s.putBack(before, again)
}

// fixed rolls out what should have been merged, and ends the call.
func (s *show) fixed(ctx context.Context) error {
	victim, _ := s.lastAttempt(bad)
	s.repo.release(fix)
	if err := s.bump(ctx, fix, fixInFlight); err != nil {
		return err
	}
	s.screen.say("%s is merged, %d at a time, for %s as for the others. On %s the call has ended.", fix, fixInFlight, victim, busyDevice)
	if err := s.device(busyDevice).setBusy(""); err != nil {
		return err
	}
	if err := s.until(ctx, "every device that may is on "+fix, func(v view) bool {
		return s.everyMovable(v, current(fix)) && current(fix)(v, busyDevice) && v.inFlight(policy) == 0
	}); err != nil {
		return err
	}
	s.screen.say("done: every gateway that may is on %s. %s is held, %s never reported, %s is pinned to %s: they are as they were.",
		fix, heldDevice, boxedDevice, pinnedDevice, first)
	return nil
}

// bump is the pull request that most are: one line of the policy.
func (s *show) bump(ctx context.Context, version string, maxInFlight int) error {
	if err := s.repo.target(version, maxInFlight); err != nil {
		return err
	}
	return s.repo.merge(ctx, maxInFlight, policy+": "+version)
}

// putBack promises that no device's files differ from before, victim first.
func (s *show) putBack(before map[string]map[string]string, victim string) error {
	after, err := s.trees()
	if err != nil {
		return err
	}
	same := true
	for id, tree := range before {
		if !maps.Equal(tree, after[id]) {
			same = false
			s.promise(false, "the files of %s differ from what they were before %s: %s", id, bad, difference(tree, after[id]))
		}
	}
	if same {
		s.screen.say("compared: every file of %s is what it was before, byte for byte, with its mode; so is every file of the others.", victim)
	}
	return nil
}

// difference names the paths that two trees do not share.
func difference(before, after map[string]string) string {
	var paths []string
	for path, was := range before {
		if is, ok := after[path]; !ok {
			paths = append(paths, path+" is gone")
		} else if is != was {
			paths = append(paths, path+" changed")
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			paths = append(paths, path+" is new")
		}
	}
	slices.Sort(paths)
	return strings.Join(paths, ", ")
}

func (s *show) trees() (map[string]map[string]string, error) {
	trees := map[string]map[string]string{}
	for _, d := range s.devices {
		tree, err := d.tree()
		if err != nil {
			return nil, fmt.Errorf("read the files of %s: %w", d.id, err)
		}
		trees[d.id] = tree
	}
	return trees, nil
}

// on says whether a device runs a version, by its own report.
func on(v view, id, version string) bool { return v.version(id) == version }

// current gives the test for a device that is done with a version.
func current(version string) func(view, string) bool {
	return func(v view, id string) bool { return on(v, id, version) && v.code(id) == "Current" }
}

func (s *show) everyMovable(v view, is func(view, string) bool) bool {
	for _, d := range s.devices {
		if d.movable() && !is(v, d.id) {
			return false
		}
	}
	return true
}

// ended says whether n attempts of a version have failed, and none is open.
func (s *show) ended(v view, version string, n int) bool {
	failed := 0
	for _, d := range s.devices {
		for _, a := range v.attempts(d.id, version) {
			if a.Outcome == schema.OutcomeFailed {
				failed++
			}
		}
	}
	return failed >= n && v.inFlight(policy) == 0
}

// stopped says whether nobody who may move is going to: one device failed,
// and all others are halted by it, on what they ran before.
func (s *show) stopped(v view) bool {
	return s.everyMovable(v, func(v view, id string) bool {
		return on(v, id, good) && (v.code(id) == "Failed" || v.code(id) == "Halted")
	})
}

// lastAttempt finds who tried a version last, and how that went.
func (s *show) lastAttempt(version string) (id string, last schema.Attempt) {
	for _, d := range s.devices {
		for _, a := range s.view.attempts(d.id, version) {
			if began(a) && !a.AssignedAt.Before(last.AssignedAt) {
				id, last = d.id, a
			}
		}
	}
	return id, last
}

func (s *show) device(id string) *device {
	i := slices.IndexFunc(s.devices, func(d *device) bool { return d.id == id })
	return s.devices[i]
}
