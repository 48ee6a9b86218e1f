// Package memremote is a git repository in memory for tests: immutable
// objects by content, refs that move by compare-and-swap, and clients whose
// every exchange with it can be delayed, failed or served from the past.
//
// It is no git: it knows no packs, no transports, no signatures and no trees
// but flat ones. Whoever tests those uses package repo and a real server.
//
// Start with [New], make commits as a person does with [Repo.Push], and give
// each daemon and each device a [Client] of its own.
//
// The same content gives the same hash. A Repo is safe for concurrent use; a
// Client is used by one goroutine, as its hooks are called without a lock.
package memremote
