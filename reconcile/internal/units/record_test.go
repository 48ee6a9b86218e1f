package units

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// What a newer agent wrote besides is left out of account: an older one that
// comes back still knows what the units were before.
func TestRecordOfANewerAgent(t *testing.T) {
	d := base(t)
	bare := d.is()
	d.must(oldSpec())
	p := filepath.Join(d.dir, "var/lib/gitopsd/units.json")
	text, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.NewReplacer(`"format"`, `"later": {"x": [1]}, "format"`, `"file"`, `"later": 1, "file"`).Replace(string(text))
	if strings.Count(newer, "later") < 3 {
		t.Fatalf("the record is %s", text)
	}
	d.write(p, newer)
	d.must(&schema.Spec{})
	if got := d.is(); got != bare || len(d.warned) > 0 {
		t.Errorf("dropped, the device is\n%s\nwant\n%s\nwarnings %v", got, bare, d.warned)
	}
}

// What is no record is set aside, and told.
func TestRecordThatIsNone(t *testing.T) {
	for _, text := range []string{"", "null", "{}", `{"format":1}{"format":1}`, `{"format":2}`, `{"format":1,"before":{"a.service":null}}`} {
		d := newDevice(t)
		p := filepath.Join(d.dir, "var/lib/gitopsd/units.json")
		if err := os.Mkdir(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		d.write(p, text)
		root, _, _ := d.open()
		root.Close()
		if left, _ := filepath.Glob(p + ".*"); len(left) != 1 || len(d.warned) != 1 {
			t.Errorf("%q: set aside %v, warned %q", text, left, d.warned)
		}
	}
}

func (d *device) write(host, text string) {
	d.t.Helper()
	if err := os.WriteFile(host, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}
