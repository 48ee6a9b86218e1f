// Package sweep is the daemon: one pass over a fleet (fetch, repair, read the
// reports, guard, validate, plan, publish), and the loop around it.
//
// It decides nothing about devices itself (package planner does), reads no
// YAML by its own rules (package schema does), and knows no git beyond the
// few operations of [Remote]. It applies nothing: devices fetch what is
// published for them.
//
// Start with [New] and [Daemon.Run], or [Daemon.Once] for a single pass.
// [ReadStatus] reads what a daemon wrote; [PlanNow] says what the next pass
// would decide, without deciding it.
//
// The status branch moves only by compare-and-swap, so several daemons may
// serve one repository. A pass that finds nothing new commits nothing, and a
// pass that is cut off at any point is completed by the next one. A Daemon is
// not safe for concurrent use, but for [Daemon.Announce]; Run returns when all
// that it started has ended.
package sweep
