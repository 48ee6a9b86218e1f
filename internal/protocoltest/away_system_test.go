//go:build system

package protocoltest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	awayDays = 3
	// awayStep is as long as nobody is taken for silent.
	awayStep = 25 * time.Minute
	// backWithin is in how many steps a device that is back is current: it has
	// to say what it is, and another one may have the slot.
	backWithin = 6
)

// TestSystemThreeDaysAway takes the network from a device at several moments, for
// three days in which two releases come out. What it runs is kept as its spec
// says, the fleet goes on without it, and when it is back it is given the
// newest release and none that it has missed.
func TestSystemThreeDaysAway(t *testing.T) {
	for _, c := range []struct {
		name string
		// leave takes the network away, at the latest in the present step.
		leave func(w *world, dev *device)
		// attempts of the release that it missed, by their outcomes.
		attempts string
		// halts says that nobody else is given that release either.
		halts bool
	}{
		{"while it was idle", func(w *world, dev *device) {
			dev.offline = true
			w.steps(int(silence/awayStep) + 1) // until that is known
		}, "", false},
		{"when it was told", func(w *world, dev *device) {
			w.releaseNext()
			w.whole(w.daemons[0].actor)
			dev.offline = true
			w.steps(1)
		}, "unreached", false},
		{"before it began", func(w *world, dev *device) {
			w.releaseNext()
			cutAt(dev, "read", 2)
			w.steps(1)
		}, "unreached", false},
		{"before it was confirmed", func(w *world, dev *device) {
			w.releaseNext()
			cutAt(dev, "answers", 1)
			w.steps(1)
		}, "failed", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s schedule
				s.setReal(true)
				var trace strings.Builder
				w := newWorld(memoryDir(t), s, &trace)
				defer w.end()
				missing, other := w.devices[0], w.devices[1]
				w.steps(4)
				wantOn(t, missing, versions[0])
				c.leave(w, missing)
				for day := range awayDays {
					if day < 2 && w.target != versions[day+1] {
						w.releaseNext()
					}
					if err := os.WriteFile(filepath.Join(missing.root(), "etc/version"), []byte("by hand"), 0o644); err != nil {
						t.Fatal(err)
					}
					for range 24 * time.Hour / awayStep {
						w.steps(1)
						wantOn(t, missing, versions[0])
					}
					if day == 0 && c.halts {
						wantOn(t, other, versions[0])
					} else {
						wantOn(t, other, w.target)
					}
				}
				missing.offline = false
				w.steps(backWithin)
				wantOn(t, missing, versions[2])
				var got []string
				for _, a := range w.ghost.status[missing.id].Attempts {
					if a.Version == versions[1] {
						got = append(got, string(a.Outcome))
					}
				}
				if strings.Join(got, " ") != c.attempts {
					t.Errorf("the attempts of the release that it missed ended as %q, want %q", got, c.attempts)
				}
				if w.failed() {
					t.Errorf("%s", w.ghost.violation)
				}
				if t.Failed() {
					t.Log(trace.String())
				}
			})
		})
	}
}

// cutAt has a device lose its network at its nth exchange of a kind from now.
func cutAt(dev *device, op string, n int) {
	point := dev.client.Before
	dev.client.Before = func(is, what string) error {
		if is == op {
			if n--; n == 0 {
				dev.offline = true
			}
		}
		return point(is, what)
	}
}

// steps lets time pass, and everybody do what is due.
func (w *world) steps(n int) {
	for range n {
		w.now = w.now.Add(awayStep)
		for _, a := range w.actors {
			w.whole(a)
		}
	}
}

// releaseNext makes the next version the target.
func (w *world) releaseNext() {
	for i, v := range versions[:len(versions)-1] {
		if v == w.target {
			w.target = versions[i+1]
			break
		}
	}
	w.pushPolicy("the target is " + w.target)
}

func (d *device) root() string { return d.machine.(*realMachine).root }

// wantOn wants the files of a version below the root of a device, and of no
// other one.
func wantOn(t *testing.T, d *device, version string) {
	t.Helper()
	for _, v := range versions {
		_, err := os.Stat(filepath.Join(d.root(), "etc", v))
		if (err == nil) != (v == version) {
			t.Fatalf("%s, which should be on %s: %s is there: %t", d.id, version, v, err == nil)
		}
	}
	want := fmt.Sprintf("%s %s\n", version, strings.TrimPrefix(d.id, "gw-"))
	if got, err := os.ReadFile(filepath.Join(d.root(), "etc/version")); err != nil || string(got) != want {
		t.Fatalf("%s has %q (%v), want %q", d.id, got, err, want)
	}
}
