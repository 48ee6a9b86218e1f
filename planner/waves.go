package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// wave is a [Wave] of a policy, and what its members did in this rollout.
type wave struct {
	Wave
	index                      int
	members, countable, inside int // inside: in flight
	tried                      bool
	needed                     int
	soaked                     soaks
	open, satisfied            bool
	hold                       finding // of its members while it is closed
}

// countWaves finds out which waves of each policy are open, and how far its
// pilot is.
func (pl *plan) countWaves() {
	asked := false
	for _, p := range pl.policies {
		if p.bad != "" {
			continue
		}
		if len(p.Waves) > 0 {
			p.waves = make([]*wave, 0, len(p.Waves)+1)
			p.waveOf = make(map[string]int, len(p.Waves))
			for i, w := range p.Waves {
				p.waves = append(p.waves, &wave{Wave: w, index: i})
				p.waveOf[w.Name] = i
			}
			p.waves = append(p.waves, &wave{Wave: Wave{Optional: true}, index: len(p.Waves)})
		}
		asked = asked || len(p.waves) > 0 || p.Pilot.Count > 0
	}
	if !asked {
		return
	}
	for _, d := range pl.devices {
		p := d.policy
		if p == nil || d.Removed || d.bad != "" || d.apart() || p.waves == nil && p.Pilot.Count == 0 {
			continue
		}
		inside := d.open() != nil || d.Upgrading
		last, tried := pl.inRollout(d)
		if p.waves != nil {
			pl.countMember(d, p.waves[p.wave(d)], inside, last, tried)
		}
		if p.Pilot.Count > 0 && !inside && d.current && d.Seen && last != nil && last.Outcome == OK && !d.absent {
			p.pilot.soaked.add(pl, d, last.EndedAt, p.Pilot.Soak, false)
		}
	}
	for _, p := range pl.policies {
		p.openWaves()
		p.openPilot()
	}
}

// apart says whether a device stands outside of what judges a rollout: it is
// pinned, or only compares itself, which harms nothing and proves nothing.
func (d *device) apart() bool { return d.Pinned || d.Observes }

// wave is the index of the wave that a device is in; those apart are in none
// and go with the first.
func (p *policy) wave(d *device) int {
	if len(p.waves) == 0 || d.apart() {
		return 0
	}
	if i, ok := p.waveOf[d.Wave]; ok {
		return i
	}
	return len(p.waves) - 1
}

// inRollout is the last attempt of a device at its target in its present
// rollout, by the installation that reports, and whether it had any attempt in
// that rollout.
func (pl *plan) inRollout(d *device) (last *Attempt, tried bool) {
	for i := len(d.attempts) - 1; i >= 0; i-- {
		a := &d.attempts[i]
		if a.Rollout != d.Rollout {
			continue
		}
		tried = true
		if sameInstall(d, a) && matches(a.Target, d.target) {
			return a, true
		}
	}
	return nil, tried
}

func (pl *plan) countMember(d *device, w *wave, inside bool, last *Attempt, tried bool) {
	w.members++
	w.tried = w.tried || tried
	switch {
	case inside:
		w.inside++
		w.countable++
	case d.current && d.Seen:
		since := d.Since
		if last != nil {
			if since = last.EndedAt; last.Outcome != OK {
				since = later(since, d.Since) // it came there some other way, and not before
			}
		}
		out := !tried && pl.isOut(d)
		if w.soaked.add(pl, d, since, w.Soak, out) || !out {
			w.countable++
		}
	case tried || !pl.isOut(d):
		w.countable++
	}
}

// isOut says whether a device that was not tried yet is nobody to wait for.
func (pl *plan) isOut(d *device) bool {
	if d.absent || d.held() || d.ProtocolVersion < d.policy.MinProtocol {
		return true
	}
	if c := pl.versionCode(d); !d.current && (c == UnknownVersion || c == Newer) {
		return true
	}
	return pl.offlineFor(d, d.policy.OfflineGrace)
}

// offlineFor says whether a device has been offline for a time. With a clock
// that cannot be trusted nobody has.
func (pl *plan) offlineFor(d *device, limit time.Duration) bool {
	since := d.OfflineSince
	switch {
	case !d.offline || pl.NoTimeouts:
		return false
	case !since.IsZero():
	case d.LastSeen.IsZero():
		return false // nobody knows since when
	default:
		since = d.LastSeen.Add(d.policy.offlineAfter(d.Heartbeat))
	}
	return pl.reached(since.Add(sum(limit, 1)))
}

// openWaves finds which waves are satisfied, and which open by that. One that
// has moved a device, or that comes before one that has, never closes again.
func (p *policy) openWaves() {
	moved := false
	for i := len(p.waves) - 1; i >= 0; i-- {
		w := p.waves[i]
		moved = moved || w.tried
		w.open = moved
	}
	satisfied := true
	for _, w := range p.waves {
		w.open = w.open || satisfied
		w.needed = w.needs(w.countable)
		nobody := w.Optional && w.countable == 0
		w.satisfied = w.inside == 0 && (w.soaked.done >= w.needed || nobody)
		satisfied = satisfied && w.satisfied
		w.soaked.sort()
	}
}

// needs is how many successes a wave needs of so many that can be counted.
func (w *wave) needs(countable int) int {
	threshold, least := w.SuccessThreshold, w.MinSuccess
	if threshold == 0 {
		threshold = DefaultSuccessThreshold
	}
	if least == 0 {
		least = DefaultMinSuccess
	}
	return max(least, percentUp(threshold, countable))
}

// soaksUntil is when a wave will be satisfied by the soaks under way; zero =
// that takes more.
func (w *wave) soaksUntil() time.Time {
	if w.inside > 0 {
		return time.Time{}
	}
	done, countable := w.soaked.done, w.countable
	for _, s := range w.soaked.ends {
		if done++; s.out {
			countable++ // it counts by its success alone
		}
		if done >= w.needs(countable) {
			return s.end
		}
	}
	return time.Time{}
}

// waveHold is what the devices of a closed wave are told.
func (p *policy) waveHold(pl *plan, own *wave) finding {
	i := slices.IndexFunc(p.waves, func(w *wave) bool { return !w.satisfied })
	w := p.waves[i]
	v := no(CodeWave, "waits for wave "+word(w.Name))
	v.field = fmt.Sprintf("waves[%d]%s", i, w.knob())
	if v.detail = w.why(); w.members == 0 {
		v.reason, v.detail = "wave "+word(w.Name)+" matches no device", ""
	}
	v.notBefore = pl.whenOpen(p, own)
	return v
}

// whenOpen is when a closed wave opens by time alone; zero = it takes more.
func (pl *plan) whenOpen(p *policy, own *wave) time.Time {
	var t time.Time
	for _, w := range p.waves[:own.index] {
		if w.satisfied {
			continue
		}
		end := w.soaksUntil()
		if end.IsZero() {
			return end
		}
		t = later(t, end)
	}
	return pl.opensAfter(p, t)
}

// knob is the field of a wave that keeps it from being satisfied.
func (w *wave) knob() string {
	switch {
	case w.members == 0:
		return ".selector"
	case w.inside > 0:
		return ""
	case !w.soaksUntil().IsZero() || w.soaked.done+w.soaked.underway() >= w.needed:
		return ".soak"
	case w.countable == 0:
		return ".optional"
	case w.needed > w.countable:
		return ".minSuccess"
	case w.SuccessThreshold > 0:
		return ".successThreshold"
	}
	return ""
}

// why says why a wave is not satisfied; "" = it is.
func (w *wave) why() string {
	switch {
	case w.satisfied:
		return ""
	case w.members == 0:
		return "matches no device"
	}
	parts := []string{fmt.Sprintf("%d of %d done, needs %d", w.soaked.done, w.countable, w.needed)}
	if w.countable == 0 {
		parts = []string{"no device can be reached"}
	}
	if w.inside > 0 {
		parts = append(parts, fmt.Sprintf("%d in flight", w.inside))
	}
	return strings.Join(append(parts, w.soaked.text()...), "; ")
}

func (p *policy) waveSummaries() []WaveSummary {
	if len(p.waves) == 0 {
		return nil
	}
	list := make([]WaveSummary, 0, len(p.waves))
	for _, w := range p.waves {
		list = append(list, WaveSummary{
			Name: w.Name, Open: w.open, Satisfied: w.satisfied, Members: w.members, Countable: w.countable,
			Successes: w.soaked.done, Needed: w.needed, InFlight: w.inside, Soaking: w.soaked.underway(),
			SoakingUntil: w.soaked.until(), Why: w.why(),
		})
	}
	return list
}
