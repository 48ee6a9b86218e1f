// Package checks asks, before an update starts, whether it can work on this
// device: what a spec requires, room on the disk, and memory. It also measures
// what a device watches at all times.
//
// It changes nothing and repairs nothing; whether to wait or to refuse is the
// class of its error: what a spec requires and is not there is permanent, too
// little room may be enough later.
//
// Start with [Requires], [Disk] and [Memory]; [Used] measures. Each tells all
// that is missing in one error. Safe for concurrent use.
package checks
