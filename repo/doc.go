// Package repo is git as gitopsd needs it: bytes, paths and revisions. It
// polls and fetches, reads the tree of a commit, asks for ancestry, builds
// commits without a work tree and moves refs by compare-and-swap; in a local
// repository without any git program, and over http(s) and ssh.
//
// It knows no kind of document, merges nothing, never force-pushes and never
// checks a work tree out: what the bytes mean is for package schema and its
// users. Repositories with sha256 objects or reftables are refused, and so
// are git:// (which authenticates nobody) and dumb http.
//
// A daemon calls [Open], a device [OpenDevice]; [Init] makes a repository.
// Every error is an [*Error], whose Kind says what kind of trouble it is.
//
// Promises: every operation ends at its deadline, a stalled server included.
// A ref is moved only when it still has the value that the caller saw, and
// only after all that it needs is on the other side. Credentials are read
// again for each connection and, like the user part of a URL, are never part
// of an error or a log line. Nothing that a server sends makes it panic or
// take memory without bound. [Repo] and [Device] are safe for concurrent use.
package repo
