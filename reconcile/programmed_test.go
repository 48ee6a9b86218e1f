package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// fakeProgram is a program as a candidate is asked: it tells its version, and
// whether it could work.
func fakeProgram(version string) []byte {
	return fmt.Appendf(nil, "#!/bin/sh\ntest \"$1\" != --version || echo gitopsd %s go1 linux/x\n", version)
}

func sumOf(program []byte) string {
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:])
}

// programmed is a device whose agent can be another program: what systemd does
// and what becomes of each program when it runs.
type programmed struct {
	*device
	versions map[string]string // of programs, by sum
	crashes  map[string]bool   // programs that end as soon as they are started
	mute     map[string]bool   // programs that do not reach control
	unheard  map[string]bool   // programs whose reports are not accepted
	blind    map[string]bool   // programs that cannot read what is assigned
	packaged string            // version of the one of the package
	started  []string          // versions, one for each process
	step     func(op, path string) error
}

func onPackage(t *testing.T) *programmed {
	p := &programmed{device: onV1(t), versions: map[string]string{}, crashes: map[string]bool{}, mute: map[string]bool{}, unheard: map[string]bool{}, blind: map[string]bool{}, packaged: "v1.0.0"}
	p.cfg.InitialVersion = ""
	return p
}

// program is a part of a spec whose program the device gets as a payload.
func (p *programmed) program(version string) (part tree, payloads map[string][]byte) {
	bytes := fakeProgram(version)
	p.versions[sumOf(bytes)] = version
	return tree{"agent": tree{"version": version, "payload": "sha256:" + sumOf(bytes)}, "confirm": tree{"within": "1ms"}},
		map[string][]byte{"sha256:" + sumOf(bytes): bytes}
}

// assignProgram assigns a spec with a program of its own.
func (p *programmed) assignProgram(attempt int64, release, version string) {
	p.t.Helper()
	part, payloads := p.program(version)
	p.publish(func(a *schema.Assignment) { a.Attempt, a.Version, a.Spec = attempt, release, v2(part) }, payloads)
}

// boot is one start of the service: the program of the package, and whatever it
// has take over, until a pass is done or a process has ended.
func (p *programmed) boot() (res Result, dead bool) {
	p.t.Helper()
	for range 10 {
		l, err := OpenLauncher(p.root, p.step)
		if err != nil {
			p.t.Fatal(err)
		}
		one := l.Next()
		l.Close()
		if p.control.dead != nil && p.control.dead() {
			return res, true
		}
		version := p.packaged
		if one.SHA256 != "" {
			version = p.versions[one.SHA256]
			if data, err := os.ReadFile(one.Path); err != nil || sumOf(data) != one.SHA256 || version == "" {
				p.t.Fatalf("started %+v: %v", one, err)
			}
		}
		p.started = append(p.started, version)
		if p.crashes[version] {
			return res, true
		}
		c := p.cfg
		c.AgentVersion, c.Step = version, p.step
		c.Program = &Program{SHA256: one.SHA256, Trouble: one.Trouble, Refused: one.Refused, Watched: true}
		p.control.answers, p.control.onReport, p.control.lookErr = nil, nil, nil
		if p.mute[version] {
			p.control.answers = func() error { return errDead }
		}
		if p.unheard[version] {
			p.control.onReport = func(*schema.Report) error { return errDead }
		}
		if p.blind[version] {
			p.control.lookErr = errDead
		}
		a, err := New(c)
		if err == nil {
			res, err = a.Once(p.t.Context())
			a.Close()
		}
		if err != nil && p.step == nil {
			p.t.Fatal(err)
		}
		if err != nil || (p.control.dead != nil && p.control.dead()) {
			return res, true
		}
		if !res.HandOver {
			return res, false
		}
	}
	p.t.Fatalf("programs hand over without an end: %v", p.started)
	return res, true
}

// rests boots until there is nothing to do.
func (p *programmed) rests() Result {
	p.t.Helper()
	var res Result
	for range 12 {
		var dead bool
		if res, dead = p.boot(); !dead && (strings.HasPrefix(res.Summary, "nothing to do") || strings.Contains(res.Summary, " ended as failed") || strings.Contains(res.Summary, " ended as refused")) {
			return res
		}
	}
	p.t.Fatalf("the device does not come to rest: %s; started %v", res.Summary, p.started)
	return res
}

// is wants the device to run a release and a program, and nothing else to be
// left of others.
func (p *programmed) is(release, version string) {
	p.t.Helper()
	var cur record
	p.readState(currentFile, &cur)
	if last := p.started[len(p.started)-1]; cur.Version != release || last != version {
		p.t.Errorf("on %s as %s, want %s as %s; started %v", cur.Version, last, release, version, p.started)
	}
	if r := p.control.last(); r.AgentVersion != version || len(r.Drift) > 0 {
		p.t.Errorf("it reports agent %s and drift %v, want %s", r.AgentVersion, r.Drift, version)
	}
	var rec programs
	p.readState(programsFile, &rec)
	if rec.Trial != nil || (rec.Kept == nil) != (version == p.packaged) || (rec.Kept != nil && rec.Kept.Version != version) {
		p.t.Errorf("its record is %s", p.content(programsFile))
	}
	entries, _ := os.ReadDir(p.host(programsDir))
	for _, e := range entries {
		inside, _ := os.ReadDir(p.host(programsDir + "/" + e.Name()))
		if rec.Kept == nil || e.Name() != rec.Kept.SHA256 || len(inside) != 1 {
			p.t.Errorf("there is left %s with %v", e.Name(), inside)
		}
	}
}

func (p *programmed) outcome(attempt int64, want schema.Outcome, words ...string) {
	p.t.Helper()
	r := p.control.last()
	if r.Attempt != attempt || r.Outcome != want {
		p.t.Errorf("attempt %d ended %q: %+v", r.Attempt, r.Outcome, r)
	}
	for _, w := range words {
		if !strings.Contains(r.Reason, w) {
			p.t.Errorf("the reason %q does not say %q", r.Reason, w)
		}
	}
}
