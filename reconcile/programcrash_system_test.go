//go:build system

package reconcile

import "testing"

// TestSystemTroubleWhileAProgramTakesOver is TestTroubleWhileAProgramTakesOver
// at each operation; with a bad disk at every other.
func TestSystemTroubleWhileAProgramTakesOver(t *testing.T) {
	for _, e := range programEnds {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			stride := 1
			if e.err != nil {
				stride = 2
			}
			for n := 1; e.meet(t, n); n += stride {
			}
		})
	}
}
