// Package webhook is how others tell the daemon that there is something to do:
// deliveries of GitHub, and of the servers that send alike (Gitea, Forgejo),
// and a signed request for a sweep that any script can send.
//
// It believes nobody about the content of a repository: a delivery only says
// that it is time to look, and whoever looks fetches and checks as always. It
// opens no socket (package listen does), asks no server, and there is no way
// to use it without a secret.
//
// Start with [New]; [Hooks.Handlers] are its paths.
//
// A request without a signature is refused before its body is read, and no
// payload is parsed whose signature does not hold. However many requests come
// at once, the memory for their bodies is bounded. A delivery counts once,
// within the bounds of what is remembered, and a daemon that was started anew
// remembers none. No payload, ref or header of a sender reaches the log. All
// exported functions are safe for concurrent use.
package webhook
