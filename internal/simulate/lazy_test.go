package simulate

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whoever asks the planner in every sweep sees nothing else than whoever asks
// only when the answer can be another one.
func TestAskingLessChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Input: drawInput(t, true), Assume: drawAssumptions(t), Unknown: rapid.Bool().Draw(t, "unknown")}
		if err := cfg.setDefaults(); err != nil {
			t.Fatal(err)
		}
		var got [2]*Simulation
		for i, eager := range []bool{true, false} {
			r := newRun(cfg)
			r.eager = eager
			if err := r.run(context.Background()); err != nil {
				t.Fatal(err)
			}
			s := r.simulation()
			for j := range s.Devices {
				// The last words may be of another moment.
				s.Devices[j].Code, s.Devices[j].Reason = "", ""
			}
			got[i] = s
		}
		if diff := cmp.Diff(got[0].Devices, got[1].Devices); diff != "" {
			t.Fatalf("asked in every sweep (-), asked when needed (+):\n%s", diff)
		}
		if diff := cmp.Diff(got[0].Sites, got[1].Sites); diff != "" {
			t.Fatalf("asked in every sweep (-), asked when needed (+):\n%s", diff)
		}
		if got[0].InFlight != got[1].InFlight || got[0].Working != got[1].Working {
			t.Fatalf("peaks %+v %+v, not %+v %+v", got[1].InFlight, got[1].Working, got[0].InFlight, got[0].Working)
		}
	})
}
