// Package planner decides which devices may get their new desired spec now,
// and what became of those that had one assigned.
//
// It refuses to do anything: it has no clock, no randomness, no input or
// output, and keeps nothing between two calls. Package sweep reads the fleet,
// asks here, and writes down what the answer is.
//
// Start with [Plan]. It works in two halves: first it judges the open
// attempts by what the devices said and what time it is ([Decision]), then it
// gives every device one verdict with one reason, as if those decisions stood
// already ([Verdict]). [Codes] lists what a verdict can be, in the order of
// the checks: the first that matches is the reason.
//
// Plan is deterministic: it depends neither on the order of the devices nor
// on that of any map, and it changes nothing that it was given. It accepts any
// input without a panic. Four things hold whatever the input is: running work
// is never interrupted, a policy never has more attempts in flight than its
// maxInFlight (those declared lost aside), a device that an operator holds is
// left alone, and what is not an upgrade is never offered as one.
package planner
