package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a newer agent wrote besides is left out of account: an older one that
// comes back knows all that it would have written itself.
func TestRecordOfANewerAgent(t *testing.T) {
	d := base(t)
	bare := d.tree()
	d.apply(oldSpec())
	for _, name := range []string{"managed.json", "managed.copy.json"} {
		p := filepath.Join(d.dir, state, name)
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		newer := strings.ReplaceAll(string(text), "{", `{"later":{"x":[1]},`)
		newer = strings.Replace(newer, `"entries": {"later":{"x":[1]},`, `"entries": {`, 1)
		if err := os.WriteFile(p, []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.start(nil)
	d.apply(nil)
	if got := d.tree(); got != bare || len(d.warns) > 0 {
		t.Errorf("dropped, the device is\n%s\nwant\n%s\nwarnings %v", got, bare, d.warns)
	}
}
