// Package systemtest holds the tests of the whole program on a real machine:
// the gitopsd binary as its users start it, a real sshd with git-shell, the
// kernel's own full and failing disks, other users' files, and kill -9.
//
// What a single package promises is tested there, with a counted fault at
// every step; here the faults are the machine's, and what is looked at is
// what an operator would see: files, refs, exit codes, logs.
//
// Start with `make test-system`: the tests are called TestSystem… and carry
// the build tag system. `make soak` runs TestSoak, and some of the others for
// longer than `make test-system` has time for.
//
// A test uses loopback, its own temporary folder and mounts below it; it ends
// every process that it started, by its id. Where a tool or a right is missing
// it says so and is skipped; with GITOPSD_NO_SKIP set that is a failure.
package systemtest
