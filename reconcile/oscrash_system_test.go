//go:build system

package reconcile

import (
	"fmt"
	"testing"
)

// TestSystemCrashAtEveryStepOfAnOSUpdate has the power go at each step, of the
// device and of the agent alone: on either side of what the driver does, and
// with the operator's programs run as such.
func TestSystemCrashAtEveryStepOfAnOSUpdate(t *testing.T) {
	states := osStates(t)
	for _, e := range osEnds() {
		for _, programs := range []bool{false, true} {
			if programs && e.open {
				continue // it has a driver of its own
			}
			t.Run(fmt.Sprintf("%s, programs=%t", e.name, programs), func(t *testing.T) {
				t.Parallel()
				for n := 1; e.crash(t, states, n, programs, false) && e.crash(t, states, n, programs, true); n++ {
				}
			})
		}
	}
}

// TestSystemTroubleWithTheDiskInAnOSUpdate is TestTroubleWithTheDiskInAnOSUpdate
// at each operation.
func TestSystemTroubleWithTheDiskInAnOSUpdate(t *testing.T) {
	states := osStates(t)
	for kind := range troubles {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, e := range osEnds() {
				for _, lasting := range []bool{false, true} {
					e.meetAll(t, states, kind, lasting, 1, 1)
				}
			}
		})
	}
}
