// Package disk is a device's file tree below one folder, changed in steps that
// power may interrupt: a file is there whole or not at all, a folder appears
// with its owner and mode, and what an interrupted step left is recognised and
// swept.
//
// It refuses to leave the root. A path is read as the device itself would read
// it with the root as "/": symlinks among its parents are followed, absolute
// ones from the root and ".." not above it, and every operation then goes
// through [os.Root], so that a link changed in between cannot lead out either.
// A symlink as the last element is never written through and never replaced:
// that is [ErrSymlink], because replacing it would leave the real file stale,
// and following it would change a file that nobody named. What belongs on a
// device is decided by package files.
//
// Start with [Open], then [Root.WriteFile].
//
// A write that returned nil is on stable storage, name included; of one that
// did not, [Root.Doubtful] knows where it only looks done. Modes do not
// depend on the umask. A Root may be used by several goroutines as far as they
// change different paths.
package disk
