// Package osimage speaks to what updates the operating system of a device:
// what is booted, what is staged, stage an image, undo that, reboot.
//
// It decides nothing: whether a boot was a success, and what to do when the
// old system came back, is package reconcile's. It keeps no state.
//
// Start with [Command], the driver that runs the operator's own programs.
//
// Every call ends in a bounded time. Stage and Undo may be repeated as far as
// the operator's programs may. Failures are those of package failure, with the
// end of the program's output.
package osimage
