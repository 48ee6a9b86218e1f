// Package githubtest is a server that behaves as the documented REST API of
// GitHub does, for tests: one repository with its pull requests, comments,
// commit statuses and check runs, the tokens of an App and of people, pages,
// entity tags and rate limits.
//
// It knows nothing of the client that it tests, holds no git repository (a
// function says which commits there are), and is no server for anybody else:
// its faults are the point.
//
// Call [New]; [Server.URL] is where it listens on loopback, and
// [Server.Transport] reaches it without a network, for tests whose clock is not
// real. What a client did is in [Server.Requests], and what it should not have
// done, such as two writes within a second, in [Server.Wrongs].
//
// All methods may be called by several goroutines.
package githubtest
