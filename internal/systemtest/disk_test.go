//go:build system

package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/schema"
)

// patient is a release that waits for room as long as it takes: its retries
// come quickly and never end.
const patient = `onDevice: {retries: 1000, backoff: {base: 500ms, cap: 1s}}
confirm: off
files:
  /etc/edge/release: {content: "%[1]s\n"}
  /etc/edge/payload: {source: files/%[1]s}
  /etc/edge/only-%[1]s: {content: "%[1]s\n", mode: "0600"}
directories:
  /srv/edge/%[1]s: {}
`

// patientVersions are the releases of patientFleet.
var patientVersions = []string{"v1.0.0", "v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0"}

// patientFleet has one device with v1.0.0 as its first target, and the later
// releases ready. They have one file more than the first.
func patientFleet(b *bench, dir string, payload int) *fleet {
	b.Helper()
	f := newFleet(b, dir)
	f.policy("edge", "v1.0.0", 1, 0)
	f.device("d1", "edge")
	for _, v := range patientVersions {
		spec := fmt.Sprintf(patient, v)
		if v != patientVersions[0] {
			spec = strings.Replace(spec, "files:\n", "files:\n  /etc/edge/more: {content: more}\n", 1)
		}
		f.release("edge", v, spec)
		f.write("files/"+v, strings.Repeat(v+" ", payload/7))
	}
	f.push("edge: v1.0.0")
	return f
}

// rollTo makes a version the target.
func (f *fleet) rollTo(version string) {
	f.Helper()
	f.policy("edge", version, 1, 0)
	f.push("edge: " + version)
}

// says waits until the device's own report on the status branch holds words.
func (f *fleet) says(id string, phase schema.Phase, words string) {
	f.Helper()
	f.wait(fmt.Sprintf("%s says %s %q", id, phase, words), func() error {
		s, err := f.now()
		if err != nil {
			return err
		}
		d := s.devices[id]
		if d == nil || d.Observed == nil {
			return fmt.Errorf("%s was not heard from", id)
		}
		if d.Observed.Phase != phase || !strings.Contains(d.Observed.Reason, words) {
			return fmt.Errorf("it says %s %q", d.Observed.Phase, d.Observed.Reason)
		}
		return nil
	})
}

// onlyVersion wants exactly one release's files on the device.
func onlyVersion(t testing.TB, root, version string) {
	t.Helper()
	wantFile(t, filepath.Join(root, "etc/edge/release"), version+"\n")
	for _, v := range patientVersions {
		for _, p := range []string{"etc/edge/only-" + v, "srv/edge/" + v} {
			_, err := os.Lstat(filepath.Join(root, p))
			if there := err == nil; there != (v == version) {
				t.Errorf("%s is there: %t, but the device is on %s", p, there, version)
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "etc/edge/payload"))
	if err != nil || !strings.HasPrefix(string(data), version+" ") || !strings.HasSuffix(string(data), version+" ") {
		t.Errorf("the payload begins with %.20q, %v; want that of %s", data, err, version)
	}
}

// TestSystemAgentDisk: a device without room stays on what it runs, says so
// though it has none, and goes on by itself, without a commit, when it has.
func TestSystemAgentDisk(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount a file system")
	cases := []struct {
		name    string
		options string // of the root
		part    string // folder with a file system of its own, which is the one that fails
		partOpt string
		trouble func(b *bench, dir string) (over func())
		words   string // of the report, which is cut where it is long
		stopped bool   // nothing can be written, so nothing can be recorded either
	}{
		{name: "no space", options: "size=8m", words: "no space", trouble: func(b *bench, dir string) func() {
			file := fill(b, dir)
			return func() { os.Remove(file) }
		}},
		{name: "no inodes", options: "size=8m,nr_inodes=400", words: "no space", trouble: func(b *bench, dir string) func() {
			files := fillInodes(b, dir)
			return func() { os.RemoveAll(files) }
		}},
		{name: "no space on a partition", options: "size=64m", part: "etc/edge", partOpt: "size=256k", words: "no space",
			trouble: func(b *bench, dir string) func() {
				file := fill(b, dir)
				return func() { os.Remove(file) }
			}},
		{name: "no inodes on a partition", options: "size=64m", part: "etc/edge", partOpt: "size=1m,nr_inodes=20", words: "no space",
			trouble: func(b *bench, dir string) func() {
				files := fillInodes(b, dir)
				return func() { os.RemoveAll(files) }
			}},
		{name: "a partition that is read-only", options: "size=64m", part: "etc/edge", partOpt: "size=1m", words: "read-only",
			trouble: func(b *bench, dir string) func() {
				remount(b, dir, true)
				return func() { remount(b, dir, false) }
			}},
		{name: "read-only", options: "size=64m", stopped: true, trouble: func(b *bench, dir string) func() {
			remount(b, dir, true)
			return func() { remount(b, dir, false) }
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			f := patientFleet(b, b.dir, 100<<10)
			root := b.tmpfs("root", c.options)
			failing := root
			if c.part != "" {
				failing = b.tmpfs("root/"+c.part, c.partOpt)
			}
			f.start("serve", serveArgs(b.path("state"), "--repo", f.bare)...)
			agent := f.start("d1", agentArgs("d1", root, "--repo", f.bare)...)
			f.is("d1", "Current", "v1.0.0")

			over := c.trouble(b, failing)
			from := len(agent.text())
			f.rollTo("v1.1.0")
			if c.stopped {
				b.waitLog(agent, from, "read-only")
			} else {
				f.says("d1", schema.PhaseDegraded, c.words)
			}
			if c.part == "" || c.words == "read-only" {
				onlyVersion(t, root, "v1.0.0")
			}
			// A power cut in the middle of it: the agent comes back and waits.
			agent.kill()
			from = len(agent.text())
			agent = f.start("d1", agentArgs("d1", root, "--repo", f.bare)...)
			if !c.stopped {
				b.waitLog(agent, from, "agent started")
			} else {
				time.Sleep(time.Second) // whether it ends or waits, both are right
			}
			over()
			if !agent.running() { // as its service would
				agent = f.start("d1", agentArgs("d1", root, "--repo", f.bare)...)
			}
			f.is("d1", "Current", "v1.1.0")
			onlyVersion(t, root, "v1.1.0")
			if err := agent.end(); err != nil {
				t.Error(err)
			}
			nothingLeft(b, root)
		})
	}
}

// TestSystemAgentDiskFullForEver: where room never comes, the retries of the
// release end, and the device is wholly on its old spec.
func TestSystemAgentDiskFullForEver(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount a file system")
	b := newBench(t)
	f := patientFleet(b, b.dir, 100<<10)
	f.release("edge", "v1.1.0", strings.Replace(fmt.Sprintf(patient, "v1.1.0"), "retries: 1000", "retries: 2", 1))
	root := b.tmpfs("root", "size=8m")
	part := b.tmpfs("root/etc/edge", "size=256k")
	f.start("serve", serveArgs(b.path("state"), "--repo", f.bare)...)
	agent := f.start("d1", agentArgs("d1", root, "--repo", f.bare)...)
	f.is("d1", "Current", "v1.0.0")
	before := snapshot(t, root)
	full := fill(b, part)
	f.rollTo("v1.1.0")
	f.is("d1", "Failed", "v1.0.0")
	os.Remove(full)
	f.says("d1", schema.PhaseError, "no space")
	// The way back needed room, too, and now has it.
	f.wait("the device is wholly back", func() error {
		now := snapshot(t, root)
		for p, w := range before {
			if now[p] != w {
				return fmt.Errorf("%s is %q, was %q", p, now[p], w)
			}
		}
		if len(now) != len(before) {
			return fmt.Errorf("%d paths, were %d", len(now), len(before))
		}
		return nil
	})
	onlyVersion(t, root, "v1.0.0")
	if err := agent.end(); err != nil {
		t.Error(err)
	}
	nothingLeft(b, root)
}

// TestSystemDaemonStateDisk: a daemon whose state folder is full changes
// nothing it should not, and goes on by itself.
func TestSystemDaemonStateDisk(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount a file system")
	for _, over := range []string{"local", "http"} {
		for _, kind := range []string{"space", "inodes"} {
			t.Run(over+", no "+kind, func(t *testing.T) {
				b := newBench(t)
				f := patientFleet(b, b.dir, 100<<10)
				remote := f.bare
				if over == "http" {
					remote = gitserver.New(b, b.dir).URL + "/fleet.git"
				}
				state := b.tmpfs("state", "size=4m,nr_inodes=500")
				serve := f.start("serve", serveArgs(state, "--repo", remote)...)
				f.agent("d1", "--repo", f.bare)
				f.is("d1", "Current", "v1.0.0")
				takeAll := func() func() {
					if kind == "inodes" {
						files := fillInodes(b, state)
						return func() { os.RemoveAll(files) }
					}
					file := fill(b, state)
					return func() { os.Remove(file) }
				}
				free := takeAll()
				from := len(serve.text())
				f.rollTo("v1.1.0")
				if over == "http" {
					b.waitLog(serve, from, "no space left")
				} else {
					// Nothing of the state is needed to go on.
					f.is("d1", "Current", "v1.1.0")
				}
				// Killed and started while full.
				serve.kill()
				from = len(serve.text())
				serve = f.start("serve", serveArgs(state, "--repo", remote)...)
				b.wait("it serves, or says why not", func() error {
					if text := serve.text()[from:]; !strings.Contains(text, "serving") && !strings.Contains(text, "no space left") {
						return fmt.Errorf("it says %q", text)
					}
					return nil
				})
				free()
				if !serve.running() { // as its service would
					serve = f.start("serve", serveArgs(state, "--repo", remote)...)
				}
				f.is("d1", "Current", "v1.1.0")
				onlyVersion(t, b.path("roots/d1"), "v1.1.0")
				// Full and free at any moment, while it works.
				for i := range 6 {
					free := takeAll()
					if i%2 == 0 {
						f.rollTo([]string{"v1.2.0", "v1.3.0", "v1.4.0"}[i/2])
					}
					time.Sleep(time.Duration(100+i*70) * time.Millisecond)
					free()
					if !serve.running() {
						serve = f.start("serve", serveArgs(state, "--repo", remote)...)
					}
				}
				f.is("d1", "Current", "v1.4.0")
				onlyVersion(t, b.path("roots/d1"), "v1.4.0")
				if err := serve.end(); err != nil {
					t.Error(err)
				}
				whole(b, f.bare)
				nothingLeft(b, f.bare)
				nothingLeft(b, state)
				if over == "http" {
					stores, _ := filepath.Glob(filepath.Join(state, "*", "fleet.git"))
					if len(stores) != 1 {
						t.Fatalf("the stores are %v", stores)
					}
					whole(b, stores[0])
				}
			})
		}
	}
}

// TestSystemRepositoryDisk: the repository itself is on a full disk. Nobody
// leaves anything half done in it, and all go on by themselves.
func TestSystemRepositoryDisk(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount a file system")
	for _, kind := range []string{"no space", "no inodes", "read-only"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			disk := b.tmpfs("git", "size=16m,nr_inodes=4000")
			f := patientFleet(b, disk, 100<<10)
			serve := f.start("serve", serveArgs(b.path("state"), "--repo", f.bare)...)
			agent := f.agent("d1", "--repo", f.bare)
			f.is("d1", "Current", "v1.0.0")
			takeAll := func() func() {
				switch kind {
				case "no inodes":
					files := fillInodes(b, disk)
					return func() { os.RemoveAll(files) }
				case "read-only":
					remount(b, disk, true)
					return func() { remount(b, disk, false) }
				}
				file := fill(b, disk)
				return func() { os.Remove(file) }
			}
			for i, version := range []string{"v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0"} {
				f.rollTo(version)
				from := len(serve.text()) + len(agent.text())
				// At another moment of the rollout each time.
				time.Sleep(time.Duration(i*150) * time.Millisecond)
				free := takeAll()
				f.wait("somebody says so, or is done", func() error {
					text := serve.text() + agent.text()
					for _, w := range []string{"no space left", "read-only"} {
						if strings.Contains(text[min(from, len(text)):], w) {
							return nil
						}
					}
					if s, err := f.now(); err == nil && s.is("d1", "Current", version) == nil {
						return nil
					}
					return fmt.Errorf("nobody does")
				})
				if i == 2 { // a crash on top of it
					serve.kill()
					agent.kill()
				}
				whole(b, f.bare)
				free()
				if !serve.running() {
					serve = f.start("serve", serveArgs(b.path("state"), "--repo", f.bare)...)
				}
				if !agent.running() {
					agent = f.agent("d1", "--repo", f.bare)
				}
				f.is("d1", "Current", version)
				onlyVersion(t, b.path("roots/d1"), version)
			}
			if err := serve.end(); err != nil {
				t.Error(err)
			}
			if err := agent.end(); err != nil {
				t.Error(err)
			}
			whole(b, f.bare)
			nothingLeft(b, f.bare)
		})
	}
}
