// Package apps makes a device run the applications of a spec: containers of
// podman, which systemd keeps as units that podman's generator makes of
// quadlet files, or which podman-compose makes of a compose file.
//
// It refuses what that generator and podman-compose refuse, and units that
// would take the place of the agent's own. It deletes no volume and no image
// that it did not pull. It writes no file of theirs itself, and no unit: package
// files puts them where [Files] says. A drop-in below /run is its own, while
// systemd takes note of containers that ran before they were ours.
// It asks nobody whether an update may start and counts no tries; package
// reconcile does.
//
// Start with [New]. An update calls [Controller.Prefetch], [Controller.Check],
// [Controller.Prepare] before the files are written, [Controller.Switch] after
// that and [Controller.Healthy]; a rollback is Prepare and Switch with the spec
// of before, then [Controller.Started].
//
// What may run on the device stands in apps.json below the state folder,
// written before it is started, so that each call may be interrupted anywhere
// and repeated with either spec: what neither of them wants does not stay. An
// application whose files are as they were is not restarted. Images of the
// spec before the current one are kept, so that the way back needs no network.
// A Controller is for one goroutine.
package apps
