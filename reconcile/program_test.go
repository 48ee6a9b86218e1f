package reconcile

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// A new program takes over, is kept once it has confirmed, and goes when a
// release says nothing of one.
func TestProgramTakesOver(t *testing.T) {
	p := onPackage(t)
	p.assignProgram(2, "v1.1.0", "v1.5.0")
	p.rests()
	p.is("v1.1.0", "v1.5.0")
	p.outcome(2, schema.OutcomeOK)
	if kept := KeptPayloads(p.root); !slices.Equal(kept, []string{"sha256:" + sumOf(fakeProgram("v1.5.0"))}) {
		t.Errorf("payloads %v need not be delivered again", kept)
	}
	if got := strings.Join(p.started, " "); got != "v1.0.0 v1.5.0 v1.5.0" {
		t.Errorf("started %s", got)
	}
	p.assignProgram(3, "v1.2.0", "v1.6.0")
	p.rests()
	p.is("v1.2.0", "v1.6.0")
	p.assign(4, "v1.3.0", v2(nil))
	p.rests()
	p.is("v1.3.0", "v1.0.0")
	p.outcome(4, schema.OutcomeOK)
	if p.content(programsFile) != "" {
		t.Errorf("there stays %s", p.content(programsFile))
	}
}

// The program of the package is what a release wants: nothing is fetched.
func TestProgramOfThePackageWillDo(t *testing.T) {
	p := onPackage(t)
	p.packaged = "v1.5.0"
	p.assignProgram(2, "v1.1.0", "v1.5.0")
	p.rests()
	p.is("v1.1.0", "v1.5.0")
	if _, err := os.Stat(p.host(programsDir)); err == nil {
		t.Error("a program was fetched that runs already")
	}
	p.packaged = "v1.6.0" // by the package manager
	p.boot()
	if r := p.control.last(); len(r.Drift) != 1 || r.Drift[0] != "agent" || !strings.Contains(r.DriftReason, "v1.6.0 runs instead of v1.5.0") {
		t.Errorf("the report is %+v", r)
	}
}

// Each way in which a new program is no good ends on the old one.
func TestProgramIsNoGood(t *testing.T) {
	for _, from := range []string{"v1.0.0", "v1.4.0"} { // of the package, and kept
		for name, c := range map[string]struct {
			bad   func(p *programmed)
			words string
		}{
			"crashes":        {func(p *programmed) { p.crashes["v1.5.0"] = true }, "it was started 3 times, and did not prove itself; journalctl -u gitopsd-agent"},
			"reaches nobody": {func(p *programmed) { p.mute["v1.5.0"] = true }, "no answer within"},
			"is not heard":   {func(p *programmed) { p.unheard["v1.5.0"] = true }, "no answer within 1ms: its report was not accepted"},
			"cannot read":    {func(p *programmed) { p.blind["v1.5.0"] = true }, "no answer within"},
		} {
			t.Run(name+" from "+from, func(t *testing.T) {
				p := onPackage(t)
				attempt, release := int64(2), "v1.0.0"
				if from == "v1.4.0" {
					p.assignProgram(attempt, "v1.0.1", from)
					p.rests()
					attempt, release = attempt+1, "v1.0.1"
				}
				before := p.snapshot()
				c.bad(p)
				p.started = nil
				p.assignProgram(attempt, "v1.1.0", "v1.5.0")
				p.rests()
				p.is(release, from)
				p.outcome(attempt, schema.OutcomeFailed, c.words)
				if got := p.snapshot(); got != before {
					t.Errorf("the device is\n%s\nwant\n%s", got, before)
				}
				if n := strings.Count(strings.Join(p.started, " "), "v1.5.0"); (name == "crashes" && n != maxStarts) || (name != "crashes" && n != 1) {
					t.Errorf("it was started %d times: %v", n, p.started)
				}
			})
		}
	}
}

// Whoever looks at the disk sees what is on trial.
func TestProgramOnTrialIsShown(t *testing.T) {
	p := onPackage(t)
	p.crashes["v1.5.0"] = true
	p.assignProgram(2, "v1.1.0", "v1.5.0")
	p.boot()
	p.boot()
	v, err := OpenView(Config{Root: p.root})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if s := v.Standing(); s.Trial != "v1.5.0, start 2 of 3" || len(s.Trouble) > 0 {
		t.Errorf("it is shown as %q with %v", s.Trial, s.Trouble)
	}
}

// To go back to the program of the package is an update like any other.
func TestProgramOfThePackageIsNoGood(t *testing.T) {
	p := onPackage(t)
	p.assignProgram(2, "v1.1.0", "v1.5.0")
	p.rests()
	p.mute["v1.0.0"] = true
	p.assign(3, "v1.2.0", v2(tree{"confirm": tree{"within": "1ms"}}))
	p.rests()
	p.is("v1.1.0", "v1.5.0")
	p.outcome(3, schema.OutcomeFailed, "no answer within")
	// a new agent has to reach control whatever a spec thinks of that
	p.mute["v1.0.0"] = false
	p.assign(4, "v1.2.0", v2(tree{"confirm": "off"}))
	asked := p.control.asked
	p.rests()
	p.is("v1.2.0", "v1.0.0")
	if p.control.asked == asked {
		t.Error("nobody asked whether control answers")
	}
}

// What was fetched is looked at before anything changes.
func TestProgramIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		words   string
	}{
		"another version": {string(fakeProgram("v1.4.9")), "the program says that it is v1.4.9"},
		"no gitopsd":      {"#!/bin/sh\necho hello world\n", `the program is no gitopsd: it says "hello world"`},
		"no program":      {"hello", "the program is none for this processor"},
		"cannot work":     {"#!/bin/sh\ntest \"$1\" = --version && echo gitopsd v1.5.0 || { echo unknown flag; exit 2; }\n", "unknown flag \\(it cannot work here: .* ended with exit code 2\\)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := onPackage(t)
			before := p.snapshot()
			digest := "sha256:" + sumOf([]byte(c.program))
			p.publish(func(a *schema.Assignment) {
				a.Attempt, a.Version, a.Spec = 2, "v1.1.0", v2(tree{"agent": tree{"version": "v1.5.0", "payload": digest}})
			}, map[string][]byte{digest: []byte(c.program)})
			p.rests()
			p.is("v1.0.0", "v1.0.0")
			p.outcome(2, schema.OutcomeRefused)
			if r := p.control.last(); !regexp.MustCompile(c.words).MatchString(r.Reason) {
				t.Errorf("the reason is %q, want %q", r.Reason, c.words)
			}
			if p.snapshot() != before {
				t.Error("something has changed")
			}
		})
	}
}

// A record that nobody can read, and a program that is damaged or gone, leave
// the device with the program of its package; what can be mended is.
func TestProgramAndItsRecordAreDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(p *programmed)
		mended bool
	}{
		"record empty":   {func(p *programmed) { p.write(programsFile, "") }, true},
		"record half":    {func(p *programmed) { p.write(programsFile, p.content(programsFile)[:20]) }, true},
		"record garbage": {func(p *programmed) { p.write(programsFile, "\x00\xff{{{") }, true},
		"record leads elsewhere": {func(p *programmed) {
			p.write(programsFile, `{"kept":{"version":"v1.5.0","sha256":"../../../bin/sh"}}`)
		}, true},
		"record is a folder": {func(p *programmed) { p.remove(programsFile); p.write(programsFile+"/x", "") }, true},
		"record gone":        {func(p *programmed) { p.remove(programsFile) }, true},
		"program gone":       {func(p *programmed) { p.remove(programsDir) }, false},
		"program damaged":    {func(p *programmed) { p.write(programPath(sumOf(fakeProgram("v1.5.0"))), "#!/bin/sh\n") }, false},
		"program is a link": {func(p *programmed) {
			f := p.host(programPath(sumOf(fakeProgram("v1.5.0"))))
			p.remove(programPath(sumOf(fakeProgram("v1.5.0"))))
			if err := os.Symlink("/bin/sh", f); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := onPackage(t)
			p.assignProgram(2, "v1.1.0", "v1.5.0")
			p.rests()
			id := p.installID()
			c.damage(p)
			p.rests()
			if p.installID() != id {
				t.Error("it took a new installation id")
			}
			if c.mended {
				p.is("v1.1.0", "v1.5.0")
				return
			}
			if r := p.control.last(); r.AgentVersion != "v1.0.0" || !strings.Contains(r.DriftReason, "v1.0.0 runs instead of v1.5.0; v1.5.0 could not be started: ") {
				t.Errorf("the report is %+v", r)
			}
			p.assignProgram(3, "v1.2.0", "v1.6.0") // what is not mended is replaced
			p.rests()
			p.is("v1.2.0", "v1.6.0")
		})
	}
}

// With a new system the program is changed after the boot into it, where it
// has to live.
func TestProgramAndSystem(t *testing.T) {
	for _, bad := range []bool{false, true} {
		p := &programmed{device: osDevice(t), versions: map[string]string{}, crashes: map[string]bool{}, mute: map[string]bool{"v1.5.0": bad}, packaged: "v1.0.0"}
		p.cfg.Driver = slots{d: p.device}
		part, payloads := p.program("v1.5.0")
		spec := osSpec(part)
		p.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = 2, "v1.1.0", spec }, payloads)
		for n := 0; n < 6 && p.control.last().Outcome == "" || p.control.last().Attempt != 2; n++ {
			if res, _ := p.boot(); res.Rebooting {
				if p.content(osBooted) == "os-1\n" && strings.Contains(strings.Join(p.started, " "), "v1.5.0") {
					t.Error("the program changed before the system did")
				}
				p.device.boot(false, "")
			}
		}
		p.rests()
		if bad {
			p.is("v1.0.0", "v1.0.0")
			p.outcome(2, schema.OutcomeFailed, "no answer within")
		} else {
			p.is("v1.1.0", "v1.5.0")
			p.outcome(2, schema.OutcomeOK)
		}
		if got, want := p.content(osBooted), map[bool]string{false: "os-2\n", true: "os-1\n"}[bad]; got != want {
			t.Errorf("booted is %q, want %q", got, want)
		}
	}
}

// An agent that nobody watches says that it cannot, and changes nothing.
func TestProgramNeedsAWatchdog(t *testing.T) {
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(tree{"agent": tree{"version": "v1.5.0", "payload": schema.PayloadDigest(nil)}}))
	d.wantOnce(1, "refused", "the spec needs what this agent does not offer: agent")
}

// A program comes from a URL, once what comes from there is the right one.
func TestProgramIsFetched(t *testing.T) {
	p := onPackage(t)
	program, gives := fakeProgram("v1.5.0"), []byte("welcome to the hotel's network")
	p.versions[sumOf(program)] = "v1.5.0"
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Write(gives)
	}))
	defer server.Close()
	p.assign(2, "v1.1.0", v2(tree{"agent": tree{"version": "v1.5.0", "url": server.URL + "/gitopsd", "sha256": sumOf(program)}}))
	p.boot()
	if r := p.control.last(); r.Phase != schema.PhaseDegraded || r.Begun || !strings.Contains(r.Reason, sumOf(gives)[:12]+"… instead of "+sumOf(program)[:12]) {
		t.Errorf("the report is %+v", r)
	}
	gives = program
	p.rests()
	p.is("v1.1.0", "v1.5.0")
	if asked != 2 {
		t.Errorf("it was asked for %d times", asked)
	}
}

// A device that is reset is the package's own again.
func TestResetOfAProgram(t *testing.T) {
	p := onPackage(t)
	p.assignProgram(2, "v1.1.0", "v1.5.0")
	p.rests()
	told := ""
	_, err := Reset(t.Context(), Config{Root: p.root}, func(c *Comparison) (bool, error) {
		for _, one := range c.Changes {
			if one.Field == "agent" {
				told += one.Do + " " + one.Name + ": " + one.Detail
			}
		}
		return true, nil
	})
	if err != nil || told != "restore program: the one of the package" {
		t.Errorf("it said %q (%v)", told, err)
	}
	if entries, err := os.ReadDir(p.host(stateDir)); err == nil {
		t.Errorf("there stays %v", entries)
	}
}

// A device that only observes says that its agent would be another program.
func TestProgramIsObserved(t *testing.T) {
	p := onPackage(t)
	part, payloads := p.program("v1.5.0")
	part["onDevice"] = tree{"mode": "observe"}
	p.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = 2, "v1.1.0", v2(part) }, payloads)
	p.boot()
	would := p.control.last().WouldChange
	if would == nil || !slices.Contains(would.Differences, schema.Difference{Field: "agent", Name: "program", Do: schema.DoChange, Detail: "v1.0.0 → v1.5.0"}) {
		t.Errorf("it says that %+v would change", would)
	}
	if len(p.started) != 1 || p.content(programsFile) != "" {
		t.Errorf("started %v, with the record %s", p.started, p.content(programsFile))
	}
}

// Whatever a spec says of a program, it is a sum that names where it is put, and
// nothing that it says steers who reads of it.
func TestHostileProgram(t *testing.T) {
	sum := sumOf(fakeProgram("v1.5.0"))
	const evil = "v1.5.0\x1b[2J\u202e\n../../x"
	for what, part := range map[string]tree{
		"a path for a sum":       {"version": "v1.5.0", "url": "http://127.0.0.1:1/x", "sha256": "../../../../etc/x"},
		"a longer sum":           {"version": "v1.5.0", "url": "http://127.0.0.1:1/x", "sha256": sum + "/../../x"},
		"upper case":             {"version": "v1.5.0", "url": "http://127.0.0.1:1/x", "sha256": strings.ToUpper(sum)},
		"no sum":                 {"version": "v1.5.0", "url": "http://127.0.0.1:1/x"},
		"a path for a payload":   {"version": "v1.5.0", "payload": "sha256:../../../../etc/x"},
		"another kind of digest": {"version": "v1.5.0", "payload": "md5:" + sum},
		"a file":                 {"version": "v1.5.0", "url": "file:///etc/passwd", "sha256": sum},
		"no URL":                 {"version": "v1.5.0", "url": "-x\x00\n", "sha256": sum},
		"text":                   {"version": evil, "url": "http://127.0.0.1:1/" + evil, "sha256": sum},
	} {
		p := onPackage(t)
		before := p.snapshot()
		p.assign(2, "v1.1.0", v2(tree{"agent": part}))
		res, _ := p.boot()
		r := p.control.last()
		if r.Begun || r.Phase != schema.PhaseError && r.Phase != schema.PhaseDegraded || p.snapshot() != before {
			t.Errorf("%s: it came to %+v", what, r)
		}
		for _, text := range []string{res.Summary, r.Reason} {
			if strings.ContainsAny(text, "\x1b\u202e\x00\r\n") {
				t.Errorf("%s: it says %q", what, text)
			}
		}
		if left, _ := os.ReadDir(p.host(programsDir)); len(left) > 1 || len(left) == 1 && left[0].Name() != sum {
			t.Errorf("%s: there is left %v", what, left)
		}
	}
}
