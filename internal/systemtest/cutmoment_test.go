//go:build system

package systemtest

import (
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// cutLook is how often the disk is looked at for a moment: a step of an update
// takes a few milliseconds.
const cutLook = 300 * time.Microsecond

// moment is when the power goes: when something is seen on the device, or it
// asks the git server for something.
type moment struct {
	name  string
	image bool   // the release brings another operating system
	agent string // and this agent
	bad   bool   // and is not good
	asks  string // a step of order; "" = seen decides
	seen  func(m *marked) bool
	then  []func(m *marked) bool // the power goes again, in the same update
}

// marked is the device and the release that is on its way.
type marked struct {
	*box
	asked          *moments
	version, image string
	program        string // the sum of its agent; "" = the one of the package
	pid            string // of the agent before it
}

// newMarked follows what a device asks the git server for.
func newMarked(b *box) *marked {
	m := &marked{box: b, asked: &moments{}}
	b.git.Intercept(m.asked.intercept)
	return m
}

// reads is what stands in a file of the device; "" = there is none.
func (m *marked) reads(file string) string {
	data, err := os.ReadFile(m.Path(file))
	if err != nil {
		return ""
	}
	return string(data)
}

// state says whether one of the agent's files has some text.
func (m *marked) state(file, text string) bool {
	return strings.Contains(strings.ReplaceAll(m.reads("/var/lib/gitopsd/"+file), " ", ""), text)
}

// What the agent's files say of the release.
const (
	goesForward  = `"direction":"forward"`
	goesBack     = `"direction":"back"`
	rebootAsked  = `"asks":1`
	rebootIsBack = `"rollback":true`
	confirms     = `"deadline":`
)

// hasState says that one of the agent's files has some text.
func hasState(file, text string) func(*marked) bool {
	return func(m *marked) bool { return m.state(file, text) }
}

// hasRun says that a hook of the release has written its version to a file.
func hasRun(file string) func(*marked) bool {
	return func(m *marked) bool { return m.reads(file) == m.version+"\n" }
}

// isCurrent says that the release is on disk as one that succeeded.
func (m *marked) isCurrent() bool { return m.state("current.json", m.version) }

// hasEnded says that its end is on disk, of a bad one before the way back.
func (m *marked) hasEnded() bool { return m.state("attempts.json", `"version":"`+m.version+`"`) }

// inTurn gives each of these once, in an order of chance, and then anew.
func inTurn(rnd *rand.Rand, all []moment) func() *moment {
	var turn []int
	return func() *moment {
		if len(turn) == 0 {
			turn = rnd.Perm(len(all))
		}
		mo := &all[turn[0]]
		turn = turn[1:]
		return mo
	}
}

// cut takes the power at a moment of the update that push begins; of a request
// that is it, taken says whether the server does it.
func (m *marked) cut(mo *moment, taken bool, push func()) {
	m.f.Helper()
	come := make(chan struct{})
	if mo.asks != "" {
		m.asked.at(mo.asks, taken, func() { close(come) })
	}
	push()
	m.f.Logf("%s: the power goes when %s", m.version, mo.name)
	m.await(mo, func(m *marked) bool {
		select {
		case <-come:
			return true
		default:
			return mo.seen != nil && mo.seen(m)
		}
	})
	m.PowerCut()
	m.Boot()
	for _, seen := range mo.then {
		m.await(mo, seen)
		m.PowerCut()
		m.Boot()
	}
}

// await returns when something is seen.
func (m *marked) await(mo *moment, seen func(*marked) bool) {
	m.f.Helper()
	for end := time.Now().Add(waitLimit); !seen(m); time.Sleep(cutLook) {
		if time.Now().After(end) {
			m.f.Fatalf("%s has not come to where %s\n%s", m.version, mo.name, m.log())
		}
	}
}

// holds ends the test if something is not as it has to be after a cut.
func (m *marked) holds(mo *moment, err error) {
	m.f.Helper()
	if err != nil {
		m.f.Fatalf("power cut when %s, in %s: %v\n%s", mo.name, m.version, err, m.log())
	}
}
