// Package files makes a device have the files and directories of a spec, and
// gives back what was there before when a spec drops them.
//
// It refuses protected paths, a symlink, a folder or a device that was there
// before a file, users that the device does not know, and to delete anything
// that it did not put there: what comes up in the place of a file of its own is
// set aside, if it is no empty folder. A folder of the spec goes only if this
// package made it, it is empty and it is no direct child of "/". It asks nobody
// whether an update may start and counts no tries; package reconcile does.
//
// Start with [New], then [Controller.Check] and [Controller.Apply]; a rollback
// is Apply with the spec of before, [Back], and [Controller.Settle] ends what
// has succeeded: secrets that were dropped go only then.
//
// What it put on the device stands in managed.json below the state folder,
// with a copy of each file and the owner and mode of each folder that was
// there before, both written before the first change. So Apply may be
// interrupted anywhere and called again with either spec: the device ends on
// that one, byte for byte, and nothing of the other stays. Labels, access
// lists and user attributes stay with the path; an original comes back with
// all of its own. What is already as wanted is not written. A secret is opened in
// memory, to be compared and written, and stands in its own file only. A file
// without an owner belongs to the agent's own user. A Controller is for one
// goroutine.
package files
