package units

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake is a systemd that keeps what of the real one's ways matters here: unit
// files count as they were read last; a unit runs with what it was started
// with; links and masks last over a boot, and nothing else does.
type fake struct {
	t     *testing.T
	root  string
	read  map[string]string // unit → its files, as read; "" = none
	links map[string]bool
	runs  map[string]*run
	n     int      // of the last invocation
	log   []string // what was done
	step  func() error
}

// run is one unit since its first start in this boot.
type run struct {
	active, result string
	with           string // unit and configuration files at its start
	invocation     string
	ran            bool
}

var errCut = errors.New("the agent is dead")

// did is a step before and after each change: the agent may die at either.
func (f *fake) did(what string, change func() error) error {
	if err := f.step(); err != nil {
		return err
	}
	f.log = append(f.log, what)
	if err := change(); err != nil {
		return err
	}
	return f.step()
}

func (f *fake) path(p string) string { return filepath.Join(f.root, p) }

// file is where a unit's file is, or "".
func (f *fake) file(name string) string {
	for _, dir := range []string{folder, "/usr/lib/systemd/system"} {
		for _, n := range []string{name, templateOf(name)} {
			if _, err := os.Lstat(f.path(dir + "/" + n)); err == nil && n != "" {
				return dir + "/" + n
			}
		}
	}
	return ""
}

func (f *fake) masked(name string) bool {
	to, err := os.Readlink(f.path(f.file(name)))
	return err == nil && to == "/dev/null"
}

// now is what the unit's files say now.
func (f *fake) now(name string) string {
	at := f.file(name)
	if at == "" || f.masked(name) {
		return ""
	}
	text, err := os.ReadFile(f.path(at))
	if err != nil {
		f.t.Error(err)
	}
	for _, dir := range []string{name, templateOf(name)} {
		more, _ := filepath.Glob(f.path(folder + "/" + dir + ".d/*.conf"))
		for _, p := range more {
			data, err := os.ReadFile(p)
			if err != nil {
				f.t.Error(err)
			}
			text = append(text, data...)
		}
	}
	return string(text)
}

// load is what systemd knows of the unit: it reads a file once.
func (f *fake) load(name string) string {
	if f.read[name] == "" {
		f.read[name] = f.now(name)
	}
	return f.read[name]
}

func (f *fake) run(name string) *run {
	if f.runs[name] == nil {
		f.runs[name] = &run{active: "inactive"}
	}
	return f.runs[name]
}

func (f *fake) States(_ context.Context, names ...string) ([]State, error) {
	all := make([]State, len(names))
	for i, name := range names {
		text, r, at := f.load(name), f.run(name), f.file(name)
		s := State{Name: name, ID: name, Load: "loaded", Active: r.active, Fragment: at, Invocation: r.invocation, Result: r.result, Ran: r.ran,
			NeedsReload: text != f.now(name), Oneshot: strings.Contains(text, "Type=oneshot"), Unmet: strings.Contains(text, "Unmet")}
		if r.active == "active" {
			s.Sub = "running"
		}
		if strings.Contains(r.with, "ends soon") {
			r.active, r.result = "failed", "exit-code" // at the next look
		}
		switch {
		case f.masked(name):
			s.Load, s.File = "masked", "masked"
		case at == "":
			s.Load = "not-found"
		case f.links[name]:
			s.File = "enabled"
		case strings.Contains(f.now(name), "[Install]"):
			s.File = "disabled"
		default:
			s.File = "static"
		}
		all[i] = s
	}
	return all, nil
}

func (f *fake) Reload(context.Context) error {
	return f.did("reload", func() error { f.read = map[string]string{}; return nil })
}

func (f *fake) Enable(_ context.Context, name string) error {
	return f.did("enable "+name, func() error {
		if f.file(name) == "" {
			return fmt.Errorf("unit %s does not exist", name)
		}
		if strings.Contains(f.now(name), "[Install]") {
			f.links[name] = true
		}
		return nil
	})
}

func (f *fake) Disable(_ context.Context, name string) error {
	return f.did("disable "+name, func() error { delete(f.links, name); return nil })
}

func (f *fake) Mask(_ context.Context, name string) error {
	return f.did("mask "+name, func() error { return os.Symlink("/dev/null", f.path(folder+"/"+name)) })
}

func (f *fake) Unmask(_ context.Context, name string, _ bool) error {
	return f.did("unmask "+name, func() error {
		if err := os.Remove(f.path(folder + "/" + name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func (f *fake) ResetFailed(_ context.Context, name string) error {
	return f.did("forgive "+name, func() error { f.run(name).active = "inactive"; return nil })
}

func (f *fake) Close() {}

func (f *fake) Do(_ context.Context, jobs ...Job) error {
	var errs []error
	for _, j := range jobs {
		r := f.run(j.Unit)
		if (j.Verb == TryRestart || j.Verb == TryReload) && r.active != "active" {
			continue
		}
		err := f.did(string(j.Verb)+" "+j.Unit, func() error {
			switch {
			case j.Verb == Stop:
				r.active = "inactive"
				return nil
			case j.Verb == TryReload:
				r.with = f.load(j.Unit) + f.config(j.Unit)
				return nil
			case j.Verb == Start && r.active == "active":
				return nil
			}
			return f.start(j)
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// config are the files that a unit reads when it starts.
func (f *fake) config(name string) string {
	all := ""
	for _, line := range strings.Split(f.read[name], "\n") {
		if p, ok := strings.CutPrefix(line, "Environment=CONFIG="); ok {
			data, _ := os.ReadFile(f.path(p))
			all += p + ":" + string(data)
		}
	}
	return all
}

func (f *fake) start(j Job) error {
	r, text := f.run(j.Unit), f.load(j.Unit)
	switch {
	case f.masked(j.Unit):
		return &JobError{Job: j, Err: errors.New("it is masked")}
	case text == "":
		return &JobError{Job: j, Err: errors.New("Unit " + j.Unit + " not found.")}
	}
	f.n++
	*r = run{active: "active", result: "success", with: text + f.config(j.Unit), invocation: fmt.Sprint(f.n), ran: true}
	switch {
	case strings.Contains(text, "ExecStart=/bin/false"):
		r.active, r.result = "failed", "exit-code"
		return &JobError{Job: j, Result: "failed"}
	case strings.Contains(text, "Type=oneshot"):
		r.active = "inactive"
	}
	return nil
}

// boot is a power cut and what comes after: what is enabled starts.
func (f *fake) boot() {
	f.read, f.runs = map[string]string{}, map[string]*run{}
	f.step = func() error { return nil }
	for name := range f.links {
		if f.file(name) != "" && !f.masked(name) {
			_ = f.start(Job{Start, name}) // its state is what is looked at
		}
	}
	f.log = nil
}
