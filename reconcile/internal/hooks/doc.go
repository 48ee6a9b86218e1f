// Package hooks runs the programs that a spec, and the device itself, name at
// four points of an update.
//
// It uses no shell and leaves no program running past its time: each gets a
// process group of its own, and after its timeout TERM and soon KILL go to the
// group and to whatever else still carries its environment, sessions of their
// own included. A hook that ended well is not hunted: a child that it left
// behind stays, but without its output, and nothing waits for it. When a point
// is reached and what a failure means for the update is decided by package
// reconcile.
//
// Start with [Local] and [Check], then [Run]; [Command] runs any other program
// in the same way.
//
// Programs are the host's: an absolute path and a bare name (looked up in
// PATH) mean the host's program also where the device's root is a folder; a
// relative path with a slash is taken from the working folder, which lies
// below the root. Output is kept up to 8 KiB, its end. Safe for concurrent use
// as far as roots differ.
package hooks
