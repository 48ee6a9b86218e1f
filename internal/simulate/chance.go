package simulate

import (
	"math"
	"time"
)

// What is left to chance. The numbers keep apart what is drawn for one device.
const (
	drawPoll    = iota + 1 // when it looks for assignments
	drawPace               // how long an attempt takes
	drawFailure            // whether an attempt fails
	drawRefusal            // whether it refuses
	drawUp                 // how long it is online
	drawDown               // how long it is away
	drawAway               // whether it is away at the beginning
)

// chance draws numbers for one device. What comes out depends on the seed, the
// device and what is asked for alone, so that it is the same whatever else
// happens, and the same in a run with other assumptions.
type chance uint64

// newChance hashes the id (FNV-1a) into the seed.
func newChance(seed uint64, id string) chance {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * prime
	}
	return chance(scramble(h ^ scramble(seed)))
}

// scramble is the finalizer of SplitMix64: every bit of the result depends on
// every bit of the number.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// draw gives the nth number of a kind, from 0 to below 1.
func (c chance) draw(what int, n int64) float64 {
	x := scramble(uint64(c) ^ scramble(uint64(what)<<56^uint64(n)))
	return float64(x>>11) / (1 << 53)
}

// hits says whether something with this rate happens.
func (c chance) hits(rate float64, what int, n int64) bool {
	return rate > 0 && c.draw(what, n) < rate
}

// lasts draws a length of time with this mean, as that of things which end at
// any moment with equal chance.
func (c chance) lasts(mean time.Duration, what int, n int64) time.Duration {
	// Nothing lasts longer than twenty times its mean; that happens once in
	// 500 million draws, and then it is no trouble.
	const most = 20
	return time.Duration(float64(mean) * min(most, -math.Log(1-c.draw(what, n))))
}
