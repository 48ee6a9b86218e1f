package apps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// manager is the world's systemd.
type manager struct{ w *world }

func (m *manager) Close() {}

func (m *manager) Reload(context.Context) error {
	if err := m.w.step("reload"); err != nil {
		return err
	}
	m.w.loaded = map[string]string{}
	generated := filepath.Join(m.w.dir, "run/systemd/generator")
	if err := errors.Join(os.RemoveAll(generated), os.MkdirAll(generated, 0o755)); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, p := range m.w.quadlets() {
		name := filepath.Base(p)
		kind := filepath.Ext(name)
		if seen[name] {
			continue // podman reads the first
		}
		seen[name] = true
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		more, _ := filepath.Glob(p + ".d/*.conf")
		for _, at := range more {
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			text = append(text, data...)
		}
		unit := strings.TrimSuffix(name, kind)
		if kind == ".network" {
			unit += "-network"
		}
		m.w.loaded[unit+".service"] = string(text)
		if err := os.WriteFile(filepath.Join(generated, unit+".service"), []byte("[Unit]\nSourcePath="+p+"\n"), 0o644); err != nil {
			return err
		}
	}
	return m.w.loadCompose()
}

// quadlets are the files that podman's generator finds, in its order.
func (w *world) quadlets() []string {
	var all []string
	for _, at := range []string{"etc/containers/systemd/*.*", "etc/containers/systemd/*/*"} {
		found, _ := filepath.Glob(filepath.Join(w.dir, at))
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(p string) bool { return isFolder(p) || !schema.IsQuadlet(filepath.Base(p)) })
}

func (m *manager) States(_ context.Context, names ...string) ([]units.State, error) {
	var all []units.State
	for _, n := range names {
		s := units.State{Name: n, Load: "not-found", Active: "inactive", Sub: "dead"}
		if _, ok := m.w.loaded[n]; ok {
			s.Load, s.Fragment = "loaded", "/run/systemd/generator/"+n
			if projectOf(n) != "" {
				s.Fragment = unitFolder + n
			}
		}
		if at := unitFolder + n; s.Load == "not-found" {
			if _, err := os.Stat(filepath.Join(m.w.dir, at)); err == nil {
				s.Load, s.Fragment = "loaded", at
			}
		}
		if text, ok := m.w.running[n]; ok {
			s.Active, s.Sub, s.Invocation = "active", "running", text
			m.w.looks[n]++
			s.Restarts = m.w.flapping[text] * m.w.looks[n]
		}
		if m.w.starting[n] > 0 {
			m.w.starting[n]--
			s.Active, s.Sub = "activating", "start"
		}
		if m.w.failed[n] {
			s.Active, s.Result = "failed", "exit-code"
		}
		all = append(all, s)
	}
	return all, nil
}

func (m *manager) Do(_ context.Context, jobs ...units.Job) error {
	var errs []error
	for _, j := range jobs {
		if err := m.w.step(string(j.Verb) + " " + j.Unit); err != nil {
			return err
		}
		text, loaded := m.w.loaded[j.Unit]
		if project := projectOf(j.Unit); project != "" && (loaded || j.Verb == units.Stop) {
			m.w.doCompose(j.Verb, j.Unit, project, loaded)
			continue
		}
		switch {
		case j.Verb == units.Stop:
			if m.w.starting[j.Unit] > 0 {
				m.w.log = append(m.w.log, "stopped while it started: "+j.Unit)
			}
			delete(m.w.running, j.Unit)
			delete(m.w.failed, j.Unit)
		case !loaded:
			errs = append(errs, &units.JobError{Job: j, Err: errors.New("unit not found")})
		case m.w.lacking[j.Unit] > 0:
			m.w.lacking[j.Unit]--
			errs = append(errs, &units.JobError{Job: j, Result: "dependency"})
		case strings.Contains(text, m.w.broken):
			m.w.failed[j.Unit] = true
			errs = append(errs, &units.JobError{Job: j, Result: "failed"})
		case m.w.running[j.Unit] == "":
			m.w.starts[j.Unit]++
			m.w.running[j.Unit] = text
			for net := range m.w.loaded {
				if stem, ok := strings.CutSuffix(net, "-network.service"); ok {
					m.w.running[net], m.w.networks["systemd-"+stem] = m.w.loaded[net], true
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (m *manager) ResetFailed(_ context.Context, name string) error {
	delete(m.w.failed, name)
	return nil
}

func (m *manager) Enable(context.Context, string) error       { return errors.New("not faked") }
func (m *manager) Disable(context.Context, string) error      { return errors.New("not faked") }
func (m *manager) Mask(context.Context, string) error         { return errors.New("not faked") }
func (m *manager) Unmask(context.Context, string, bool) error { return errors.New("not faked") }
