package osimage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// bootcHost gives a device that runs the stand-in for bootc, with these files of
// its state.
func bootcHost(t *testing.T, state map[string]string) (d Driver, file func(name string) string) {
	t.Helper()
	bin, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, "test-bootc", name) }
	if err := os.Mkdir(at(""), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range state {
		if err := os.WriteFile(at(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return New(root, &schema.OSConfig{Driver: schema.OSBootc}), func(name string) string {
		data, _ := os.ReadFile(at(name))
		return strings.TrimSpace(string(data))
	}
}

const registry = `quay.io/edge/os:6 sha256:6
quay.io/edge/os@sha256:6 sha256:6
quay.io/edge/os:7 sha256:7
localhost:5000/os sha256:9
quay.io/edge/os@sha256:list sha256:8
`

func TestBootc(t *testing.T) {
	for _, c := range []struct{ name, image, fetched, staged string }{
		{"a tag", "quay.io/edge/os:7", "", "quay.io/edge/os@sha256:7"},
		{"no tag, and a port", "localhost:5000/os", "", "localhost:5000/os@sha256:9"},
		{"a digest", "quay.io/edge/os@sha256:list", "quay.io/edge/os@sha256:list", "quay.io/edge/os@sha256:list"},
		{"the tag that is booted, which has moved", "quay.io/edge/os:6", "", "quay.io/edge/os@sha256:6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := bootcHost(t, map[string]string{"booted": "quay.io/edge/os:6 sha256:5\n", "registry": registry})
			ctx := t.Context()
			if got, err := d.Fetch(ctx, c.image); got != c.fetched || err != nil {
				t.Errorf("fetched: %q, %v", got, err)
			}
			for range 2 { // again after a crash
				if err := d.Stage(ctx, c.image); err != nil {
					t.Fatal(err)
				}
				booted, err := d.Booted(ctx)
				staged, err2 := d.Staged(ctx)
				if booted != "quay.io/edge/os@sha256:5" || staged != c.staged || err != nil || err2 != nil {
					t.Errorf("booted %q (%v), staged %q (%v), want %q", booted, err, staged, err2, c.staged)
				}
			}
		})
	}
}

func TestBootcHas(t *testing.T) {
	d, _ := bootcHost(t, map[string]string{"booted": "quay.io/edge/os:6 sha256:6\n", "staged": "quay.io/edge/os:7 sha256:7\n", "rollback": "quay.io/edge/os:5 sha256:5\n"})
	for digest, want := range map[string]bool{"5": true, "6": true, "7": true, "8": false} {
		if has, err := d.Has(t.Context(), "quay.io/edge/os@sha256:"+digest); has != want || err != nil {
			t.Errorf("it has %s: %t, %v", digest, has, err)
		}
	}
}

// What is wanted next boots next, and never the third image.
func TestB103_BootcUndo(t *testing.T) {
	const a, b, c = "quay.io/edge/os:6 sha256:6\n", "quay.io/edge/os:7 sha256:7\n", "quay.io/edge/os:3 sha256:3\n"
	const six = "quay.io/edge/os@sha256:6"
	for _, o := range []struct {
		name  string
		state map[string]string
		next  string // after it; "" = what is booted
		ran   string
		fails string
	}{
		{"booted A, staged B, kept C", map[string]string{"booted": a, "staged": b, "rollback": c}, six, "switch --quiet " + six, ""},
		{"booted A, staged B", map[string]string{"booted": a, "staged": b}, six, "switch --quiet " + six, ""},
		{"booted A, C queued", map[string]string{"booted": a, "rollback": c, "queued": "yes"}, "", "rollback", ""},
		{"booted A", map[string]string{"booted": a, "rollback": c}, "", "", ""},
		{"booted B, kept A", map[string]string{"booted": b, "rollback": a}, six, "rollback", ""},
		{"booted B, staged C, kept A", map[string]string{"booted": b, "staged": c, "rollback": a}, six, "rollback", ""},
		{"booted B, A queued", map[string]string{"booted": b, "rollback": a, "queued": "yes"}, six, "", ""},
		{"booted B, kept C", map[string]string{"booted": b, "rollback": c}, "", "", "no deployment of it was kept"},
	} {
		t.Run(o.name, func(t *testing.T) {
			o.state["registry"] = registry
			d, file := bootcHost(t, o.state)
			err := d.Undo(t.Context(), six)
			if (err != nil) != (o.fails != "") || (err != nil && !strings.Contains(err.Error(), o.fails)) {
				t.Fatalf("%v, want %q", err, o.fails)
			}
			var ran []string
			for line := range strings.Lines(file("log")) {
				if !strings.HasPrefix(line, "status ") {
					ran = append(ran, strings.TrimSpace(line))
				}
			}
			next, err := d.Staged(t.Context())
			if got := strings.Join(ran, ", "); next != o.next || got != o.ran || err != nil {
				t.Errorf("next is %q (%v), want %q; it ran %q, want %q", next, err, o.next, got, o.ran)
			}
		})
	}
}

func TestBootc_Failures(t *testing.T) {
	d, _ := bootcHost(t, map[string]string{"booted": "quay.io/edge/os:6 sha256:6\n", "registry": registry})
	for _, image := range []string{"", "--apply", "a b", "docker://quay.io/edge/os:7"} {
		if _, err := d.Fetch(t.Context(), image); err == nil || failure.From(err).Class != schema.ClassPermanent {
			t.Errorf("%q: %v", image, err)
		}
	}
	if err := d.Stage(t.Context(), "quay.io/edge/os:99"); failure.From(err).Class != schema.ClassRetryable || !strings.Contains(err.Error(), "manifest unknown") {
		t.Error(err)
	}
	none, _ := bootcHost(t, map[string]string{"registry": registry})
	if _, err := none.Booted(t.Context()); err == nil || !strings.Contains(err.Error(), "not booted from an image") {
		t.Error(err)
	}
}
