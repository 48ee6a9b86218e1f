//go:build linux

package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Each machine has a /30 of its own in a block that is meant for tests of
// networks (RFC 2544): the host has its first address, the machine the second.
func (m *Machine) addresses() (outside, inside string) {
	block := m.number * 4
	return fmt.Sprintf("198.18.%d.%d", block/256, block%256+1), fmt.Sprintf("198.18.%d.%d", block/256, block%256+2)
}

// reserve finds a number that no other machine of this host has, and makes the
// network namespace of that name: only one can.
func (m *Machine) reserve() error {
	const few = 4096 // keeps all addresses within the block
	for m.number = os.Getpid() % few; ; m.number = (m.number + 1) % few {
		m.name = fmt.Sprintf("gitopsd-tb%d", m.number)
		err := ip("netns", "add", m.name)
		if err == nil {
			m.cleanup(func() error { return ip("netns", "delete", m.name) })
			return nil
		}
		if _, taken := os.Stat("/run/netns/" + m.name); taken != nil {
			return err
		}
	}
}

// wire makes the link to the machine.
func (m *Machine) wire(ctx context.Context) error {
	outside, inside := m.addresses()
	// The name of a link has 15 bytes at most.
	near := fmt.Sprintf("gtb%d", m.number)
	for _, line := range []string{
		"link add " + near + " type veth peer name host0 netns " + m.name,
		"addr add " + outside + "/30 dev " + near,
		"link set " + near + " up",
		"-n " + m.name + " addr add " + inside + "/30 dev host0",
		"-n " + m.name + " link set host0 up",
		"-n " + m.name + " link set lo up",
		"-n " + m.name + " route add default via " + outside,
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := ip(strings.Fields(line)...); err != nil {
			return err
		}
	}
	m.near = near
	return nil
}

// forget takes away what an earlier boot has made of the network, whose
// namespace outlives the machine's power.
func (m *Machine) forget() error {
	c := exec.Command("nsenter", "--net=/run/netns/"+m.name, "chroot", m.Path("/"), "sh", "-e", "-c",
		"nft flush ruleset; ip -oneline link show type bridge | while IFS=': ' read -r _ bridge _; do ip link delete \"$bridge\"; done")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("forget the network of before: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Unplug takes the machine's network cable out.
func (m *Machine) Unplug() error { return ip("link", "set", m.near, "down") }

// Plug puts it back.
func (m *Machine) Plug() error { return ip("link", "set", m.near, "up") }

// Outside is the address at which the machine reaches the test.
func (m *Machine) Outside() string {
	outside, _ := m.addresses()
	return outside
}

func ip(args ...string) error {
	c := exec.Command("ip", args...)
	c.Env = append(os.Environ(), "LC_ALL=C")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
