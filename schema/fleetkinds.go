package schema

import "time"

// APIVersion is the apiVersion of every document.
const APIVersion = "gitopsd.dev/v1alpha1"

// Kind names a kind of document.
type Kind string

// The kinds. The first five are written by people in the fleet repository,
// Brake by people on a branch of its own, the next four by the daemon on the
// status branch, Report by the agent; the last two configure the two
// long-running commands.
const (
	KindPolicy       Kind = "Policy"
	KindRelease      Kind = "Release"
	KindOverlay      Kind = "Overlay"
	KindDevice       Kind = "Device"
	KindFleet        Kind = "Fleet" // its Go type is [FleetDocument]
	KindBrake        Kind = "Brake"
	KindDeviceStatus Kind = "DeviceStatus"
	KindAssignment   Kind = "Assignment"
	KindFailureMarks Kind = "FailureMarks"
	KindFleetStatus  Kind = "FleetStatus"
	KindReport       Kind = "Report"
	KindServeConfig  Kind = "ServeConfig"
	KindAgentConfig  Kind = "AgentConfig"
)

// TypeMeta opens every document.
type TypeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       Kind   `json:"kind"`
}

// Metadata names a document; labels are what selectors select by.
type Metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Reason says why a person paused or held something.
type Reason struct {
	Reason string `json:"reason"`
}

// Policy is the operator's standing instruction for a group of devices.
type Policy struct {
	TypeMeta
	Metadata Metadata   `json:"metadata"`
	Spec     PolicySpec `json:"spec"`
}

// PolicySpec is the content of a [Policy]; absent fields take the defaults
// that package planner documents.
type PolicySpec struct {
	Enabled              bool          `json:"enabled,omitempty"`
	Paused               *Reason       `json:"paused,omitempty"`
	Selector             *Selector     `json:"selector,omitempty"`
	ReleaseLine          string        `json:"releaseLine,omitempty"`
	TargetVersion        string        `json:"targetVersion,omitempty"`
	RollbackFrom         []string      `json:"rollbackFrom,omitempty"`
	MaxInFlight          *IntOrPercent `json:"maxInFlight,omitempty"`
	MinAvailable         *IntOrPercent `json:"minAvailable,omitempty"`
	PickupTimeout        *Duration     `json:"pickupTimeout,omitempty"`
	UpdateTimeout        *Duration     `json:"updateTimeout,omitempty"`
	Settle               *Duration     `json:"settle,omitempty"`
	MaxAttempts          int           `json:"maxAttempts,omitempty"`
	Backoff              *Backoff      `json:"backoff,omitempty"`
	FailureLimit         *IntOrPercent `json:"failureLimit,omitempty"`
	RefusalLimit         *IntOrPercent `json:"refusalLimit,omitempty"`
	ForgetFailuresBefore *time.Time    `json:"forgetFailuresBefore,omitempty"`
	OfflineAfter         *Duration     `json:"offlineAfter,omitempty"`
	AbsentAfter          *Duration     `json:"absentAfter,omitempty"`
	OfflineGrace         *Duration     `json:"offlineGrace,omitempty"`
	MinProtocol          int           `json:"minProtocol,omitempty"`
	Pilot                *Pilot        `json:"pilot,omitempty"`
	Waves                []Wave        `json:"waves,omitempty"`
	Budgets              []Budget      `json:"budgets,omitempty"`
	Windows              []Window      `json:"windows,omitempty"`
	Freezes              []Freeze      `json:"freezes,omitempty"`
	MinInterval          *Duration     `json:"minInterval,omitempty"`
}

// Backoff is base × factor^(n−1), at most cap, before the n-th repetition.
type Backoff struct {
	Base   *Duration `json:"base,omitempty"`
	Factor float64   `json:"factor,omitempty"`
	Cap    *Duration `json:"cap,omitempty"`
}

// Release is what a version means: a desired spec. Spec is kept as the tree
// that was written, because merging and digests work on what was written.
type Release struct {
	TypeMeta
	Metadata Metadata       `json:"metadata"`
	Spec     map[string]any `json:"spec"`
}

// Overlay is a part of a spec for the devices that a selector matches.
type Overlay struct {
	TypeMeta
	Metadata Metadata    `json:"metadata"`
	Spec     OverlaySpec `json:"spec"`
}

// OverlaySpec is the content of an [Overlay]; a higher order wins.
type OverlaySpec struct {
	Selector *Selector         `json:"selector,omitempty"`
	Order    int               `json:"order,omitempty"`
	Vars     map[string]string `json:"vars,omitempty"`
	Desired  map[string]any    `json:"desired,omitempty"`
}

// ReleaseNone as a device's release makes its own desired part the whole spec.
const ReleaseNone = "none"

// Device is one machine of the fleet.
type Device struct {
	TypeMeta
	Metadata Metadata         `json:"metadata"`
	Spec     DeviceSpecFields `json:"spec"`
}

// DeviceSpecFields is the content of a [Device]; desired is merged last.
type DeviceSpecFields struct {
	Hold                 *Reason           `json:"hold,omitempty"`
	Pin                  string            `json:"pin,omitempty"`
	Release              string            `json:"release,omitempty"`
	ForgetFailuresBefore *time.Time        `json:"forgetFailuresBefore,omitempty"`
	Vars                 map[string]string `json:"vars,omitempty"`
	Desired              map[string]any    `json:"desired,omitempty"`
}
