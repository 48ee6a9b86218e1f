//go:build system && linux

package machine

import (
	"context"
	"net"
	"testing"
)

// TestSystemMachine boots, reboots from inside, cuts the power, and boots again.
func TestSystemMachine(t *testing.T) {
	m := New(t)
	m.Boot()
	m.Run("podman", "info")
	m.Run("sh", "-c", "echo kept > /var/kept")
	first, _ := m.state()
	m.Run("systemctl", "--no-block", "reboot")
	second := m.AwaitBoot(first)
	m.PowerCut()
	m.Boot()
	third, _ := m.state()
	if first == second || second == third {
		t.Errorf("the boot ids are %s, %s, %s", first, second, third)
	}
	if got := m.Run("cat", "/var/kept"); got != "kept\n" {
		t.Errorf("what was written is %q", got)
	}
	listen, err := net.Listen("tcp", net.JoinHostPort(m.Outside(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listen.Close()
	_, port, err := net.SplitHostPort(listen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	reached := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
		defer cancel()
		_, err := m.Try(ctx, "timeout", "2", "bash", "-c", "</dev/tcp/"+m.Outside()+"/"+port)
		return err == nil
	}
	if !reached() {
		t.Error("the test is not reached")
	}
	if err := m.Unplug(); err != nil {
		t.Fatal(err)
	}
	if reached() {
		t.Error("the test is reached without a network")
	}
	if err := m.Plug(); err != nil {
		t.Fatal(err)
	}
	for try := 0; !reached(); try++ { // neighbours are looked for again only after a while
		if try == tries {
			t.Fatal("the test is not reached after the cable is back")
		}
	}
}

// tries of two seconds each are far more than the network needs.
const tries = 15
