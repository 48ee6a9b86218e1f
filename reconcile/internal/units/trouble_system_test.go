//go:build system

package units

import "testing"

// TestSystemTroubleWithTheDisk is TestTroubleWithTheDisk at every third operation,
// so that all of them meet something.
func TestSystemTroubleWithTheDisk(t *testing.T) {
	eachTrouble(t, func(i int) (first, stride int) { return 1 + i%3, 3 })
}
