package simulate

import (
	"time"

	"github.com/gitopsd/gitopsd/planner"
)

// policy is what the world around the planner has to know of a policy.
type policy struct {
	planner.Policy
	waveOf map[string]int
	// What the last plan said of it.
	summary *planner.Summary
	// room says that a device which becomes free may go at once: there is a
	// slot, and nothing holds the whole policy back.
	room bool
	// left counts for each wave what could have come nearer to satisfying it
	// since the last plan.
	left []int
}

func newPolicy(p planner.Policy) *policy {
	e := &policy{Policy: p, waveOf: make(map[string]int, len(p.Waves)), left: make([]int, len(p.Waves)+1)}
	for i, w := range p.Waves {
		if _, twice := e.waveOf[w.Name]; !twice {
			e.waveOf[w.Name] = i
		}
	}
	e.PickupTimeout = orDuration(p.PickupTimeout, planner.DefaultPickupTimeout)
	e.UpdateTimeout = orDuration(p.UpdateTimeout, planner.DefaultUpdateTimeout)
	e.Settle = max(p.Settle, 0)
	e.AbsentAfter = orDuration(p.AbsentAfter, planner.DefaultAbsentAfter)
	e.OfflineGrace = orDuration(p.OfflineGrace, planner.DefaultOfflineGrace)
	return e
}

func orDuration(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// offlineAfter is the silence after which a device counts as offline.
func (p *policy) offlineAfter(heartbeat time.Duration) time.Duration {
	if p.OfflineAfter > 0 {
		return p.OfflineAfter
	}
	return max(planner.MinOfflineAfter, planner.OfflineHeartbeats*min(max(heartbeat, planner.MinHeartbeat), planner.MaxHeartbeat))
}

// wave is the index of the wave that a device is in.
func (p *policy) wave(name string) int {
	if i, ok := p.waveOf[name]; ok {
		return i
	}
	return len(p.Waves)
}

// soaks are how long somebody waits for a device of a wave once it is on its
// target.
func (p *policy) soaks(d *planner.Device) []time.Duration {
	var list []time.Duration
	if d.Pinned || d.Observes {
		return nil
	}
	if i := p.wave(d.Wave); i < len(p.Waves) && p.Waves[i].Soak > 0 {
		list = append(list, p.Waves[i].Soak)
	}
	if p.Pilot.Count > 0 && p.Pilot.Soak > 0 {
		list = append(list, p.Pilot.Soak)
	}
	return list
}
