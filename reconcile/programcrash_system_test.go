//go:build system

package reconcile

import "testing"

// TestSystemTroubleWhileAProgramTakesOver is TestTroubleWhileAProgramTakesOver
// at each operation.
func TestSystemTroubleWhileAProgramTakesOver(t *testing.T) {
	for _, e := range programEnds {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			for n := 1; e.meet(t, n); n++ {
			}
		})
	}
}
