package planner

import "time"

// What zero fields of a [Policy], and of its parts, mean.
const (
	// DefaultMaxInFlight moves one device at a time.
	DefaultMaxInFlight = 1
	// DefaultMinAvailable keeps one device in service.
	DefaultMinAvailable = 1
	// DefaultPickupTimeout is how long an assignment may wait for its start;
	// downloads and pre-checks run within it.
	DefaultPickupTimeout = time.Hour
	// DefaultUpdateTimeout is how long an update may take from its start.
	DefaultUpdateTimeout = 30 * time.Minute
	// DefaultMaxAttempts is how often a device may fail one target.
	DefaultMaxAttempts = 1
	// DefaultBackoffBase, DefaultBackoffFactor and DefaultBackoffCap space
	// the attempts of one device at one target.
	DefaultBackoffBase   = 10 * time.Minute
	DefaultBackoffFactor = 2.0
	DefaultBackoffCap    = 24 * time.Hour
	// DefaultFailureLimit halts a policy at the first failure.
	DefaultFailureLimit = 0
	// DefaultRefusalPercent and MinRefusals bound refusals, which harm
	// nothing: the larger of the two counts.
	DefaultRefusalPercent = 10
	MinRefusals           = 3
	// OfflineHeartbeats missed in a row make a device offline, but never
	// before MinOfflineAfter, which a restart of the agent or of the network
	// may take.
	OfflineHeartbeats = 3
	MinOfflineAfter   = 5 * time.Minute
	// MinHeartbeat and MaxHeartbeat clamp what devices say of themselves.
	MinHeartbeat = 10 * time.Second
	MaxHeartbeat = 24 * time.Hour
	// DefaultAbsentAfter takes a device out of every denominator: a week
	// covers a weekend and a holiday.
	DefaultAbsentAfter = 168 * time.Hour
	// DefaultOfflineGrace is how long a device that was not tried yet and has
	// become offline keeps its wave from being satisfied.
	DefaultOfflineGrace = time.Hour
	// DefaultMinProtocol is the oldest protocol that needs no hand.
	DefaultMinProtocol = 1
	// DefaultSuccessThreshold and DefaultMinSuccess are what a wave needs: all
	// devices that can be counted, and one at least.
	DefaultSuccessThreshold = 100
	DefaultMinSuccess       = 1
	// DefaultMaxUnavailable is what a budget leaves each group.
	DefaultMaxUnavailable = 1
)

// What may be written, so that a plan is cheap whatever is.
const (
	MinWindow  = time.Minute
	MaxWindow  = 24 * time.Hour
	MaxWindows = 100
	MaxBudgets = 100
	MaxFreezes = 100
)
