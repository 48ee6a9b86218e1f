// Package reconcile is the device's side of the work: it makes the device be
// what its assigned spec says, or puts it back, and says in reports how that
// went. The steps have the names of the flow in docs/explanation/device-flow.md:
// PRE-CHECK, ANNOUNCE, LOOK AGAIN, RECONCILE, POST-ACTION, ROLLBACK.
//
// It decides nothing about the fleet and knows no git: package planner decides
// who moves, package agentsync (a [Control]) brings assignments and takes
// reports. It changes nothing on the device that was not assigned to this
// installation and announced before.
//
// Start with [New], then [Agent.Run] for the long-running agent or
// [Agent.Once] for one pass.
//
// What to do next is a function of what stands on disk and of what control
// says, so that the agent may be killed at any instruction: the next start
// converges to the desired spec or back to the current one. State is written
// whole and keeps its shape between versions. An Agent is used by one
// goroutine; a lock keeps a second one out of the same root.
package reconcile
