package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
)

// fewUnits is a systemd of which only that much is there: unit files with their
// drop-ins count as they were read last, a unit runs with what it was started
// with, and of a boot only links last.
type fewUnits struct {
	d     *device
	read  map[string]string
	runs  map[string]string // text that it was started with
	links map[string]bool
	n     int // starts so far
	ids   map[string]string
}

func (s *fewUnits) text(name string) string {
	text := s.d.content("/etc/systemd/system/" + name)
	drops, _ := filepath.Glob(s.d.host("/etc/systemd/system/" + name + ".d/*.conf"))
	for _, p := range drops {
		text += s.d.content(strings.TrimPrefix(p, s.d.root))
	}
	return text
}

func (s *fewUnits) States(_ context.Context, names ...string) ([]units.State, error) {
	var all []units.State
	for _, name := range names {
		if s.read[name] == "" {
			s.read[name] = s.text(name)
		}
		one := units.State{Name: name, ID: name, Load: "loaded", Active: "inactive", NeedsReload: s.read[name] != s.text(name), Invocation: s.ids[name]}
		if s.read[name] == "" {
			one.Load = "not-found"
		} else if one.File, one.Fragment = "disabled", "/etc/systemd/system/"+name; s.links[name] {
			one.File = "enabled"
		}
		if s.runs[name] != "" {
			one.Active, one.Sub = "active", "running"
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *fewUnits) Do(_ context.Context, jobs ...units.Job) error {
	var errs []error
	for _, j := range jobs {
		switch runs := s.runs[j.Unit] != ""; {
		case j.Verb == units.Stop:
			delete(s.runs, j.Unit)
		case j.Verb == units.Start && runs, (j.Verb == units.TryRestart || j.Verb == units.TryReload) && !runs:
		case s.read[j.Unit] == "":
			errs = append(errs, &units.JobError{Job: j, Err: errors.New("there is no such unit")})
		default:
			s.n++
			s.runs[j.Unit], s.ids[j.Unit] = s.read[j.Unit], fmt.Sprint(s.n)
		}
	}
	return errors.Join(errs...)
}

func (s *fewUnits) Reload(context.Context) error                 { clear(s.read); return nil }
func (s *fewUnits) Enable(_ context.Context, name string) error  { s.links[name] = true; return nil }
func (s *fewUnits) Disable(_ context.Context, name string) error { delete(s.links, name); return nil }
func (s *fewUnits) Mask(context.Context, string) error           { return errors.New("not there") }
func (s *fewUnits) Unmask(context.Context, string, bool) error   { return errors.New("not there") }
func (s *fewUnits) ResetFailed(context.Context, string) error    { return nil }
func (s *fewUnits) Close()                                       {}

// boot is what comes after a power cut.
func (s *fewUnits) boot() {
	s.read, s.runs, s.ids = map[string]string{}, map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.links)) {
		if s.read[name] = s.text(name); s.read[name] != "" {
			_ = s.Do(context.Background(), units.Job{Verb: units.Start, Unit: name})
		}
	}
}

// is tells how the units are.
func (s *fewUnits) is() string {
	return fmt.Sprintf("enabled %v\nrunning %q\n", slices.Sorted(maps.Keys(s.links)), s.runs)
}

func service(text string) tree {
	return tree{"content": "[Service]\nExecStart=/opt/" + text + "\n[Install]\nWantedBy=multi-user.target\n", "enabled": true, "state": "started"}
}

// unitsBetween is a device on v1 with units that has v2 assigned, which on the way
// of a rollback cuts it off.
func unitsBetween(t *testing.T, way string) (*device, *fewUnits) {
	d := newDevice(t)
	s := &fewUnits{d: d, links: map[string]bool{}}
	s.boot()
	d.cfg.Systemd = func(context.Context) (units.Manager, error) { return s, nil }
	d.write("/etc/edge/edge.conf", "from the factory\n")
	d.wantOnce(0)
	one := maps.Clone(v1)
	one["units"] = tree{"edge.service": service("edge 1"), "old.service": service("old")}
	d.assign(1, "v1.0.0", one)
	d.wantOnce(0, "updated")
	edge := service("edge 2")
	edge["dropIns"] = tree{"10-more": tree{"content": "[Service]\nNice=5\n"}}
	if way == "rollback" {
		d.control.answers = func() error {
			if d.content("/etc/edge/only-2") != "" {
				return errors.New("cut")
			}
			return nil
		}
	}
	d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "1ms"}, "units": tree{"edge.service": edge, "new.service": service("new")}}))
	return d, s
}

// Trouble with the disk in an update of units, and on the way back from it: the
// running agent recovers by itself, and so does the next one after a power cut. It
// is here and there; the system test does more.
func TestUnitsInTrouble(t *testing.T) { unitsInTrouble(t, ways[1:], 197) }

func unitsInTrouble(t *testing.T, ways []way, stride int) {
	t.Setenv("PATH", t.TempDir()) // nothing of this machine is to look at the units
	states := map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		d, s := unitsBetween(t, "update")
		states["v1.0.0"] = d.snapshot() + s.is()
		d.wantOnce(0, "updated")
		states["v1.1.0"] = d.snapshot() + s.is()
	})
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			eachKind(t, stride, func(t *testing.T, kind string, lasting bool, n int) (more bool) {
				synctest.Test(t, func(t *testing.T) {
					d, s := unitsBetween(t, way.name)
					w := &trouble{d: d, fault: troubles[kind](d), at: n, lasting: lasting}
					check := func(when string) {
						t.Helper()
						if got := d.snapshot() + s.is(); got != states[way.want] {
							t.Errorf("%s, operation %d (%s): the device is\n%s\nwant\n%s\nlast report %+v", when, n, w.hit, got, states[way.want], d.control.last())
						}
						if left := strays(d); len(left) > 0 {
							t.Errorf("%s, operation %d (%s): %v stayed", when, n, w.hit, left)
						}
					}
					d.cfg.Step = w.step
					if a, err := New(d.cfg); err == nil {
						_, err := a.Once(t.Context())
						w.over = true
						for i := 0; i < 5 && (i == 0 || err == nil); i++ {
							var res Result
							if res, err = a.Once(t.Context()); res.idle {
								break
							}
						}
						a.Close()
						check("running on")
						w.cut(t)
						s.boot()
					}
					d.cfg.Step, w.over = nil, true
					d.settle()
					check("after a power cut")
					more = w.count >= n
				})
				return more
			})
		})
	}
}
