// Package agentsocket is how people at a device speak to its running agent: a
// unix socket below the root, one request and its answer on each connection, as
// lines of JSON.
//
// It decides nothing: package reconcile knows how the device stands and writes
// what it is told. Who may ask is who may open the socket: the agent's own
// user, and a group if one is configured. Contents that not everybody on the
// device may read never go over it.
//
// The agent calls [Listen] and [Server.Serve]; a command calls [Ask], which says
// [ErrNobody] where no agent answers.
//
// Requests are bounded in size, number and time, and wait for no work of the
// agent but the poll that they ask for. While nobody asks, there is one
// goroutine that waits. Fields of the protocol are only added.
package agentsocket
