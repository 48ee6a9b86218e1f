package reconcile

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// placed are things that may come to stand where a state file was.
var placed = map[string]func(t *testing.T, host string){
	"a folder": func(t *testing.T, host string) {
		if err := os.MkdirAll(filepath.Join(host, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
	},
	"a link to nothing": func(t *testing.T, host string) {
		if err := os.Symlink("/nowhere/at/all", host); err != nil {
			t.Fatal(err)
		}
	},
	"a link to the file": func(t *testing.T, host string) {
		if err := os.Symlink(path.Base(host)+".moved", host); err != nil {
			t.Fatal(err)
		}
	},
	"a link to itself": func(t *testing.T, host string) {
		if err := os.Symlink(path.Base(host), host); err != nil {
			t.Fatal(err)
		}
	},
}

// Whatever stands in the place of a state file is set aside, at the start as
// well as while the agent runs, and the device goes on.
func TestSomethingElseInPlaceOfAStateFile(t *testing.T) {
	for what, put := range placed {
		for _, file := range []string{installFile, currentFile, attemptsFile, desiredFile, pendingFile, managedFile, stateDir + "/managed.copy.json", stateDir + "/" + lockName} {
			for _, running := range []bool{false, true} {
				if running && strings.HasSuffix(file, lockName) {
					continue // it is held
				}
				t.Run(what+" "+path.Base(file)+map[bool]string{true: " while it runs"}[running], func(t *testing.T) {
					d := onV1(t)
					var a *Agent
					if running {
						a = d.agent()
						defer a.Close()
					}
					if err := os.Rename(d.host(file), d.host(file)+".moved"); err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
					put(t, d.host(file))
					pass := func() {
						t.Helper()
						if !running {
							d.once()
						} else if _, err := a.Once(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					pass()
					pass()
					d.assign(9, "v1.1.0", v2(nil))
					pass()
					pass()
					r := d.control.last()
					if r.Current.Version != "v1.1.0" || r.Outcome != schema.OutcomeOK || d.content("/etc/edge/edge.conf") != "version=2\n" {
						t.Errorf("%+v\n%s", r, d.snapshot())
					}
					d.assign(10, "v1.2.0", filesSpec(nil, nil))
					pass()
					want := "from the factory\n"
					if got := d.content("/etc/edge/edge.conf"); got != want {
						t.Errorf("dropped, edge.conf is %q, want %q", got, want)
					}
					if info, err := os.Lstat(d.host(file)); err == nil && !info.Mode().IsRegular() {
						t.Errorf("%s is still %v", file, info.Mode())
					}
					found, _ := filepath.Glob(d.host(file) + ".*")
					aside := 0
					for _, f := range found {
						if !strings.HasSuffix(f, ".moved") {
							aside++
						}
					}
					if aside != 1 {
						t.Errorf("set aside: %v", found)
					}
				})
			}
		}
	}
}

// What a hook was told lies about when the agent is killed with it; the next
// start clears it away.
func TestListOfChangedFilesDoesNotStay(t *testing.T) {
	d := onV1(t)
	d.write("/run/gitopsd/changed-files", "/etc/x\x00")
	d.write("/run/gitopsd/.gitopsd-tmp-0123456789abcdef", "half")
	d.write("/run/gitopsd/busy", "")
	d.agent().Close()
	entries, err := os.ReadDir(d.host("/run/gitopsd"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "busy" {
		t.Errorf("left: %v, %v", entries, err)
	}
	d.remove("/run/gitopsd/busy")
	// Something else there is no reason to fail an update.
	placed["a link to nothing"](t, d.host("/run/gitopsd/changed-files"))
	d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/true")))
	d.wantOnce(0, "updated")
}

// A link that a hook or a person put in the place of a managed file goes, and
// the file comes back: as drift, in an update, in a rollback, and when the
// spec drops the file.
func TestLinkInPlaceOfAManagedFile(t *testing.T) {
	link := func(d *device, p string) {
		t.Helper()
		d.remove(p)
		d.write("/srv/theirs", "theirs\n")
		if err := os.Symlink("/srv/theirs", d.host(p)); err != nil {
			t.Fatal(err)
		}
	}
	const p, only = "/etc/edge/edge.conf", "/etc/edge/only-1"
	t.Run("drift", func(t *testing.T) {
		d := onV1(t)
		link(d, p)
		d.wantOnce(0)
		if d.content(p) != "version=1\n" || d.control.last().Reason != "" {
			t.Errorf("%q, %+v", d.content(p), d.control.last())
		}
	})
	t.Run("update", func(t *testing.T) {
		d := onV1(t)
		link(d, p)
		link(d, only)
		d.assign(2, "v1.1.0", v2(nil))
		d.wantOnce(0, "updated")
		if d.content(p) != "version=2\n" || d.content(only) != "" {
			t.Errorf("\n%s", d.snapshot())
		}
	})
	t.Run("rollback", func(t *testing.T) {
		d := onV1(t)
		before := d.snapshot()
		d.assign(2, "v1.1.0", v2(hook("afterUpdating", "/bin/sh", "-c",
			`for f in etc/edge/edge.conf etc/edge/only-2; do rm "$GITOPSD_ROOT/$f" && ln -s /srv/theirs "$GITOPSD_ROOT/$f"; done; exit 1`)))
		d.wantOnce(1, "back on v1.0.0")
		if after := d.snapshot(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
	t.Run("dropped", func(t *testing.T) {
		d := onV1(t)
		link(d, p)
		d.assign(2, "v1.1.0", filesSpec(nil, nil))
		d.wantOnce(0, "updated")
		if info, err := os.Lstat(d.host(p)); err != nil || !info.Mode().IsRegular() || d.content(p) != "from the factory\n" {
			t.Errorf("%v, %q", err, d.content(p))
		}
	})
	t.Run("theirs stays", func(t *testing.T) {
		d := onV1(t)
		link(d, p)
		d.wantOnce(0)
		if d.content("/srv/theirs") != "theirs\n" {
			t.Error("what the link led to was written")
		}
		link(d, "/etc/edge/foreign")
		d.assign(2, "v1.1.0", filesSpec(map[string]string{"/etc/edge/foreign": "ours\n"}, nil))
		d.wantOnce(1, "symlink")
		if info, err := os.Lstat(d.host("/etc/edge/foreign")); err != nil || info.Mode().IsRegular() {
			t.Error("a link that was there first was replaced")
		}
	})
}

// A hook that puts a link in the place of a folder is no dead end for the
// rollback; where somebody's things are behind it, a person has the last word.
func TestLinkInPlaceOfAManagedFolder(t *testing.T) {
	spec := func(hook string) tree {
		s := v2(tree{"directories": tree{"/srv/data": tree{"mode": "0700"}}})
		s["hooks"] = tree{"afterUpdating": tree{"it": tree{"run": []any{"/bin/sh", "-c", "cd $GITOPSD_ROOT && " + hook + "; exit 1"}}}}
		return s
	}
	d := onV1(t)
	d.assign(2, "v1.1.0", filesSpec(map[string]string{"/opt/app/conf": "1\n"}, tree{"directories": tree{"/srv/data": tree{"mode": "0700"}, "/srv/gone": tree{}}}))
	d.wantOnce(0, "updated")
	before := d.snapshot()
	d.assign(3, "v1.2.0", spec("rm -r srv/data && ln -s /nowhere srv/data && mkdir -p opt/app && ln -s ../app opt/app/conf && ln -s /nowhere srv/gone"))
	d.wantOnce(1, "back on v1.1.0")
	if after := d.snapshot(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	d.write("/srv/data/theirs", "theirs\n")
	d.assign(4, "v1.3.0", spec("mv srv/data srv/disk && ln -s disk srv/data"))
	d.wantOnce(1, "rollback incomplete", "/srv/data", "symlink")
	d.wantOnce(1, "rollback incomplete")
	if d.content("/srv/disk/theirs") != "theirs\n" || d.content("/srv/data/theirs") != "theirs\n" || d.content("/opt/app/conf") != "1\n" {
		t.Errorf("\n%s", d.snapshot())
	}
	d.remove("/srv/data")
	if err := os.Rename(d.host("/srv/disk"), d.host("/srv/data")); err != nil {
		t.Fatal(err)
	}
	d.wantOnce(1, "failed", "back on v1.1.0")
	if r := d.control.last(); r.Outcome != schema.OutcomeFailed || r.Current.Version != "v1.1.0" {
		t.Errorf("report: %+v", r)
	}
}

// Numbers and names that no report could carry are no state: the device would
// be silent for ever.
func TestStateThatCouldNotBeReported(t *testing.T) {
	for file, text := range map[string]string{
		installFile:  `{"id":"` + strings.Repeat("x", 101) + `","reserved":1}`,
		attemptsFile: `{"format":1,"generation":9223372036854775807}`,
		currentFile:  `{"version":"v1.0.0","attempt":-1}`,
		desiredFile:  `{"version":"v1.0.0","attempt":9223372036854775807,"spec":{}}`,
	} {
		d := onV1(t)
		d.write(file, text)
		d.once()
		r := d.control.last()
		if _, err := schema.Encode(&r); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	d := onV1(t)
	d.write(installFile, `{"id":"x","reserved":9223372036854775000}`)
	d.once()
	if r := d.control.last(); r.Sequence <= 0 || r.InstallID == "x" {
		t.Errorf("sequence %d of %s", r.Sequence, r.InstallID)
	}
}
