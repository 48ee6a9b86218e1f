package units

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	godbus "github.com/godbus/dbus/v5"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// What is as wanted already is taken over without a start, a link or a read.
func TestTakenOver(t *testing.T) {
	d := base(t)
	runs := d.invocations()
	d.must(&schema.Spec{
		Units: map[string]*schema.Unit{
			"own.service": unit(fmt.Sprintf(service, "own"), true, "started"), "admin.service": unit("", true, "started"), "still.service": {State: "stopped"},
		},
		Files: map[string]*schema.File{"/etc/shared.conf": file("the user's", []string{"user.service"}, nil)},
	})
	if log := d.logged(); log != "" || !maps.Equal(runs, d.invocations()) {
		t.Errorf("it was not left alone: %s", log)
	}
	bare := d.is()
	d.must(&schema.Spec{})
	if log := d.logged(); log != "" || d.is() != bare {
		t.Errorf("it was not left alone when it was dropped: %s\n%s", log, d.is())
	}
}

// Only what a changed file concerns restarts, and systemd reads its units anew
// only for unit files.
func TestWhatAChangeTouches(t *testing.T) {
	d := base(t)
	d.must(oldSpec())
	d.logged()
	for _, c := range []struct {
		what   string
		change func(s *schema.Spec)
		want   string
	}{
		{"a file that restarts", func(s *schema.Spec) { *s.Files["/etc/shared.conf"].Content = "b" }, "try-restart user.service"},
		{"a file that reloads", func(s *schema.Spec) { *s.Files["/etc/edge.conf"].Content = "b" }, "try-reload edge.service"},
		{"a file that nobody reads", func(s *schema.Spec) { s.Files["/etc/x"] = file("x", nil, nil) }, ""},
		{"a unit's own file", func(s *schema.Spec) { *s.Units["gone.service"].Content += "# b\n" }, "disable gone.service, enable gone.service, reload, restart gone.service"},
		{"a drop-in", func(s *schema.Spec) { s.Units["own.service"].DropIns = map[string]*schema.Body{"a": body("b")} }, "disable own.service, enable own.service, reload, restart own.service"},
		{"a template", func(s *schema.Spec) { *s.Units["inst@.service"].Content += "# b\n" }, "disable inst@a.service, enable inst@a.service, reload, restart inst@a.service"},
		{"a unit without a state that does not run", func(s *schema.Spec) { *s.Units["socketed.service"].Content += "# b\n" }, "reload"},
		{"a unit that ends by itself", func(s *schema.Spec) { *s.Units["once.service"].Content += "# b\n" }, "reload, restart once.service"},
		{"a file that restarts a unit which does not run", func(s *schema.Spec) { s.Files["/etc/y"] = file("y", []string{"still.service", "nobody.service"}, nil) }, ""},
		{"a unit file that is none of the spec's units", func(s *schema.Spec) { s.Files["/etc/systemd/system/raw.service"] = file("y", nil, nil) }, "reload"},
	} {
		next := oldSpec()
		c.change(next)
		d.must(next)
		if got := d.logged(); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		d.must(oldSpec())
		d.logged()
	}
	if !strings.Contains(fmt.Sprint(d.warned), "nobody.service: no such unit is here") {
		t.Errorf("a unit that is not there is not told of: %s", d.warned)
	}
}

// A file that is dropped changes its readers too, and so does one that a
// rollback takes away.
func TestDroppedFileRestartsItsReaders(t *testing.T) {
	d := base(t)
	s := oldSpec()
	s.Files["/etc/more"] = file("more", []string{"user.service"}, nil)
	d.must(s)
	d.logged()
	d.must(oldSpec())
	if got := d.logged(); got != "try-restart user.service" {
		t.Errorf("systemd was told: %q", got)
	}
}

// Drift is repaired, told in words, and what has run once does not run again.
func TestDrift(t *testing.T) {
	d := base(t)
	s := oldSpec()
	s.Units["quiet.service"] = &schema.Unit{State: "masked"}
	d.must(s)
	want := d.is()
	look := func() (states []schema.UnitState, drift []Difference) {
		t.Helper()
		root, _, c := d.open()
		defer root.Close()
		states, drift, err := c.Look(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return states, drift
	}
	states, drift := look()
	if len(drift) > 0 || len(states) != len(s.Units) || states[1] != (schema.UnitState{Name: "edge.service", State: "active", Enabled: true}) {
		t.Errorf("it is %v, differing in %v", states, drift)
	}
	for _, c := range []struct {
		what, why string
		harm      func()
	}{
		{"edge.service", "it is failed instead of started", func() { d.systemd.runs["edge.service"].active = "failed" }},
		{"edge.service", "it is disabled, enabled should be true", func() { delete(d.systemd.links, "edge.service") }},
		{"admin.service", "it is active instead of stopped", func() { d.systemd.runs["admin.service"].active = "active" }},
		{"admin.service", "it is enabled, enabled should be false", func() { d.systemd.links["admin.service"] = true }},
		{"quiet.service", "it is not masked", func() { os.Remove(d.dir + "/etc/systemd/system/quiet.service") }},
	} {
		c.harm()
		if _, drift := look(); len(drift) != 1 || drift[0] != (Difference{Unit: c.what, Why: c.why}) {
			t.Errorf("the drift is %v, want %s: %s", drift, c.what, c.why)
		}
		d.must(s)
		if got := d.is(); got != want {
			t.Errorf("%s: %s: it is\n%s\nwant\n%s", c.what, c.why, got, want)
		}
	}
	// A file that was changed may be what the unit runs with by now.
	d.put("etc/edge.conf", "by hand")
	d.logged()
	d.must(s)
	if got := d.logged(); got != "try-reload edge.service" {
		t.Errorf("a repaired file: %q", got)
	}
}

// A unit that does not start fails with its journal; the old one comes back.
func TestUnitThatDoesNotStart(t *testing.T) {
	d := base(t)
	d.must(oldSpec())
	want := d.is()
	next := oldSpec()
	*next.Units["edge.service"].Content = "[Service]\nExecStart=/bin/false\n" + wanted
	err := d.apply(next)
	f := failure.From(err)
	if f.Element != "edge.service" || f.Class != schema.ClassPermanent || !strings.Contains(f.Error(), "journal of edge.service") {
		t.Errorf("the failure is %v (%+v)", err, f)
	}
	d.must(oldSpec())
	if got := d.is(); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

// What a unit does itself is the release's fault: to try it again would cost the
// good units another restart, and change nothing.
func TestWhatIsTriedAgain(t *testing.T) {
	said := func(word string) error { return godbus.Error{Name: "org.freedesktop.systemd1." + word} }
	for _, c := range []struct {
		job  JobError
		want schema.FailureClass
	}{
		{JobError{Job: Job{Verb: Start}, Result: "failed"}, schema.ClassPermanent},
		{JobError{Job: Job{Verb: TryRestart}, Result: "timeout"}, schema.ClassPermanent},
		{JobError{Job: Job{Verb: Restart}, Result: "dependency"}, schema.ClassPermanent},
		{JobError{Job: Job{Verb: Start}, Result: "assert"}, schema.ClassPermanent},
		{JobError{Job: Job{Verb: TryReload}, Result: "failed"}, schema.ClassPermanent},
		{JobError{Job: Job{Verb: Start}, Err: said("BadUnitSetting")}, schema.ClassPermanent},
		{JobError{Job: Job{Verb: TryRestart}, Err: said("OnlyByDependency")}, schema.ClassPermanent},
		{JobError{Job: Job{Verb: Start}, Err: said("JobTypeNotApplicable")}, schema.ClassPermanent},

		{JobError{Job: Job{Verb: Start}, Result: "canceled"}, schema.ClassRetryable},
		{JobError{Job: Job{Verb: Start}, Limit: longestJob}, schema.ClassRetryable},
		{JobError{Job: Job{Verb: Start}, Err: said("TransactionIsDestructive")}, schema.ClassRetryable},
		{JobError{Job: Job{Verb: Start}, Err: ErrNoSystemd}, schema.ClassRetryable},
		{JobError{Job: Job{Verb: Stop}, Result: "failed"}, schema.ClassRetryable},
	} {
		if got := c.job.class(); got != c.want {
			t.Errorf("%s: %s, want %s", c.job.Error(), got, c.want)
		}
	}
}

// Where systemd does not answer, nothing is lost of what comes due.
func TestSystemdThatDoesNotAnswer(t *testing.T) {
	d := base(t)
	d.must(oldSpec())
	next := oldSpec()
	*next.Files["/etc/shared.conf"].Content = "b"
	next = whole(next)
	root, fc, uc := d.open()
	uc.connect = func(context.Context) (Manager, error) { return nil, ErrNoSystemd }
	if err := uc.Prepare(t.Context(), next, fc.Ahead(next, nil), false); !errors.Is(err, ErrNoSystemd) {
		t.Errorf("preparing: %v", err)
	}
	d.put("etc/shared.conf", "b")
	if _, err := uc.Finish(t.Context(), next, false); !errors.Is(err, ErrNoSystemd) {
		t.Errorf("finishing: %v", err)
	}
	root.Close()
	d.logged()
	d.must(next)
	if got := d.logged(); got != "try-restart user.service" {
		t.Errorf("later, systemd was told: %q", got)
	}
}

// A unit that ran and does not stay with a changed file is a failure like one
// that was started.
func TestRestartedUnitThatDoesNotStay(t *testing.T) {
	d := base(t)
	spec := &schema.Spec{Files: map[string]*schema.File{"/etc/shared.conf": file("ends soon", []string{"user.service"}, nil)}}
	err := d.apply(spec)
	if f := failure.From(err); f == nil || f.Element != "user.service" || f.Class != schema.ClassPermanent || !strings.Contains(err.Error(), "it failed after its start") {
		t.Errorf("got %v", err)
	}
}

// One that somebody masks while the files are written is put right whole.
func TestMaskedInBetween(t *testing.T) {
	d := base(t)
	spec := whole(&schema.Spec{Units: map[string]*schema.Unit{"still.service": unit("", true, "started")}})
	d.put("usr/lib/systemd/system/still.service", fmt.Sprintf(service, "still")+wanted)
	root, fc, c := d.open()
	defer root.Close()
	if err := c.Prepare(t.Context(), spec, fc.Ahead(spec, nil), false); err != nil {
		t.Fatal(err)
	}
	if err := d.systemd.Mask(t.Context(), "still.service"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Finish(t.Context(), spec, false); err != nil {
		t.Error(err)
	}
	if is := d.is(); !strings.Contains(is, "enabled still.service") || !strings.Contains(is, "runs still.service") {
		t.Errorf("the device is\n%s", is)
	}
}

// With a reboot due nothing is started, and after it all that is wanted runs.
func TestRebootDue(t *testing.T) {
	d := base(t)
	d.must(oldSpec())
	d.logged()
	s := newSpec()
	s.Units["later.service"] = unit("", true, "started") // comes with the new system
	root, fc, uc := d.open()
	s = whole(s)
	if err := uc.Prepare(t.Context(), s, fc.Ahead(s, nil), false); err != nil {
		t.Fatal(err)
	}
	if _, err := fc.Apply(t.Context(), s, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := uc.Finish(t.Context(), s, true); err != nil {
		t.Fatal(err)
	}
	root.Close()
	if log := d.logged(); strings.Contains(log, "start ") {
		t.Errorf("something was started: %s", log)
	}
	d.put("usr/lib/systemd/system/later.service", fmt.Sprintf(service, "later"))
	d.systemd.boot()
	runs := d.invocations()
	d.must(s)
	for name, id := range runs {
		if now := d.systemd.runs[name].invocation; now != id {
			t.Errorf("%s was started again after the boot", name)
		}
	}
	if got := d.systemd.runs["later.service"]; got == nil || got.active != "active" {
		t.Errorf("what came with the new system is %+v", got)
	}
}

// A record that cannot be read is set aside, and the units are taken over as
// they are.
func TestDamagedRecord(t *testing.T) {
	d := base(t)
	d.must(oldSpec())
	d.put("var/lib/gitopsd/units.json", `{"format":1,"before":{"edge.service":null}}`)
	d.logged()
	d.must(oldSpec())
	if log := d.logged(); log != "" || !strings.Contains(fmt.Sprint(d.warned), "set aside") {
		t.Errorf("systemd was told %q, warned was %s", log, d.warned)
	}
}

func TestUnitOf(t *testing.T) {
	for p, want := range map[string]string{
		"/etc/systemd/system/a.service": "a.service", "/etc/systemd/system/a.service.d/x.conf": "a.service", "/etc/systemd/system/a@.service.d/x.conf": "a@.service",
		"/etc/systemd/system/a.service.d": "", "/etc/systemd/system/a.service.d/x": "", "/etc/systemd/system/multi-user.target.wants/a.service": "", "/etc/a.service": "",
	} {
		if got := unitOf(p); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
	if !concerns("a@.service", "a@b.service") || concerns("a@.service", "b@a.service") || concerns("a.service", "a@b.service") || !concerns("a.service", "a.service") {
		t.Error("files are taken for those of other units")
	}
}

func TestInstallSection(t *testing.T) {
	for text, want := range map[string]bool{
		"[Service]\nExecStart=/x\n\n[Install]\nWantedBy=multi-user.target\n": true, "[Install]\n# a\n\nDefaultInstance=b\nAlias = c.service\n": true,
		"[Install]\n": false, "[Install]\nAlso=b.socket\n": false, "[Install]\nWantedBy=\n": false, "[Install]\n[Service]\nWantedBy=x\n": false,
		"[Service]\nWantedBy=x\n": false, "": false, "# [Install]\nWantedBy=x\n": false,
	} {
		if got := installs("a.service", map[string]string{filePath("a.service"): text}); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// Programs that come with the update are not missed in the new units.
func TestRunnable(t *testing.T) {
	text := "[Service]\nExecStart=-/opt/edge/run --a\nExecStartPre=/opt/other x\n# ExecStart=/opt/edge/run\n"
	got := runnable(text, func(p string) bool { return p == "/opt/edge/run" })
	if want := "[Service]\nExecStart=-/bin/sh --a\nExecStartPre=/opt/other x\n# ExecStart=/opt/edge/run\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What validation would have found is refused by the device too.
func TestImpossibleUnits(t *testing.T) {
	d := base(t)
	root, _, c := d.open()
	defer root.Close()
	for want, s := range map[string]*schema.Spec{
		"":              {Units: map[string]*schema.Unit{"still.service": unit("", true, "started"), "dbus.service": {DropIns: map[string]*schema.Body{"a": body("x")}}, "new.service": unit("x", false, "")}},
		"protected":     {Units: map[string]*schema.Unit{"gitopsd-agent.service": {State: "masked"}}},
		"it is prote":   {Units: map[string]*schema.Unit{"dbus.service": {State: "stopped"}}},
		"stands on it":  {Units: map[string]*schema.Unit{"var-lib-gitopsd.mount": unit("[Mount]\n", false, "started")}},
		"a path":        {Units: map[string]*schema.Unit{"../x.service": unit("x", false, "")}},
		"is protecte":   {Files: map[string]*schema.File{"/etc/a": file("x", []string{"gitopsd-agent.service"}, nil)}},
		"never runs":    {Files: map[string]*schema.File{"/etc/a": file("x", nil, []string{"a@.service"})}},
		"no file":       {Units: map[string]*schema.Unit{"nowhere.service": {State: "started"}}},
		"[Install]":     {Units: map[string]*schema.Unit{"new.service": unit("[Service]\nExecStart=/bin/true\n", true, "")}},
		"for a drop-in": {Units: map[string]*schema.Unit{"still.service": {DropIns: map[string]*schema.Body{"../../../x": body("x")}}}},
		"stands where":  {Units: map[string]*schema.Unit{"own.service": {State: "masked"}}},
	} {
		if _, there := s.Units["dbus.service"]; there {
			d.put("usr/lib/systemd/system/dbus.service", "x")
		}
		err := c.Check(t.Context(), s, Plan{})
		switch {
		case want == "" && err == nil:
		case want != "" && err != nil && strings.Contains(err.Error(), want) && failure.From(err).Class == schema.ClassPermanent:
		default:
			t.Errorf("%v: %v, want %q", s, err, want)
		}
	}
}

// A new system brings what is not here yet.
func TestUnitsOfANewSystem(t *testing.T) {
	d := base(t)
	root, _, c := d.open()
	defer root.Close()
	s := &schema.Spec{Units: map[string]*schema.Unit{"later.service": {State: "started"}, "a@1.service": {State: "started"}, "a@.service": unit("x", false, "")}}
	if err := c.Check(t.Context(), s, Plan{}); err == nil || strings.Contains(err.Error(), "a@1") {
		t.Errorf("without one: %v", err)
	}
	if err := c.Check(t.Context(), s, Plan{NewOS: true}); err != nil {
		t.Errorf("with one: %v", err)
	}
}

// Links that do not last are no more than links: what systemd cannot enable is
// not tried again with each comparison.
func TestEnabledAs(t *testing.T) {
	for word, want := range map[string][2]bool{ // as disabled, as enabled
		"enabled": {false, true}, "disabled": {true, false}, "enabled-runtime": {false, false}, "linked": {true, false}, "static": {true, false}, "": {true, false},
	} {
		s := &State{File: word}
		if got := [2]bool{enabledAs(false, s), enabledAs(true, s)}; got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}
