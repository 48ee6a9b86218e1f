package files

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/seal"
	"github.com/gitopsd/gitopsd/schema"
)

// testIdentity is the key of all devices here, and testRecipient what their
// secrets are encrypted for; neither was ever anywhere else.
const (
	testIdentity  = "AGE-SECRET-KEY-1GD9DN5W2SZN3DVSXHYHKPW55E3QL25YVEJHHZKD4MVXW3F35KDJS74952S"
	testRecipient = "age1a3sue5eq4c8kpathx9z8h05y7rdaeman8eqnxmh6ylwd28z7lvjseznw4g"
)

// newIdentity writes the key into a file.
func newIdentity(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(file, []byte(testIdentity), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// secret is a file of a spec; each call encrypts anew.
func secret(content, mode string) *schema.File {
	to, err := seal.Recipients(testRecipient)
	if err != nil {
		panic(err)
	}
	sealed, err := seal.Encrypt([]byte(content), to...)
	if err != nil {
		panic(err)
	}
	return &schema.File{Secret: sealed, Mode: mode}
}

func spec(files map[string]*schema.File) *schema.Spec { return &schema.Spec{Files: files} }

// A secret is a file as any other, but for its mode.
func TestSecret(t *testing.T) {
	d := newDevice(t)
	d.put("etc/p", "the user's", 0o644)
	d.apply(spec(map[string]*schema.File{"/etc/p": secret("one", ""), "/etc/q": secret("", "0440")}))
	if d.content("etc/p") != "one" || d.mode("etc/p") != "0600" || d.content("etc/q") != "" || d.mode("etc/q") != "0440" {
		t.Fatalf("\n%s", d.tree())
	}
	// Encrypted anew it is the same; what somebody changed is not.
	again := spec(map[string]*schema.File{"/etc/p": secret("one", ""), "/etc/q": secret("", "0440")})
	if changed := d.apply(again); len(changed) > 0 {
		t.Errorf("changed: %v", changed)
	}
	d.put("etc/p", "two", 0o600)
	if drift, err := d.ctl.Drift(again, nil); !slices.Equal(drift, []string{"/etc/p"}) || err != nil {
		t.Errorf("drift: %v, %v", drift, err)
	}
	if changed := d.apply(again); !slices.Equal(changed, []string{"/etc/p"}) || d.content("etc/p") != "one" {
		t.Errorf("changed: %v", changed)
	}
	d.apply(nil)
	if d.content("etc/p") != "the user's" || d.mode("etc/p") != "0644" || d.content("etc/q") != "missing" {
		t.Errorf("dropped:\n%s", d.tree())
	}
}

// A difference has nothing of what is in a secret.
func TestSecretIsNotCompared(t *testing.T) {
	d := newDevice(t)
	d.put("etc/p", "the user's", 0o644)
	list, err := d.ctl.Compare(spec(map[string]*schema.File{"/etc/p": secret("one", ""), "/etc/q": secret("two", "0644")}), nil)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, one := range list {
		if one.Err != nil || one.To.Size != 3 || one.To.Read != nil {
			t.Errorf("%+v", one)
		}
	}
}

// Without its key, a secret stops an update before anything changes; where drift
// is repaired, what can be done is done, and the file stays as it is until the key
// is there again. On the way back only what may have been written needs it.
func TestSecretWithoutItsKey(t *testing.T) {
	d := newDevice(t)
	before := spec(map[string]*schema.File{"/etc/a": file("a", ""), "/etc/p": secret("one", "")})
	after := spec(map[string]*schema.File{"/etc/a": file("b", ""), "/etc/p": secret("two", "")})
	d.apply(before)
	d.identities = nil
	d.start(nil)

	wrong := func(what string, err error) {
		t.Helper()
		if err == nil || class(err) != schema.ClassRetryable || !strings.Contains(err.Error(), "files /etc/p: no identity of this device opens it") {
			t.Errorf("%s: %v", what, err)
		}
	}
	was := d.tree()
	wrong("check", d.ctl.Check(after, nil))
	_, err := d.ctl.Apply(context.Background(), after, nil, Onward)
	wrong("apply", err)
	if d.tree() != was {
		t.Errorf("something has changed:\n%s\nwas\n%s", d.tree(), was)
	}
	if list, err := d.ctl.Compare(after, nil); len(list) != 2 || list[1].Err == nil || list[0].Err != nil || err != nil {
		t.Errorf("compared: %+v, %v", list, err)
	}

	for _, way := range []Way{Back, Repair} {
		d.put("etc/a", "c", 0o644)
		changed, err := d.ctl.Apply(context.Background(), before, nil, way)
		if way == Repair {
			wrong("repair", err)
		} else if err != nil {
			t.Errorf("way back: %v", err)
		}
		if !slices.Equal(changed, []string{"/etc/a"}) || d.content("etc/a") != "a" || d.content("etc/p") != "one" {
			t.Errorf("way %v: changed %v\n%s", way, changed, d.tree())
		}
		_, err = d.ctl.Drift(before, nil)
		wrong("drift", err)
	}

	d.identities = []string{newIdentity(t)}
	d.start(nil)
	d.apply(after)
	if d.content("etc/p") != "two" || d.content("etc/a") != "b" {
		t.Errorf("with the key:\n%s", d.tree())
	}
	if err := d.ctl.Check(spec(map[string]*schema.File{"/etc/p": {Secret: "x"}}), nil); class(err) != schema.ClassPermanent {
		t.Errorf("a damaged one: %v", err)
	}
}

// The record never says more of a secret than its file holds, wherever power
// goes on the way there, or back with the key: without it, the way back then ends
// on the old one, or says that it does not.
func TestSecretMarkAtEveryStep(t *testing.T) {
	before := spec(map[string]*schema.File{"/etc/p": secret("one", ""), "/etc/q": secret("both", ""), "/etc/r": secret("gone", "")})
	after := spec(map[string]*schema.File{"/etc/p": secret("two", ""), "/etc/q": secret("both", "")})
	for _, back := range []bool{false, true} {
		steps, whole := 0, 0
		for done := false; !done && !t.Failed(); steps++ {
			d := newDevice(t)
			d.identities = []string{newIdentity(t)}
			d.start(nil)
			d.apply(before)
			was := d.tree()
			there, crash := crashAt(steps), crashAt(steps)
			if back {
				there = nil
			}
			d.start(there)
			_, err := d.ctl.Apply(context.Background(), after, nil, Onward)
			if back {
				d.start(crash)
				_, err = d.ctl.Apply(context.Background(), before, nil, Back)
			}
			done = err == nil
			d.identities = nil
			d.start(nil)
			switch _, err = d.ctl.Apply(context.Background(), before, nil, Back); {
			case err == nil && d.tree() != was:
				t.Errorf("back %v, step %d: it says that it is back, and is\n%s", back, steps, d.tree())
			case err == nil:
				whole++
			case !strings.Contains(err.Error(), "files /etc/p: no identity"), strings.Contains(err.Error(), "/etc/q"), strings.Contains(err.Error(), "/etc/r"):
				t.Errorf("back %v, step %d: %v", back, steps, err)
			}
		}
		if steps < 5 || !back && whole == 0 || whole == steps {
			t.Errorf("back %v: %d of %d ways back needed no key", back, whole, steps)
		}
	}
}
