package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/schema"
)

// fakeControl is a delivery ref and a place for reports.
type fakeControl struct {
	mu        sync.Mutex
	delivery  schema.Delivery
	problem   string
	lookErr   error
	looks     int
	onLook    func(n int) // before the n-th look, counted from 1
	reports   []schema.Report
	onReport  func(r *schema.Report) error
	answers   func() error
	asked     int
	dead      func() bool // the process that would ask has crashed
	revisions int
}

var errDead = errors.New("the process is dead")

func (c *fakeControl) Look(context.Context) (schema.Delivery, string, error) {
	c.mu.Lock()
	c.looks++
	n, hook := c.looks, c.onLook
	c.mu.Unlock()
	if hook != nil {
		hook(n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil && c.dead() {
		return schema.Delivery{}, "", errDead
	}
	return c.delivery, c.problem, c.lookErr
}

func (c *fakeControl) Report(_ context.Context, r *schema.Report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil && c.dead() {
		return errDead
	}
	if c.onReport != nil {
		if err := c.onReport(r); err != nil {
			return err
		}
	}
	c.reports = append(c.reports, *r)
	return nil
}

func (c *fakeControl) Answers(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.dead != nil && c.dead() {
		return errDead
	}
	if c.answers != nil {
		return c.answers()
	}
	return nil
}

// forget begins the counts again.
func (c *fakeControl) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks, c.reports = 0, nil
}

func (c *fakeControl) counts() (looks, reports int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks, len(c.reports)
}

func (c *fakeControl) last() schema.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.reports) == 0 {
		return schema.Report{}
	}
	return c.reports[len(c.reports)-1]
}

func (c *fakeControl) phases() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, r := range c.reports {
		out = append(out, string(r.Phase))
	}
	return strings.Join(out, " ")
}

// memoryDir is a folder without a real disk below where there is one: crashes
// are simulated here, and thousands of syncs would cost minutes.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gitopsd-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// device is one root with its control; agents come and go on it.
type device struct {
	t       *testing.T
	root    string
	control *fakeControl
	cfg     Config
	gen     int64
	clock   time.Time
}

func newDevice(t *testing.T) *device {
	t.Helper()
	d := &device{t: t, root: memoryDir(t), control: &fakeControl{}, clock: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	for _, dir := range []string{"/opt", "/srv"} { // direct children of "/" are never removed
		if err := os.Mkdir(d.host(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.cfg = Config{Device: "gw-1", Root: d.root, AgentVersion: "v1.0.0", Control: d.control, Now: func() time.Time { return d.clock }}
	return d
}

func (d *device) agent() *Agent {
	d.t.Helper()
	a, err := New(d.cfg)
	if err != nil {
		d.t.Fatalf("New: %v", err)
	}
	return a
}

// once is one run of a process that makes a single pass.
func (d *device) once() Result {
	d.t.Helper()
	a := d.agent()
	defer a.Close()
	res, err := a.Once(d.t.Context())
	if err != nil {
		d.t.Fatalf("Once: %v", err)
	}
	return res
}

func (d *device) wantOnce(exit int, words ...string) Result {
	d.t.Helper()
	res := d.once()
	if res.Exit != exit {
		d.t.Fatalf("exit %d, want %d: %s", res.Exit, exit, res.Summary)
	}
	for _, w := range words {
		if !strings.Contains(res.Summary, w) {
			d.t.Fatalf("summary %q does not say %q", res.Summary, w)
		}
	}
	return res
}

func (d *device) installID() string {
	d.t.Helper()
	var i install
	d.readState(installFile, &i)
	return i.ID
}

func (d *device) readState(p string, v any) bool {
	d.t.Helper()
	b, err := os.ReadFile(d.host(p))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		d.t.Fatalf("read %s: %v", p, err)
	}
	return true
}

func (d *device) host(p string) string { return filepath.Join(d.root, p) }

func (d *device) write(p, content string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.host(p)), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.host(p), []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *device) remove(p string) {
	d.t.Helper()
	if err := os.RemoveAll(d.host(p)); err != nil {
		d.t.Fatal(err)
	}
}

// content is "" for a file that is not there.
func (d *device) content(p string) string {
	b, _ := os.ReadFile(d.host(p))
	return string(b)
}

type tree = map[string]any

// publish puts a document at the delivery ref, with the next generation.
func (d *device) publish(change func(a *schema.Assignment), payloads map[string][]byte) {
	d.t.Helper()
	d.gen++
	a := &schema.Assignment{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindAssignment},
		Metadata: schema.Metadata{Name: "gw-1"}, Generation: d.gen, For: d.installID(),
	}
	change(a)
	if a.Spec != nil {
		digest, err := schema.Digest(a.Spec)
		if err != nil {
			d.t.Fatal(err)
		}
		a.Digest = digest
	}
	d.control.mu.Lock()
	d.control.revisions++
	d.control.delivery = schema.Delivery{Revision: fmt.Sprintf("%040d", d.control.revisions), Assignment: a, Payloads: payloads}
	d.control.mu.Unlock()
}

func (d *device) assign(attempt int64, version string, spec tree) {
	d.t.Helper()
	d.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = attempt, version, spec }, nil)
}

func (d *device) recall(attempt int64) {
	d.t.Helper()
	d.publish(func(a *schema.Assignment) { a.Recalled = attempt }, nil)
}

// filesSpec has files path → content, and the other parts as given.
func filesSpec(files map[string]string, more tree) tree {
	fm := tree{}
	for p, c := range files {
		fm[p] = tree{"content": c}
	}
	spec := tree{"files": fm}
	for k, v := range more {
		spec[k] = v
	}
	return spec
}

// hook is a part of a spec: one hook at one point.
func hook(point string, argv ...string) tree {
	run := make([]any, len(argv))
	for i, a := range argv {
		run[i] = a
	}
	return tree{"hooks": tree{point: tree{"it": tree{"run": run}}}}
}

var v1 = filesSpec(map[string]string{"/etc/edge/edge.conf": "version=1\n", "/etc/edge/only-1": "one\n"}, nil)

func v2(more tree) tree {
	return filesSpec(map[string]string{"/etc/edge/edge.conf": "version=2\n", "/etc/edge/only-2": "two\n", "/opt/new/deep/file": "deep\n"}, more)
}

// onV1 is a device that has applied v1 as attempt 1; /etc/edge/edge.conf was
// there before.
func onV1(t *testing.T) *device {
	t.Helper()
	return v1Image.device(t, func(t *testing.T) *device {
		d := newDevice(t)
		d.write("/etc/edge/edge.conf", "from the factory\n")
		d.wantOnce(0)
		d.assign(1, "v1.0.0", v1)
		d.wantOnce(0, "updated from v0.0.0 to v1.0.0")
		return d
	})
}

// snapshot is everything but the agent's own folders and /run.
func (d *device) snapshot() string {
	d.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(d.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := "/" + strings.TrimPrefix(strings.TrimPrefix(p, d.root), "/")
		if disk.IsTemp(e.Name()) {
			d.t.Errorf("a temporary file was left: %s", rel)
		}
		if strings.HasPrefix(rel, "/var") || strings.HasPrefix(rel, "/run") || strings.HasPrefix(rel, "/test") {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", rel, info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return b.String()
}

// crasher fails the n-th operation on the disk and all after it, as a process
// that was killed there would do no more.
type crasher struct {
	at      int
	count   int
	crashed bool
	where   string
	err     error // of the operation; nil = errDead and all after it
	once    bool  // only this one fails
}

func (c *crasher) step(op, path string) error {
	c.count++
	if c.crashed && !c.once {
		return errDead
	}
	if c.count == c.at {
		c.crashed, c.where = true, op+" "+path
		if c.err != nil {
			return c.err
		}
		return errDead
	}
	return nil
}
