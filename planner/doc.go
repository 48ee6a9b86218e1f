// Package planner decides which devices may get their new desired spec now,
// and what became of those that had one assigned.
//
// It refuses to do anything: it has no clock, no randomness, no input or
// output, no zone database, and keeps nothing between two calls. Package sweep
// reads the fleet, asks here, and writes down what the answer is.
//
// Start with [Plan]. It works in three steps: it judges the open attempts by
// what the devices said and what time it is ([Decision]); it finds out, as if
// those decisions stood already, how far each rollout is and what holds it
// back as a whole ([Summary]); and it gives every device one verdict with one
// reason ([Verdict]). [Codes] lists what a verdict can be, in the order of the
// checks: the first that matches is the reason. [Result.Passed] lists those
// that a device came past.
//
// Plan is deterministic: it depends neither on the order of the devices nor
// on that of any map, and it changes nothing that it was given. It accepts any
// input without a panic, and what it cannot make sense of lets nobody go. Four
// things hold whatever the input is: running work is never interrupted, a
// policy never has more attempts in flight than its maxInFlight (those
// declared lost aside), a device that an operator holds is left alone, and
// what is not an upgrade is never offered as one. What may be written of a
// verdict to a record that is kept ([Verdict.ForGit]) changes only when
// something about the device or its whole rollout does. Plans may be made at
// the same time.
package planner
