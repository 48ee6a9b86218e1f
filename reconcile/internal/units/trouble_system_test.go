//go:build system

package units

import "testing"

// TestSystemTroubleWithTheDisk is TestTroubleWithTheDisk at each operation.
func TestSystemTroubleWithTheDisk(t *testing.T) {
	eachTrouble(t, func(int) (first, stride int) { return 1, 1 })
}
