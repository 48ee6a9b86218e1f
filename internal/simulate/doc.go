// Package simulate runs the planner forward in time over a fleet whose devices
// follow the protocol as well as they are assumed to: how a rollout will
// unfold, when it is done, who never gets there, and why.
//
// It reads no repository and no clock, and prints nothing: the fleet comes in
// as a planner's input, and package view, or another renderer, writes what
// comes out. It decides nothing either. Every verdict and every outcome is the
// planner's; what is simulated is the world around it: sweeps, devices that
// ask, announce, work and report, and networks that fail.
//
// Call [Run] with the fleet as it is now, or [MakeUp] first for one that is
// invented.
//
// A simulation is deterministic: what happens to a device depends on the seed,
// its id and the number of its attempt, never on the order of devices or maps.
// It goes from event to event, and asks the planner only in those sweeps of
// which the answer can be another one than before.
package simulate
