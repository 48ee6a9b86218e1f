// Package machine boots whole Linux systems for tests: systemd as the first
// process, podman, ostree and a network of their own, in about a second.
//
// It refuses to be more than a test bed: nothing of the program imports it. It
// needs root, systemd-nspawn and mmdebstrap, and says what is missing.
//
// Start with [New], or [NewOSTree] for one whose system is replaced as a whole,
// then [Machine.Boot]. [Machine.Run] runs a program inside,
// [Machine.PowerCut] takes the power away, and the test's end removes all that
// was made.
//
// A machine reaches the test at [Machine.Outside] and nothing else: its network
// namespace has one link, to the host. A reboot from inside boots it again with
// a new boot id. The tree that all machines share is made once per host, from
// the package mirror that the host itself uses, and is never written to.
package machine
