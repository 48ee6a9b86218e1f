// Package units makes the systemd of a device run the units of a spec, and
// gives back what they were before when a spec drops them.
//
// It refuses to touch what a spec does not name, to replace a good unit by one
// that systemd-analyze finds broken, and to write unit files itself: package
// files puts them there, as [Files] says. It asks nobody whether an update may
// start and counts no tries; package reconcile does.
//
// To manage the units of a spec start with [New], then [Controller.Check],
// [Controller.Prepare] before the files are written and [Controller.Finish]
// after. Whoever has services of its own, as applications do, speaks to
// systemd itself:
//
//	m, err := units.Connect(ctx)      // when there is something to do
//	defer m.Close()                   // and never kept
//	err = m.Reload(ctx)               // after its unit files or quadlets changed
//	err = m.Do(ctx, units.Job{Verb: units.Start, Unit: "edge.service"})
//	states, err := m.States(ctx, "edge.service")
//
// Do starts all of its jobs before it waits for any, so that systemd puts them
// in their order, and gives a [*JobError] for each that did not end well;
// [Journal] has what the unit wrote. [RunState] says in a word how a unit is.
//
// What is to be done because files changed stands on disk before they do, so
// that Prepare and Finish may be interrupted anywhere and called again with
// either spec. A unit that is as wanted is neither touched nor restarted. No
// connection outlives a call, and a call outlives the connection where systemd
// executes itself anew. Neither a Controller nor a Manager is safe for
// concurrent use.
package units
