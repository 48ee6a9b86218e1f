package repo

import (
	"fmt"
	"testing"
)

// A writer that loses one race after the other keeps nothing of what it made
// for them, however small that is; what it makes again goes on.
func TestLostRacesLeaveNothingInMemory(t *testing.T) {
	var p pending
	always := oid{1}
	for round := range 10 * pendingRounds {
		p.put(typeBlob, always, []byte("made in every pass"))
		for i := range 3 {
			data := fmt.Appendf(nil, "of round %d: %d", round, i)
			p.put(typeBlob, hashObject(typeBlob, data), data)
		}
		p.nextRound()
	}
	if n := len(p.objs); n > 3*(pendingRounds+1)+1 {
		t.Errorf("%d objects are kept after %d lost races", n, 10*pendingRounds)
	}
	if _, _, ok := p.get(always); !ok {
		t.Error("what is made in every pass is gone")
	}
}
