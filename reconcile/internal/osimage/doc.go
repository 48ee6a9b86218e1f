// Package osimage speaks to what updates the operating system of a device:
// what is booted, what is staged, fetch and stage an image, undo that, reboot.
//
// It decides nothing: whether a boot was a success, and what to do when the
// old system came back, is package reconcile's. It keeps no state.
//
// Start with [New], which gives the [Driver] that a configuration names.
//
// Every call ends in a bounded time. Fetch, Stage and Undo may be repeated
// after a crash anywhere, with the command driver as far as the operator's
// programs may. Failures are those of package failure, with the
// end of the program's output.
package osimage
