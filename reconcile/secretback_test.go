package reconcile

import (
	"encoding/json"
	"strings"
	"testing"
)

// The key is lost, and a version that drops the secret fails: its file was never
// away. It goes with the first version without it that succeeds.
func TestSecret_DroppedWithoutTheKey(t *testing.T) {
	d := onFirst(t)
	d.loseKey()
	without := func(beside string, more tree) tree {
		return filesSpec(map[string]string{"/etc/edge/beside": beside}, more)
	}
	d.assign(2, "v1.1.0", without("two\n", hook("afterUpdating", "/bin/false")))
	d.wantOnce(1, "failed", "back on v1.0.0")
	d.is("rolled back", plainOne, "one\n")
	if r := d.control.last(); !strings.Contains(r.DriftReason, "no identity of this device opens it") {
		t.Errorf("report: %+v", r)
	}
	d.assign(3, "v1.2.0", without("three\n", nil))
	d.wantOnce(0, "updated")
	if got := d.content(secretFile); got != "" {
		t.Errorf("dropped, it is %q", got)
	}
	d.look()
	d.silent()
}

// The key goes in the middle of an update that fails, and leaves a secret as it
// is: the same text, or the same secret encrypted anew.
func TestSecret_UntouchedWithoutTheKey(t *testing.T) {
	for _, anew := range []bool{false, true} {
		d := onFirst(t)
		spec := d.spec(plainOne, "two\n", hook("afterUpdating", "/bin/sh", "-c", "rm "+d.cfg.Identities[0]+"; exit 1"))
		if !anew {
			var cur record
			d.readState(currentFile, &cur)
			var was struct{ Files tree }
			if err := json.Unmarshal(cur.Spec, &was); err != nil {
				t.Fatal(err)
			}
			spec["files"].(tree)[secretFile] = was.Files[secretFile]
		}
		d.assign(2, "v1.1.0", spec)
		d.wantOnce(1, "failed", "back on v1.0.0")
		d.is("rolled back", plainOne, "one\n")
	}
}

// Somebody took the file away meanwhile: without the key it cannot come back.
func TestSecret_GoneWithoutTheKey(t *testing.T) {
	d := onFirst(t)
	d.loseKey()
	d.assign(2, "v1.1.0", filesSpec(map[string]string{"/etc/edge/beside": "two\n"}, hook("afterUpdating", "/bin/sh", "-c", "rm $GITOPSD_ROOT"+secretFile+"; exit 1")))
	d.wantOnce(1, "rollback incomplete", secretFile)
	d.bringKey()
	d.wantOnce(1, "back on v1.0.0")
	d.is("with the key", plainOne, "one\n")
}

// Power goes at every operation of an update that drops a secret.
func TestSecret_CrashDropped(t *testing.T) { crashDropped(t, false) }

// crashDropped has the update fail, without the key, or not.
func crashDropped(t *testing.T, fails bool) {
	var d *secretDevice
	prepare := func(t *testing.T) *device {
		d = onFirst(t)
		var more tree
		if fails {
			more = hook("afterUpdating", "/bin/false")
			d.loseKey()
		}
		d.assign(2, "v1.1.0", filesSpec(map[string]string{"/etc/edge/beside": "two\n"}, more))
		return d.device
	}
	crashEverywhere(t, prepare, func(t *testing.T, _ *device, where string) {
		d.settle()
		if fails {
			d.is(where, plainOne, "one\n")
		} else if got := d.content(secretFile); got != "" || d.content("/etc/edge/beside") != "two\n" {
			t.Errorf("%s: the secret is %q", where, got)
		}
		d.shown.WriteString("nobody asked")
		d.silent()
	})
}
