package protocoltest

import (
	"context"
	"encoding/json"
	"errors"
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
	must(os.MkdirAll(m.host("/run/gitopsd"), 0o755))
	m.marks()
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
		Now: func() time.Time { return m.w.now }, Step: m.step,
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
		Direction  string
		Incomplete string
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
		if e.Outcome == schema.OutcomeOK {
			m.w.ghost.did(m.dev.id, e.Attempt)
		}
	}
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

func (a *realAgent) close() { _ = a.agent.Close() } // it writes nothing
