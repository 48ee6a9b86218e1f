// Package protocoltest holds the tests of what daemon and device promise each
// other, on the real code: real daemons, real agents and a repository in
// memory, whose steps a seeded scheduler orders.
//
// It decides nothing itself: packages sweep, planner and agentsync always do.
// Beside these schedules, in which few devices meet all that the protocol
// forbids, there are histories: whole fleets whose operators edit, brake and
// revert, and in which every commit of the status branch is held against what
// was wanted then, and against the commit before it, which it must not take
// back; in the end every device has to be current. Start with
// TestHistories (GITOPSD_HISTORIES=n plays as many as wanted, TestSystemHistories
// 2,000, and FuzzHistories goes on for ever); a failing one belongs into testdata/histories.
//
// Package reconcile, on real folders, is part of one schedule in twelve (417
// of 5,000), because it costs several times as much; in the others a device
// that follows the same rules without any files takes its place. Both reboot:
// what is on disk stays, memory goes, and a release may bring an operating
// system that takes a reboot. Devices leave the fleet repository, come back,
// and change policy and folder. Replicas lag in every read but the two on
// which the protocol rests (TestSystemLimits shows what comes of it there).
// TestSystemThreeDaysAway follows one device that has no network for days.
// Reports over HTTP are not played here, nor are settings that change between
// two starts of an agent.
//
// Start with `go test ./internal/protocoltest`, which runs [Schedules]
// schedules and those in testdata/seeds; GITOPSD_SEED=n runs one,
// GITOPSD_SCHEDULES=n as many as wanted, GITOPSD_REAL_EVERY=1 all of them with
// the real agent. FuzzSchedules goes on for ever. With the tag system, each
// rule of the protocol is broken in turn, which some schedule must notice, and
// real processes meet on one repository. Which test guards which rule stands
// in docs/explanation/protocol.md.
//
// A schedule is a function of its bytes: the same ones give the same run. A
// failing one is made shorter, printed with its trace, and belongs into
// testdata/seeds from then on.
package protocoltest

// Schedules is how many schedules one ordinary run of the tests makes.
const Schedules = 5000
