// Package disktest is a disk that fails, for the tests of what writes to one.
//
// It touches no file: a test has the operations that it is about to do pass
// through [Disk.Step], and package disk tells of them. What must have become of
// the device is the test's to say. Nothing but tests imports it.
//
// Call [Each]. It is deterministic, and no Disk serves several goroutines.
package disktest
