// Package github shows on GitHub what the daemon finds out: on the pull
// requests of the source branch whether they are valid and what they would do,
// and on the commit that was swept how the fleet is.
//
// It reads no git repository, validates nothing and plans nothing: whoever
// starts it looks at the commits (see [Config]), and it runs nothing of what a
// pull request holds. It listens to nobody either: events are handed in, and
// without them it asks.
//
// Call [New], then [Service.Run]; [Service.PullRequest] and [Service.Swept]
// hand in what has happened and never wait. [Check] finds out what a token may
// do, and writes nothing.
//
// One request is on its way at a time, and at most one write a second; what
// the server says about its limits is obeyed, and meanwhile nothing but this
// waits. Each pull request has one comment of one author, however many daemons
// write it. What is there already is not written again. A right that is missing
// is said once and costs only what it is for. Tokens and keys are read again
// from their files, and never are part of an error, a log line, or anything
// that is sent but the header that is for them. All exported functions are safe
// for concurrent use.
package github
