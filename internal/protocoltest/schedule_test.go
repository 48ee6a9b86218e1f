package protocoltest

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// schedule is everything that a run depends on.
type schedule struct {
	setup [setupBytes]byte
	steps []step

	lags read // where replicas are behind; not among its bytes
}

const setupBytes = 8

// step lets whoever runs go on for gap scheduling points, and then does op.
type step struct{ gap, op, arg byte }

const stepBytes = 3

// Lengths of schedules that are made from a seed: long enough for an attempt
// to be assigned, recalled, and overtaken by the next; most counterexamples
// have fewer events.
const (
	minSteps = 6
	maxSteps = 26
)

// fromSeed makes a schedule. Real says that its devices run the real agent.
func fromSeed(seed uint64, real bool) schedule {
	rng := rand.New(rand.NewPCG(seed, 0x67697470))
	var s schedule
	for i := range s.setup {
		s.setup[i] = byte(rng.Uint32())
	}
	s.setReal(real)
	for range minSteps + rng.IntN(maxSteps-minSteps) {
		s.steps = append(s.steps, step{byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())})
	}
	return s
}

// fromBytes makes a schedule of what a fuzzer invents; whatever is left over
// is left out.
func fromBytes(data []byte) schedule {
	var s schedule
	n := copy(s.setup[:], data)
	for data = data[n:]; len(data) >= stepBytes; data = data[stepBytes:] {
		s.steps = append(s.steps, step{data[0], data[1], data[2]})
	}
	return s
}

func (s schedule) bytes() []byte {
	out := slices.Clone(s.setup[:])
	for _, st := range s.steps {
		out = append(out, st.gap, st.op, st.arg)
	}
	return out
}

func (s schedule) String() string { return hex.EncodeToString(s.bytes()) }

// parseSeed reads a line of testdata/seeds: a schedule in hex; what follows a
// '#' says what it is about.
func parseSeed(line string) (s schedule, ok bool, err error) {
	text, _, _ := strings.Cut(line, "#")
	text = strings.TrimSpace(text)
	if text == "" {
		return s, false, nil
	}
	data, err := hex.DecodeString(text)
	if err != nil {
		return s, false, fmt.Errorf("a schedule in hex is wanted: %w", err)
	}
	return fromBytes(data), true, nil
}

// points is how many scheduling points the gap lasts. Most are short, so that
// several things happen within one pass; some let whole passes go by.
func (s step) points() int {
	switch g := int(s.gap); {
	case g < 190:
		return g % 8
	case g < 245:
		return 8 + (g-190)/3
	default:
		return 30 + (g-245)*3
	}
}

// shrink drops steps while the schedule still fails in the same way, within a
// number of tries.
func shrink(s schedule, tries int, fails func(schedule) bool) schedule {
	for size := len(s.steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(s.steps) && tries > 0; {
			shorter := s
			shorter.steps = slices.Delete(slices.Clone(s.steps), at, at+size)
			tries--
			if fails(shorter) {
				s = shorter
			} else {
				at += size
			}
		}
	}
	for i := range s.steps {
		if tries--; tries <= 0 || s.steps[i].gap == 0 {
			continue
		}
		calmer := s
		calmer.steps = slices.Clone(s.steps)
		calmer.steps[i].gap = 0
		if fails(calmer) {
			s = calmer
		}
	}
	return s
}
