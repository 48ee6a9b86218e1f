//go:build system

package reconcile

import (
	"fmt"
	"syscall"
	"testing"
)

// TestSystemTroubleWithTheDisk is TestTroubleWithTheDisk at each operation.
func TestSystemTroubleWithTheDisk(t *testing.T) {
	eachTrouble(t, func(string, bool, int) (first, stride int) { return 1, 1 })
}

func TestSystemObserve_TroubleWithTheDisk(t *testing.T) { observeInTrouble(t, 1) }

func TestSystemResetInTrouble(t *testing.T) { resetInTrouble(t, 1) }

// TestSystemUnitsInTrouble is TestUnitsInTrouble at every seventh operation, which
// is another one of each with every kind of trouble.
func TestSystemUnitsInTrouble(t *testing.T) { unitsInTrouble(t, ways, 7) }

// laterStride leaves out most of the moments at which the power goes after a
// sync that failed; the seven is prime to the operations of a written file.
const laterStride = 7

// TestSystemSyncFailsAndPowerGoes has each sync fail once, and the power go
// some operations later, with everything lost that no sync made last.
func TestSystemSyncFailsAndPowerGoes(t *testing.T) {
	states := map[string]string{}
	states["v1.0.0"], states["v1.1.0"] = stateOf(t, 2, v2(nil))
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			for n, more := 1, true; more; n++ {
				for m := 1 + n%laterStride; ; m += laterStride {
					w, dead := syncFails(t, way, n, m)
					if more = w.count >= n; !dead || w.hit == "" {
						break
					}
					w.cut(t)
					w.d.settle()
					w.check(t, states, way.want, fmt.Sprintf("power cut %d operations later", m))
				}
			}
		})
	}
}

// syncFails has the n-th operation fail if it is a sync, and the agent die m
// operations after it.
func syncFails(t *testing.T, way way, n, m int) (w *trouble, dead bool) {
	t.Helper()
	d := way.device(t)
	w = &trouble{d: d, at: n, fault: func(op, p string) error {
		if op == "sync" || op == "syncdir" {
			return syscall.EIO
		}
		return nil
	}}
	d.control.dead = func() bool { return dead }
	d.cfg.Step = func(op, p string) error {
		if dead = dead || w.hit != "" && w.count == n+m-1; dead {
			return errDead
		}
		return w.step(op, p)
	}
	if a, err := New(d.cfg); err == nil {
		for range 5 {
			if res, err := a.Once(t.Context()); err != nil || res.idle || dead || (w.count >= n && w.hit == "") {
				break
			}
		}
		a.Close()
	}
	d.cfg.Step, d.control.dead = nil, nil
	return w, dead
}
