package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// What is assumed where nobody says otherwise.
const (
	// DefaultUpdateTime is that of a few packages and a restart.
	DefaultUpdateTime = 5 * time.Minute
	// DefaultOfflineFor is the mean length of an outage: a router that somebody
	// has to switch off and on.
	DefaultOfflineFor = 2 * time.Hour
	// DefaultInterval is that of gitopsd serve.
	DefaultInterval = time.Minute
	// DefaultUntil is how far a simulation looks ahead: most rollouts that take
	// longer have come to a stop.
	DefaultUntil = 90 * 24 * time.Hour
	// DefaultBy is the label that sites are told apart by.
	DefaultBy = "site"

	// maxSweeps bounds how many sweeps a simulation may look ahead, so that
	// mistyped lengths of time do not keep it busy for ever: ten years of
	// minutes.
	maxSweeps = 10 * 366 * 24 * 60
	// maxOutages bounds how often all devices together may go away, alike: five
	// times as often as twenty thousand do with 5% away and the defaults.
	maxOutages = 5_000_000
	// maxOutagesEach bounds that of one device: every five minutes for a year.
	maxOutagesEach = 366 * 24 * 12
	// maxOffline is the largest share of time away that still leaves devices
	// long enough to be updated.
	maxOffline = 0.95

	// poll is how often a device looks for an assignment: the agent's default.
	poll = time.Minute
	// spread is how far updates are from their mean, up and down, as a share of
	// it: devices are not equally fast.
	spread = 0.5
)

// Assumptions are what nobody can know of the future. Rates are shares of one.
type Assumptions struct {
	// UpdateTime is how long an update takes on the mean, from its start until
	// the device is on its target. Devices differ by up to a half of it.
	UpdateTime schema.Duration `json:"updateTime"`
	// Offline is the share of the time for which a device is away; OfflineFor
	// how long it is then, on the mean. With 0 who is online stays so, and who
	// is offline now too.
	Offline    float64         `json:"offline"`
	OfflineFor schema.Duration `json:"offlineFor"`
	// Failures is the share of attempts that fail and are put back.
	Failures float64 `json:"failures"`
	// Refusals is the share of devices that cannot take the release at all.
	Refusals float64 `json:"refusals"`
	// BackAfter is when the devices that are offline or busy now are back or
	// idle; 0 = nobody knows, and those that are busy stay so.
	BackAfter schema.Duration `json:"backAfter,omitempty"`
	// Interval is the time between two sweeps.
	Interval schema.Duration `json:"interval"`
	// Until is how far to look ahead.
	Until schema.Duration `json:"until"`
	Seed  uint64          `json:"seed"`
}

// Config is what a simulation needs.
type Config struct {
	// Input is the fleet as it is now; Now in it is when the simulation begins.
	// It is not changed.
	Input  planner.Input
	Assume Assumptions // zero fields mean the defaults
	// By is the label that sites are told apart by; "" = [DefaultBy].
	By string
	// Unknown says that nothing is known of the devices yet, so that some are
	// away from the beginning where some are on the mean.
	Unknown bool
	// BadRelease asks how far a release gets of which every update fails: the
	// same once more, with that.
	BadRelease bool
	// Step is told after each plan how far it is; an error ends the simulation
	// with that error. nil = nobody wants to know.
	Step func(Step) error
}

// Step is how far a simulation is.
type Step struct {
	Now     time.Time
	Plans   int // that were made
	Arrived int // devices that reached their target
	Pending int // devices that are to
}

// Check says what makes no sense in the assumptions; nil = nothing.
func (a Assumptions) Check() error { return a.setDefaults() }

// CheckFor is Check for so many devices: what is well for one can be too much
// for many.
func (a Assumptions) CheckFor(devices int) error {
	if err := a.setDefaults(); err != nil {
		return err
	}
	if n := a.outages() * float64(devices); n > maxOutages {
		return fmt.Errorf("%.0f outages of %d devices are too many to look ahead: at most %d", n, devices, maxOutages)
	}
	return nil
}

// outages is how often a device goes away, on the mean.
func (a *Assumptions) outages() float64 {
	return float64(a.Until) / float64(a.OfflineFor) * a.Offline
}

func (c *Config) setDefaults() error {
	if c.By == "" {
		c.By = DefaultBy
	}
	return c.Assume.setDefaults()
}

func (a *Assumptions) setDefaults() error {
	for _, d := range []struct {
		value *schema.Duration
		def   time.Duration
	}{
		{&a.UpdateTime, DefaultUpdateTime}, {&a.OfflineFor, DefaultOfflineFor},
		{&a.Interval, DefaultInterval}, {&a.Until, DefaultUntil},
	} {
		if *d.value == 0 {
			*d.value = schema.Duration(d.def)
		}
		if *d.value < 0 {
			return errors.New("a length of time is negative")
		}
	}
	for _, r := range []struct {
		name  string
		value float64
		most  float64
	}{{"offline", a.Offline, maxOffline}, {"failures", a.Failures, 1}, {"refusals", a.Refusals, 1}} {
		if !(r.value >= 0 && r.value <= r.most) {
			return fmt.Errorf("%s must be between 0%% and %g%%", r.name, r.most*100)
		}
	}
	if a.BackAfter < 0 {
		return errors.New("a length of time is negative")
	}
	if sweeps := a.Until / a.Interval; sweeps > maxSweeps {
		return fmt.Errorf("%d sweeps are too many to look ahead: at most %d", sweeps, maxSweeps)
	}
	if n := a.outages(); n > maxOutagesEach {
		return fmt.Errorf("%.0f outages of a device are too many to look ahead: at most %d", n, maxOutagesEach)
	}
	return nil
}
