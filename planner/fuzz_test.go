package planner

import (
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// fuzz goes on with a property for as long as it is let. What is fuzzed is the
// seed that a hundred fleets are drawn from: rapid's own way, from bytes,
// spends nearly all of its time on making inputs shorter that are no fleets.
func fuzz(f *testing.F, holds func(*rapid.T)) {
	const name = "rapid.seed"
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		was := flag.Lookup(name).Value.String()
		defer func() { _ = flag.Set(name, was) }()
		if err := flag.Set(name, strconv.FormatUint(seed, 10)); err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, holds)
	})
}

// FuzzProperties tries all properties on one fleet after another.
func FuzzProperties(f *testing.F) {
	fuzz(f, func(t *rapid.T) {
		in := fleet(t)
		r := Plan(in)
		for _, holds := range []property{
			checkShape, deterministic, restrictionsHold, slotsAreKept, onlyUpgrades, enoughStay, blockersNeverHelp, moreSlotsMoveMore,
			noSlotIsWasted, otherAttemptsDoNotCount, onlyDifferencesCount, replanningKeepsLimits, holdsUntilNextChange, wavesOpenInOrder,
			pilotsAreFew,
		} {
			holds(t, in, r)
		}
	})
}

func FuzzTwoPlanners(f *testing.F) { fuzz(f, twoPlanners) }

func FuzzRollouts(f *testing.F) { fuzz(f, everybodyArrives) }
