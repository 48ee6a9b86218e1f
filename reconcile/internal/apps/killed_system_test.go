//go:build system

package apps

import "testing"

func TestSystemKilledAnywhere(t *testing.T) { killedAt(t, 1) }

func TestSystemComposeKilledAnywhere(t *testing.T) {
	killedBetween(t, mixedOne, mixedTwo, "compose-keep.service", 1)
}

// TestSystemTroubleWithTheDisk is TestTroubleWithTheDisk at every fifth operation,
// so that all of them meet something.
func TestSystemTroubleWithTheDisk(t *testing.T) {
	eachTrouble(t, func(i int) (first, stride int) { return 1 + i%5, 5 })
}
