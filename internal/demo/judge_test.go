package demo

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// A demonstration that could not fail would show nothing: these tests break
// each promise and look whether it is noticed.

func withAttempts(source string, attempts map[string][]schema.Attempt) view {
	v := view{commit: "c", fleet: &schema.FleetStatus{SourceCommit: source}, devices: map[string]*schema.DeviceStatus{}}
	for id, list := range attempts {
		v.devices[id] = &schema.DeviceStatus{Attempts: list}
	}
	return v
}

func TestTooManyInFlightIsNoticed(t *testing.T) {
	s := &show{repo: &fleetRepo{limits: map[string]int{"merge": 1}}}
	open := []schema.Attempt{{Policy: policy, Version: bad}}
	_, problems := s.mostInFlight([]view{withAttempts("merge", map[string][]schema.Attempt{"a": open})})
	if len(problems) != 0 {
		t.Errorf("one of one allowed is found wrong: %v", problems)
	}
	worst, problems := s.mostInFlight([]view{withAttempts("merge", map[string][]schema.Attempt{"a": open, "b": open})})
	if len(problems) != 1 || !strings.Contains(worst, "2 of 1 allowed") {
		t.Errorf("two of one allowed: %q, %v", worst, problems)
	}
}

func TestEveryStartIsCounted(t *testing.T) {
	s := &show{devices: []*device{{id: "a"}, {id: "b"}, {id: "c"}, {id: "d"}}}
	now := time.Now()
	history := []view{
		withAttempts("m", map[string][]schema.Attempt{"a": {{Version: bad, StartedAt: &now}}}), // forgotten by the next commit
		withAttempts("m", map[string][]schema.Attempt{
			"b": {{Version: bad, Outcome: schema.OutcomeFailed}}, // its start was never seen
			"c": {{Version: bad, Outcome: schema.OutcomeDeferred}},
			"d": {{Version: good, StartedAt: &now}},
		}),
	}
	if got, want := s.started(history, bad), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

func TestChangedFileIsNoticed(t *testing.T) {
	d := &device{id: "a", root: t.TempDir()}
	file := filepath.Join(d.root, "etc/edge/edge.conf")
	for path, data := range map[string]string{file: "x", filepath.Join(d.root, "var/lib/gitopsd/current.json"): "{}"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func() error
		want   string
	}{
		"content": {func() error { return os.WriteFile(file, []byte("y"), 0o644) }, "etc/edge/edge.conf changed"},
		"mode":    {func() error { return os.Chmod(file, 0o600) }, "etc/edge/edge.conf changed"},
		"new":     {func() error { return os.WriteFile(file+".new", nil, 0o644) }, "etc/edge/edge.conf.new is new"},
		"gone":    {func() error { return os.Remove(file + ".new") }, "etc/edge/edge.conf.new is gone"},
		"the agent's own": {func() error {
			return os.WriteFile(filepath.Join(d.root, "var/lib/gitopsd/current.json"), []byte("{...}"), 0o644)
		}, ""},
	} {
		if name == "gone" {
			if err := os.WriteFile(file+".new", nil, 0o644); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = os.Remove(file + ".new") // of another case
		}
		before, err := d.tree()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		after, err := d.tree()
		if err != nil {
			t.Fatal(err)
		}
		if got := difference(before, after); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A rollout that waits for nobody but the held and the unpacked has ended
// well, and says so.
func TestTitleEndsWell(t *testing.T) {
	r := schema.RolloutStatus{Policy: "gateways", Version: fix, State: "waiting", Total: 11, Done: 9, Waiting: 1}
	if got, want := titleOf(r, map[string]int{"held": 1, "never seen": 1}), "gateways → v1.2.1: done on 9 of 11, 1 held, 1 never seen"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.Done, r.Waiting, r.State, r.Attention = 1, 7, "halted", 1
	if got, want := titleOf(r, map[string]int{"held": 1, "never seen": 1}),
		"gateways → v1.2.1: halted, 1 of 11 done, 0 moving, 7 waiting, 2 left alone, 1 in need of attention"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
