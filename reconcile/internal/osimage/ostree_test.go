package osimage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// a, b and c are commits.
var a, b, c = strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)

// listed puts a program in ostree's place that keeps a list of deployments as
// ostree prints it, in the folder it runs in. The booted system cannot be
// deployed anew by it.
func listed(t *testing.T, list string) (d *ostree, dir string) {
	t.Helper()
	bin, dir := t.TempDir(), t.TempDir()
	program := `#!/bin/sh
set -e
case "$1 $2" in
"admin status") cat list ;;
"admin undeploy")
	if [ -e slow ]; then touch begun; sleep 0.3; fi
	sed -i "$(($4 * 2 + 1)),$(($4 * 2 + 2))d" list; head -n 1 list >> defaults ;;
"admin set-default")
	n=$(($4 * 2 + 1))
	{ sed -n "$n,$((n + 1))p" list; sed "$n,$((n + 1))d" list; } > new
	mv new list; head -n 1 list >> defaults ;;
*) echo "unknown: $*" >&2; exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "ostree"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "list"), []byte(strings.NewReplacer("A", a, "B", b, "C", c).Replace(list)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	d, _ = New(dir, &schema.OSConfig{Driver: schema.OSTree, Remote: "edge"}).(*ostree)
	return d, dir
}

const origin = "    origin refspec: edge:edge/stable\n"

// What is wanted next is booted next, whatever else is deployed or staged, and
// nothing else on the way there.
func TestB103_OSTreeUndo(t *testing.T) {
	for _, o := range []struct {
		name, list, to string
		want           string // first in the list, after each step
		fails          string
	}{
		{"staged is dropped", "  edge B.0 (staged)\n" + origin + "* edge A.0\n" + origin + "  edge C.0 (rollback)\n" + origin, a, "* edge A.0", ""},
		{"pending and staged are dropped", "  edge B.0 (staged)\n" + origin + "  edge C.0 (pending)\n" + origin + "* edge A.0\n" + origin, a, "  edge C.0 (pending) * edge A.0", ""},
		{"nothing to do", "* edge A.0\n" + origin + "  edge C.0 (rollback)\n" + origin, a, "", ""},
		{"the kept one", "* edge B.0\n" + origin + "  edge A.0 (rollback)\n" + origin, a, "  edge A.0 (rollback)", ""},
		{"the kept one of three", "* edge B.0\n" + origin + "  edge C.0 (rollback)\n" + origin + "  edge A.0\n" + origin, a, "  edge A.0", ""},
		{"behind a staged one", "  edge C.0 (staged)\n" + origin + "* edge B.0\n" + origin + "  edge A.0 (rollback)\n" + origin, a, "* edge B.0   edge A.0 (rollback)", ""},
		{"not kept", "  edge C.0 (staged)\n" + origin + "* edge B.0\n" + origin, a, "", "no deployment of it was kept"},
	} {
		t.Run(o.name, func(t *testing.T) {
			d, dir := listed(t, o.list)
			err := d.Undo(t.Context(), o.to)
			if (err != nil) != (o.fails != "") || (err != nil && !strings.Contains(err.Error(), o.fails)) {
				t.Fatalf("%v, want %q", err, o.fails)
			}
			got, _ := os.ReadFile(filepath.Join(dir, "defaults"))
			want := strings.NewReplacer("A", a, "B", b, "C", c).Replace(o.want)
			if said := strings.TrimSuffix(strings.ReplaceAll(string(got), "\n", " "), " "); said != want {
				t.Errorf("booted next in turn: %q, want %q", said, want)
			}
		})
	}
}

// What has begun to change the boot entries comes to its end.
func TestOSTreeUndo_AgentStopped(t *testing.T) {
	d, dir := listed(t, "  edge B.0 (staged)\n"+origin+"* edge A.0\n"+origin)
	if err := os.WriteFile(filepath.Join(dir, "slow"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Undo(ctx, a) }()
	for {
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		runtime.Gosched()
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "defaults")); string(got) != "* edge "+a+".0\n" {
		t.Errorf("booted next is %q", got)
	}
}

func TestOSTreeStatus(t *testing.T) {
	for _, o := range []struct{ name, list, booted, staged, fails string }{
		{"one", "* edge A.0\n" + origin, a, "", ""},
		{"staged", "  edge B.1 (staged)\n    Version: 2\n" + origin + "* edge A.0\n" + origin, a, b, ""},
		{"with signatures", "  edge B.0 (pending)\n" + origin + "    GPG: Signature made\n         Good signature from \"Edge\"\n* edge A.0\n" + origin, a, b, ""},
		{"none", "No deployments.\n", "", "", "does not begin with a deployment"},
		{"cut off at its beginning", "bb.0\n" + origin + "* edge A.0\n", "", "", "does not begin with a deployment"},
	} {
		t.Run(o.name, func(t *testing.T) {
			d, _ := listed(t, o.list)
			booted, err := d.Booted(t.Context())
			if o.fails != "" {
				if err == nil || !strings.Contains(err.Error(), o.fails) {
					t.Fatalf("%v, want %q", err, o.fails)
				}
				return
			}
			staged, err2 := d.Staged(t.Context())
			if err != nil || err2 != nil || booted != o.booted || staged != o.staged {
				t.Errorf("booted %q (%v), staged %q (%v)", booted, err, staged, err2)
			}
		})
	}
	d, _ := listed(t, "* edge A.0\n"+origin+"  edge B.0 (rollback)\n"+origin)
	for version, want := range map[string]bool{a: true, b: true, c: false} {
		if has, err := d.Has(t.Context(), version); has != want || err != nil {
			t.Errorf("it has %s: %t, %v", version, has, err)
		}
	}
	d, _ = listed(t, "  edge A.0\n"+origin)
	d.root = "/"
	if all, _, err := d.deployments(t.Context()); err == nil {
		t.Errorf("%v are deployments, and one of them is booted", all)
	}
}

func TestOSTreeRefusesWhatIsNoImage(t *testing.T) {
	d, _ := listed(t, "* edge A.0\n"+origin)
	for _, image := range []string{"", "--repo=/tmp/x", "other:edge/stable", "a b"} {
		if _, err := d.Fetch(t.Context(), image); err == nil || failure.From(err).Class != schema.ClassPermanent {
			t.Errorf("%q: %v", image, err)
		}
	}
	if err := d.Stage(t.Context(), "edge/stable"); failure.From(err).Class != schema.ClassPermanent {
		t.Error(err)
	}
	if drivers := []string{New("/", &schema.OSConfig{}).Name(), d.Name()}; !slices.Equal(drivers, []string{schema.OSCommand, schema.OSTree}) {
		t.Error(drivers)
	}
}
