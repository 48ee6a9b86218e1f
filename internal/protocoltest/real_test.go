package protocoltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

const realState = "/var/lib/gitopsd"

// realMachine is a folder that the real agent takes for a device.
type realMachine struct {
	w    *world
	dev  *device
	root string

	booted, staged string // operating systems
	boots          int
}

func newReal(w *world, dev *device) *realMachine {
	m := &realMachine{w: w, dev: dev, root: filepath.Join(w.dir, dev.id)}
	m.reinstall()
	return m
}

// must is for what only a broken test machine refuses.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (m *realMachine) host(p string) string { return filepath.Join(m.root, p) }

func (m *realMachine) reinstall() {
	must(os.RemoveAll(m.root))
	must(os.MkdirAll(m.host("/etc"), 0o755))
	m.booted, m.staged = firstOS, ""
	m.emptyRun()
}

// emptyRun leaves of /run what a boot finds there.
func (m *realMachine) emptyRun() {
	must(os.RemoveAll(m.host("/run")))
	must(os.MkdirAll(m.host("/run/gitopsd"), 0o755))
	m.marks()
}

// boot leaves the disk as it is. What was staged is booted once, or not at all.
func (m *realMachine) boot(old bool) {
	m.boots++
	if m.staged != "" {
		if !old {
			m.booted = m.staged
		}
		m.staged = ""
	}
	m.emptyRun()
}

// images is what updates the machine's operating system.
type images struct{ m *realMachine }

func (i images) Name() string                           { return "command" }
func (i images) Booted(context.Context) (string, error) { return i.m.booted, nil }
func (i images) Staged(context.Context) (string, error) { return i.m.staged, nil }
func (i images) BootID() (string, error) {
	return fmt.Sprintf("%s-boot-%d", i.m.dev.id, i.m.boots), nil
}

func (i images) Stage(_ context.Context, image string) error { return i.stage(image) }
func (i images) Undo(context.Context, string) error          { return i.stage("") }
func (i images) Has(context.Context, string) (bool, error)   { return true, nil } // it cannot tell

func (i images) Fetch(_ context.Context, image string) (string, error) { return image, nil }

func (i images) stage(image string) error {
	if err := i.m.dev.point("stages " + image); err != nil {
		return err
	}
	i.m.staged = image
	return nil
}

func (i images) Reboot(context.Context) error {
	if err := i.m.dev.point("asks for a reboot"); err != nil {
		return err
	}
	i.m.dev.goingDown = true
	return nil
}

// corrupt cuts a state file short, or fills it with what is none.
func (m *realMachine) corrupt(n int) string {
	name := []string{"install.json", "attempts.json", "current.json", "desired.json", "pending.json"}[n%5]
	file := m.host(filepath.Join(realState, name))
	data, err := os.ReadFile(file)
	if err != nil {
		return name + " (which is not there)"
	}
	switch n / 5 % 3 {
	case 0:
		data = data[:len(data)/2]
	case 1:
		data = nil
	case 2:
		must(os.Remove(file))
		return name
	}
	must(os.WriteFile(file, data, 0o600))
	return name
}

// start makes an agent, as the next start of its service does.
func (m *realMachine) start(ctl control) (program, error) {
	a, err := reconcile.New(reconcile.Config{
		Device: m.dev.id, Root: m.root, AgentVersion: "v0.1.0", Control: ctl, Heartbeat: heartbeat,
		Now: func() time.Time { return m.w.now }, Step: m.step, Driver: images{m},
	})
	if err != nil {
		return nil, err
	}
	m.marks()
	return &realAgent{m: m, agent: a, since: m.w.now}, nil
}

// marks writes the files by which a device is told that it is busy or held.
func (m *realMachine) marks() {
	m.mark("/run/gitopsd/busy", m.dev.busy)
	if _, err := os.Stat(m.host(realState)); err == nil {
		m.mark(realState+"/hold", m.dev.held)
	}
}

func (m *realMachine) mark(p string, on bool) {
	if on {
		must(os.WriteFile(m.host(p), nil, 0o644))
	} else if err := os.Remove(m.host(p)); err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
}

// step is asked before every change of the disk. It is where the ghost learns
// what the device does: by its record, which is written before the first
// change, and by the changes themselves.
func (m *realMachine) step(op, path string) error {
	ours := strings.HasPrefix(path, realState)
	if g := m.w.ghost; strings.HasPrefix(path, "/etc") && g.device(m.dev.id).observing && g.device(m.dev.id).acting == 0 {
		g.violate("observes: %s does %s %s, and only observes", m.dev.id, op, path)
	}
	if !ours || op != "chmod" && op != "write" && op != "create" {
		m.w.logf("%s: %s %s …", m.dev.id, op, path)
	}
	if err := m.w.tick(m.dev.actor); err != nil {
		return err
	}
	if op == "rename" && (!ours || path == realState+"/attempts.json") {
		if err := m.w.point(m.dev.actor); err != nil {
			return err
		}
	}
	if op == "syncdir" && path == realState {
		m.observe() // a record has just been put in its place
	}
	if !ours && op == "rename" && strings.HasPrefix(path, "/etc/"+versions[1]) && m.w.uncertain == failsAgain {
		return syscall.EIO
	}
	return nil
}

// observe reads what the device's record says it is doing.
func (m *realMachine) observe() {
	var att struct {
		Generation int64
		Direction  string
		Incomplete string
		Observes   int64
		Work       struct{ Attempt int64 }
		Ended      []struct {
			Attempt int64
			Outcome schema.Outcome
		}
	}
	var ins struct{ ID string }
	var des struct {
		Attempt int64
		Version string
	}
	if !m.read("attempts.json", &att) {
		return
	}
	m.read("install.json", &ins)
	m.read("desired.json", &des)
	for _, e := range att.Ended {
		switch e.Outcome {
		case schema.OutcomeOK:
			m.w.ghost.did(m.dev.id, e.Attempt)
		case schema.OutcomeObserved:
			m.w.ghost.compared(m.dev.id, e.Attempt)
		}
	}
	m.w.ghost.observes(m.dev.id, att.Observes != 0)
	m.w.ghost.knows(m.dev.id, ins.ID, att.Generation)
	m.w.ghost.acts(m.dev.id, ins.ID, att.Work.Attempt, des.Version, att.Direction == forward || att.Direction == back && att.Incomplete == "")
}

func (m *realMachine) read(name string, v any) bool {
	data, err := os.ReadFile(m.host(filepath.Join(realState, name)))
	return err == nil && json.Unmarshal(data, v) == nil
}

// realAgent is one start of the agent.
type realAgent struct {
	m     *realMachine
	agent *reconcile.Agent
	since time.Time
}

// pass is one run. An agent that is started for each pass always reports; one
// that stays would do so with every heartbeat.
func (a *realAgent) pass(ctx context.Context) error {
	_, err := a.agent.Once(ctx)
	a.m.observe()
	if a.m.w.now.Sub(a.since) >= heartbeat {
		a.m.dev.drop()
	}
	return err
}

// close writes nothing. What was written last was perhaps not looked at yet.
func (a *realAgent) close() {
	a.m.observe()
	_ = a.agent.Close()
}
