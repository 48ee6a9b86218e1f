package reconcile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/seal"
	"github.com/gitopsd/gitopsd/schema"
)

// secretDevice is a device whose configuration names a file with an identity,
// which is there or not.
type secretDevice struct {
	*device
	log   bytes.Buffer
	shown bytes.Buffer // to whoever asks at the device
}

// The key of all devices here, which was never anywhere else.
const (
	secretKey       = "AGE-SECRET-KEY-1GD9DN5W2SZN3DVSXHYHKPW55E3QL25YVEJHHZKD4MVXW3F35KDJS74952S"
	secretRecipient = "age1a3sue5eq4c8kpathx9z8h05y7rdaeman8eqnxmh6ylwd28z7lvjseznw4g"
)

const secretFile = "/etc/edge/password"

// Contents of secrets, long enough to stand nowhere by chance.
const (
	plainOne = "the first passphrase of the sensor network\n"
	plainTwo = "another passphrase, after the first one was seen\n"
)

func newSecretDevice(t *testing.T) *secretDevice {
	t.Helper()
	return withKey(t, newDevice(t))
}

func withKey(t *testing.T, bare *device) *secretDevice {
	t.Helper()
	d := &secretDevice{device: bare}
	d.cfg.Identities = []string{filepath.Join(t.TempDir(), "identity")}
	d.cfg.Logger = slog.New(slog.NewTextHandler(&d.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d.bringKey()
	return d
}

func (d *secretDevice) bringKey() {
	d.t.Helper()
	if err := os.WriteFile(d.cfg.Identities[0], []byte(secretKey), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *secretDevice) loseKey() {
	d.t.Helper()
	if err := os.Remove(d.cfg.Identities[0]); err != nil {
		d.t.Fatal(err)
	}
}

// spec has a secret, and a file beside it.
func (d *secretDevice) spec(plain, beside string, more tree) tree {
	d.t.Helper()
	to, err := seal.Recipients(secretRecipient)
	if err != nil {
		d.t.Fatal(err)
	}
	sealed, err := seal.Encrypt([]byte(plain), to...)
	if err != nil {
		d.t.Fatal(err)
	}
	spec := filesSpec(map[string]string{"/etc/edge/beside": beside}, more)
	spec["files"].(tree)[secretFile] = tree{"secret": sealed}
	return spec
}

// onFirst is a device that has applied a first secret.
func onFirst(t *testing.T) *secretDevice {
	t.Helper()
	return withKey(t, secretImage.device(t, func(t *testing.T) *device {
		d := newSecretDevice(t)
		d.wantOnce(0)
		d.assign(1, "v1.0.0", d.spec(plainOne, "one\n", nil))
		d.wantOnce(0, "updated")
		d.is("after the first", plainOne, "one\n")
		return d.device
	}))
}

var secretImage image

func (d *secretDevice) is(what, plain, beside string) {
	d.t.Helper()
	info, err := os.Stat(d.host(secretFile))
	if err != nil || info.Mode().Perm() != 0o600 || d.content(secretFile) != plain || d.content("/etc/edge/beside") != beside {
		d.t.Errorf("%s: %q, beside %q, %v, %v", what, d.content(secretFile), d.content("/etc/edge/beside"), info.Mode(), err)
	}
}

// look asks what separates the device from its spec, as a person may.
func (d *secretDevice) look() *Comparison {
	d.t.Helper()
	v, err := OpenView(d.cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	defer v.Close()
	c, err := v.Compare(d.t.Context(), false, true)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := json.NewEncoder(&d.shown).Encode([]any{c, v.Standing()}); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// silent checks that no secret, and no key, has come anywhere but into the file
// of its spec.
func (d *secretDevice) silent() {
	d.t.Helper()
	reports, err := json.Marshal(d.control.reports)
	if err != nil {
		d.t.Fatal(err)
	}
	places := map[string][]byte{"the log": d.log.Bytes(), "reports": reports, "what is shown": d.shown.Bytes()}
	err = filepath.WalkDir(d.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || p == d.host(secretFile) {
			return err
		}
		places[p], err = os.ReadFile(p)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	for place, data := range places {
		if len(data) == 0 && !strings.HasPrefix(place, "/") {
			d.t.Errorf("nothing stands in %s: it cannot tell anything", place)
		}
		for _, plain := range []string{plainOne, plainTwo, secretKey} {
			for _, form := range formsOf(plain) {
				if bytes.Contains(data, []byte(form)) {
					d.t.Errorf("%s has %q of %q", place, form, plain)
				}
			}
		}
	}
}

// formsOf are ways in which a text may stand somewhere: a part of it as it is,
// and in base64 wherever it begins there.
func formsOf(plain string) []string {
	const part = 18
	forms := []string{plain[4 : 4+part], plain[len(plain)/2 : len(plain)/2+part-6]}
	for skip := range 3 {
		forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(plain[skip:skip+part])))
	}
	return forms
}

func (d *secretDevice) repair() {
	d.t.Helper()
	a := d.agent()
	defer a.Close()
	a.repair(d.t.Context())
	if err := a.reports.flush(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

func TestSecret_Life(t *testing.T) {
	d := onFirst(t)
	if r := d.control.last(); !slices.Contains(r.Capabilities, schema.NeedsSecret) {
		t.Errorf("capabilities: %v", r.Capabilities)
	}

	// Drift is put right; what differs is told by its path alone.
	d.write(secretFile, "by hand, and for all to read\n")
	if c := d.look(); len(c.Changes) != 1 || c.Changes[0].Name != secretFile || c.Changes[0].Hidden != "it is a secret" || c.Changes[0].To != nil || c.Changes[0].From != nil {
		t.Errorf("compared: %+v", c.Changes)
	}
	d.repair()
	d.is("repaired", plainOne, "one\n")

	// An update that fails goes back to the secret of before.
	d.assign(2, "v1.1.0", d.spec(plainTwo, "two\n", hook("afterUpdating", "/bin/sh", "-c", "env; cat $GITOPSD_CHANGED_FILES; exit 1")))
	d.wantOnce(1, "failed")
	d.is("rolled back", plainOne, "one\n")

	d.assign(3, "v1.2.0", tree{"onDevice": tree{"mode": "observe"}, "files": d.spec(plainTwo, "two\n", nil)["files"]})
	d.wantOnce(0, "2 things would change")
	d.look()
	d.assign(4, "v1.2.0", d.spec(plainTwo, "two\n", nil))
	d.wantOnce(0, "updated")
	d.is("updated", plainTwo, "two\n")
	d.assign(5, "v1.3.0", filesSpec(map[string]string{"/etc/edge/beside": "three\n"}, nil))
	d.wantOnce(0, "updated")
	if d.content(secretFile) != "" {
		t.Error("a secret that was dropped stays")
	}
	d.silent()
}

// A device without the key changes nothing; the same attempt goes on when
// somebody has brought it.
func TestSecret_KeyComesLater(t *testing.T) {
	d := onFirst(t)
	d.loseKey()
	before := d.snapshot()
	d.control.reports = nil
	d.assign(2, "v1.1.0", d.spec(plainTwo, "two\n", nil))
	d.wantOnce(1, "a retry is due", secretFile, "no identity of this device opens it", "no such file")
	r := d.control.last()
	if r.Phase != schema.PhaseDegraded || r.Begun || len(r.Failures) != 1 || r.Failures[0].Class != schema.ClassRetryable || r.Failures[0].Element != secretFile || r.Failures[0].Stage != string(StagePreCheck) {
		t.Errorf("report: %+v", r)
	}
	if d.snapshot() != before || strings.Contains(d.control.phases(), "Starting") {
		t.Errorf("something has changed, or a start was announced: %s\n%s", d.control.phases(), d.snapshot())
	}
	d.look()
	d.bringKey()
	d.wantOnce(0, "updated")
	d.is("with the key", plainTwo, "two\n")
	d.silent()
}

// The key goes in the middle of an update that fails: everything else is put
// back, the device says what is not, and goes on when the key is back.
func TestSecret_KeyGoesBeforeTheRollback(t *testing.T) {
	d := onFirst(t)
	d.assign(2, "v1.1.0", d.spec(plainTwo, "two\n", hook("afterUpdating", "/bin/sh", "-c", fmt.Sprintf("rm %s; exit 1", d.cfg.Identities[0]))))
	d.wantOnce(1, "rollback incomplete", secretFile, "no identity of this device opens it")
	if r := d.control.last(); r.Phase != schema.PhaseError || !strings.Contains(r.Reason, "rollback incomplete") {
		t.Errorf("report: %+v", r)
	}
	d.is("without the key", plainTwo, "one\n")
	d.wantOnce(1, "rollback incomplete")
	d.look()
	d.silent()
	d.bringKey()
	d.wantOnce(1, "back on v1.0.0")
	d.is("with the key", plainOne, "one\n")

	// An attempt with secrets that can be opened takes its place as any other.
	d.assign(3, "v1.2.0", d.spec(plainTwo, "three\n", nil))
	d.wantOnce(0, "updated")
	d.is("the next", plainTwo, "three\n")
}

// Without the key drift of everything else is repaired, and the device says what
// could not be looked at.
func TestSecret_DriftWithoutTheKey(t *testing.T) {
	d := onFirst(t)
	d.loseKey()
	d.write("/etc/edge/beside", "by hand\n")
	d.repair()
	d.is("repaired", plainOne, "one\n")
	if r := d.control.last(); !strings.Contains(r.DriftReason, secretFile) || !strings.Contains(r.DriftReason, "no identity of this device opens it") {
		t.Errorf("report: %+v", r)
	}
	d.bringKey()
	d.repair()
	if r := d.control.last(); r.DriftReason != "" {
		t.Errorf("with the key: %+v", r)
	}
	d.look()
	d.silent()
}

// An agent whose configuration names no identities says so beforehand, and
// refuses what it is assigned all the same.
func TestSecret_NoIdentities(t *testing.T) {
	d := newSecretDevice(t)
	d.cfg.Identities = nil
	d.wantOnce(0)
	if r := d.control.last(); slices.Contains(r.Capabilities, schema.NeedsSecret) {
		t.Errorf("capabilities: %v", r.Capabilities)
	}
	d.assign(1, "v1.0.0", d.spec(plainOne, "one\n", nil))
	d.wantOnce(1, "refused", "files.secret")
}

// Power goes at every operation of an update with secrets: the device ends on
// one spec whole, and no other file has anything of them.
func TestSecret_CrashEverywhere(t *testing.T) {
	var d *secretDevice
	prepare := func(t *testing.T) *device {
		d = onFirst(t)
		d.assign(2, "v1.1.0", d.spec(plainTwo, "two\n", nil))
		return d.device
	}
	crashEverywhere(t, prepare, func(t *testing.T, _ *device, where string) {
		d.settle()
		d.is(where, plainTwo, "two\n")
		d.shown.WriteString("nobody asked")
		d.silent()
	})
}

// Who has lost the record of what is managed takes what is there for somebody
// else's. A secret of the spec is not: it is copied nowhere, and does not come
// back when it is dropped.
func TestSecret_RecordLost(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		d := onFirst(t)
		for _, f := range []string{"managed.json", "managed.copy.json"} {
			if d.remove("/var/lib/gitopsd/" + f); damaged {
				d.write("/var/lib/gitopsd/"+f, "{")
			}
		}
		d.assign(2, "v1.1.0", d.spec(plainTwo, "two\n", nil))
		d.wantOnce(0, "updated")
		d.look()
		d.silent()
		d.assign(3, "v1.2.0", filesSpec(map[string]string{"/etc/edge/beside": "three\n"}, nil))
		d.wantOnce(0, "updated")
		if got := d.content(secretFile); got != "" {
			t.Errorf("dropped, it is %q", got)
		}
	}
}
