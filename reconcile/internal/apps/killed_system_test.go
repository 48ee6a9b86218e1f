//go:build system

package apps

import "testing"

func TestSystemKilledAnywhere(t *testing.T) { killedAt(t, 1) }

func TestSystemComposeKilledAnywhere(t *testing.T) {
	killedBetween(t, mixedOne, mixedTwo, "compose-keep.service", 1)
}
