package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/gitopsd/gitopsd/schema"
)

const killRoot = "GITOPSD_TEST_KILL_ROOT"

// TestMain lets the test program be the agent of a root, to be killed.
func TestMain(m *testing.M) {
	root := os.Getenv(killRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	a, err := New(Config{Device: "gw-1", Root: root, AgentVersion: "v1.0.0", Control: fileControl(root + ".delivery")})
	if err == nil {
		_, err = a.Once(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fileControl is a delivery in a file; it takes every report.
type fileControl string

func (c fileControl) Look(context.Context) (d schema.Delivery, problem string, err error) {
	b, err := os.ReadFile(string(c))
	if err != nil {
		return d, "", err
	}
	return d, "", json.Unmarshal(b, &d)
}

func (c fileControl) Report(context.Context, *schema.Report) error { return nil }
func (c fileControl) Answers(context.Context) error                { return nil }

// unlocked waits until nobody has the lock: a program that the dead agent was
// about to start holds it until it becomes that program.
func (d *device) unlocked() {
	d.t.Helper()
	l := flock.New(d.host(stateDir + "/" + lockName))
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	if _, err := l.TryLockContext(ctx, time.Millisecond); err != nil {
		d.t.Fatal(err)
	}
	if err := l.Unlock(); err != nil {
		d.t.Fatal(err)
	}
}

// A real process gets a real SIGKILL at a random moment, again and again,
// while releases come and go.
func TestKilledAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	d := onV1(t)
	states := map[string]string{"v1.0.0": d.snapshot()}
	deliver := func() {
		b, err := json.Marshal(d.control.delivery)
		if err == nil {
			err = os.WriteFile(d.root+".delivery", b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Remove(d.root + ".delivery") })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		t.Fatal(err)
	}
	killed := 0
	for attempt := int64(2); attempt < 12; attempt++ {
		version, spec := fmt.Sprintf("v1.%d.0", attempt), v2(hook("afterUpdating", "/bin/true"))
		bad := attempt%3 == 0
		if attempt%2 == 0 {
			spec = filesSpec(map[string]string{"/etc/edge/edge.conf": "even\n", "/srv/even/x": version}, nil)
		}
		if bad {
			spec["hooks"] = hook("afterUpdating", "/bin/false")["hooks"]
		}
		d.assign(attempt, version, spec)
		deliver()
		for range 4 {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), killRoot+"="+d.root)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rnd.IntN(40_000)) * time.Microsecond)
			if cmd.Process.Kill() == nil && cmd.Wait() != nil {
				killed++
			}
		}
		d.unlocked()
		d.settle()
		var cur record
		d.readState(currentFile, &cur)
		if !bad {
			if cur.Version != version {
				t.Fatalf("attempt %d: the device ended on %s", attempt, cur.Version)
			}
			for p, want := range spec["files"].(tree) {
				if got := d.content(p); got != want.(tree)["content"] {
					t.Fatalf("attempt %d: %s has %q", attempt, p, got)
				}
			}
			states[version] = d.snapshot()
		}
		if got := d.snapshot(); got != states[cur.Version] || d.content(desiredFile) != "" {
			t.Fatalf("attempt %d: current is %s, but the device is\n%s\nwant\n%s", attempt, cur.Version, got, states[cur.Version])
		}
	}
	t.Logf("%d processes were killed", killed)
	if killed == 0 {
		t.Error("no process was killed: nothing was tested")
	}
}
