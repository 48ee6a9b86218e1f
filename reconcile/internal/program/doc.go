// Package program fetches another program for the agent and finds out whether
// it can be one, before anything depends on it.
//
// It starts no agent and keeps no record: what is on trial and what is kept
// decides package reconcile.
//
// Start with [Fetch], then [Check].
//
// A fetch that is interrupted goes on where it was, for as long as it is not
// given up. Neither waits for ever, and both may be called again.
package program
