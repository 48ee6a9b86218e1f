//go:build system

package systemtest

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

const (
	// slowPart is what a slow cable takes at a time, and slowPause how long it
	// takes: some 400 KB a second, and a round trip of a satellite.
	slowPart  = 128 << 10 // bytes
	slowPause = 300 * time.Millisecond
)

// cable is the network between a machine and the servers of a test.
type cable struct{ slow atomic.Bool }

// slowListener gives connections whose far end hears slowly while the cable is
// slow.
type slowListener struct {
	net.Listener
	cable *cable
}

// Accept takes the next connection.
func (l *slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &slowConn{c, l.cable}, nil
}

type slowConn struct {
	net.Conn
	cable *cable
}

// Write sends in parts while the cable is slow.
func (c *slowConn) Write(p []byte) (sent int, err error) {
	for len(p) > 0 && err == nil {
		part, n := p, 0
		if c.cable != nil && c.cable.slow.Load() {
			part = p[:min(len(p), slowPart)]
			time.Sleep(slowPause)
		}
		n, err = c.Conn.Write(part)
		sent, p = sent+n, p[n:]
	}
	return sent, err
}

// fault is what may become of a network.
type fault struct {
	name   string
	outage bool // nothing goes through until it ends
	begin  func(*box) error
	end    func(*box) error
}

// firewall is a fault of what packets the machine sends and takes.
func firewall(name string, outage bool, in, out string) fault {
	const table = `table inet fault {
  chain in { type filter hook input priority 0; iifname host0 %s; }
  chain out { type filter hook output priority 0; oifname host0 %s; }
}`
	return fault{name, outage, func(b *box) error { return b.nft(fmt.Sprintf(table, in, out)) }, func(b *box) error { return b.nft("delete table inet fault") }}
}

func (b *box) nft(command string) error {
	if out, err := b.Try(b.f.Context(), "nft", command); err != nil {
		return fmt.Errorf("nft %s: %w: %s", command, err, out)
	}
	return nil
}

// outages is how many of the faults are one; they come first.
const outages = 3

var faults = []fault{
	firewall("dropped", true, "drop", "drop"),
	firewall("refused", true, "drop", "meta l4proto tcp reject with tcp reset"),
	{"unplugged", true, func(b *box) error { return b.Unplug() }, func(b *box) error { return b.Plug() }},
	firewall("lossy", false, "numgen random mod 100 < 20 drop", "numgen random mod 100 < 20 drop"),
	{"slow", false, func(b *box) error { b.cable.slow.Store(true); return nil }, func(b *box) error { b.cable.slow.Store(false); return nil }},
}
