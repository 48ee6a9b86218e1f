// Package listen is the daemon's address: a small HTTP server that bounds what
// anybody who reaches it can take of time, memory and connections.
//
// It authenticates nobody, which is the business of the handlers, and speaks
// no TLS, which is that of a proxy in front of it.
//
// Start with [New], which takes the address, and then [Server.Run].
//
// Paths are exact but for a slash at their end, and nothing is ever redirected.
// Run returns after the last request has ended.
package listen
