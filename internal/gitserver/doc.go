// Package gitserver runs real git servers for tests: stock git http-backend
// over loopback http, and git-upload-pack and git-receive-pack over an
// in-process ssh server.
//
// It refuses to be a git server for anybody else: it authenticates nobody
// unless told to, and its faults are the point (it can hang, fail, cut
// answers short and forget protocol v2).
//
// Call [New] with the folder that holds the bare repositories, or [NewSSH];
// [Bare] makes a repository and [Git] runs the git program.
//
// A server listens on 127.0.0.1 only, ends with its test, and may be used by
// several goroutines.
package gitserver
