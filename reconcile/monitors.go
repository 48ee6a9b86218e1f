package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/checks"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// measureEvery is how often the monitors of the current spec are looked at.
	measureEvery = 5 * time.Minute
	// measureLimit is how long that may take: a network file system that is
	// gone answers nobody, ever.
	measureLimit = 5 * time.Second
	// levelGap is by how many percent less must be in use than a level says
	// before it is over, so that no report follows another for one percent.
	levelGap = 5
)

// Levels of a monitor that names none, in percent.
const (
	defaultWarning  = 80
	defaultCritical = 95
)

// monitors keeps what was measured last.
type monitors struct {
	states   []schema.MonitorState
	attempt  int64         // whose spec they are of
	next     time.Duration // uptime
	measured chan map[string]int
	limit    time.Duration // 0 = measureLimit
}

// monitor measures what the current spec wants to be watched, where that is due.
func (a *Agent) monitor() {
	m := &a.monitors
	cur := &a.store.current
	if cur.Attempt == m.attempt && a.up() < m.next {
		return
	}
	m.attempt, m.next = cur.Attempt, a.up()+measureEvery
	spec, err := a.store.currentSpec()
	if err != nil || spec.Resources == nil || len(spec.Resources.Monitors) == 0 {
		m.states = nil
		return
	}
	wanted := spec.Resources.Monitors
	used := a.measure(wanted)
	var states []schema.MonitorState
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		s := schema.MonitorState{Name: name, Level: schema.LevelUnknown}
		if n, known := used[name]; known && wanted[name] != nil {
			s.Used, s.Level = n, level(wanted[name], n, m.levelOf(name))
		}
		if was := m.levelOf(name); s.Level != was && (was != "" || s.Level != schema.LevelOK) {
			a.log.Info("a monitor has another level", "monitor", name, "level", s.Level, "used", s.Used)
		}
		states = append(states, s)
	}
	m.states = states
}

func (m *monitors) levelOf(name string) schema.Level {
	for _, s := range m.states {
		if s.Name == name {
			return s.Level
		}
	}
	return ""
}

// level is where so many percent stand, coming from another level.
func level(m *schema.Monitor, used int, was schema.Level) schema.Level {
	warning, critical := m.Warning, m.Critical
	if critical == 0 {
		critical = max(defaultCritical, warning)
	}
	if warning == 0 {
		warning = min(defaultWarning, critical)
	}
	if was == schema.LevelCritical {
		critical -= levelGap
	}
	if was == schema.LevelCritical || was == schema.LevelWarning {
		warning -= levelGap
	}
	switch {
	case used >= critical:
		return schema.LevelCritical
	case used >= warning:
		return schema.LevelWarning
	}
	return schema.LevelOK
}

// measure gives the percentages that are known; one that does not answer in time
// is asked no second question before it has.
func (a *Agent) measure(wanted map[string]*schema.Monitor) map[string]int {
	m := &a.monitors
	if m.measured == nil {
		m.measured = make(chan map[string]int, 1)
		root, done := a.root, m.measured
		go func() { // whom the kernel does not answer can be neither ended nor waited for

			used := map[string]int{}
			for name, w := range wanted {
				if w == nil {
					continue
				}
				if n, err := checks.Used(root, w); err == nil {
					used[name] = n
				}
			}
			done <- used
		}()
	}
	limit := time.NewTimer(cmp.Or(m.limit, measureLimit))
	defer limit.Stop()
	select {
	case used := <-m.measured:
		m.measured = nil
		return used
	case <-limit.C:
		return nil
	}
}
