package osimage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

func sh(script string) []string { return []string{"sh", "-c", script, "sh"} }

// slots is an updater with files for its slots.
func slots() *schema.OSConfig {
	return &schema.OSConfig{
		Booted: sh("cat booted"), Staged: sh("cat staged 2>/dev/null || :"), Stage: sh(`printf '%s' "$1" >staged`), Undo: sh("rm -f staged"),
		Reboot: sh(`if test -f staged; then mv staged booted; fi; echo "$GITOPSD_ROOT" >boot`), BootID: "/boot",
	}
}

func TestCommand(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "booted"), []byte("  v1 \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, ctx := Command(root, slots()), t.Context()
	is := func(what string, f func(context.Context) (string, error), want string) {
		t.Helper()
		if got, err := f(ctx); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", what, got, err, want)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is("booted", d.Booted, "v1")
	is("staged", d.Staged, "")
	do(d.Stage(ctx, "v2; touch x"))
	is("staged", d.Staged, "v2; touch x")
	do(d.Undo(ctx, "v1"))
	is("staged", d.Staged, "")
	do(d.Stage(ctx, "v2"))
	do(d.Reboot(ctx))
	is("booted", d.Booted, "v2")
	if id, err := d.BootID(); err != nil || id != root {
		t.Errorf("boot id %q, %v", id, err)
	}
	if _, err := os.Stat(filepath.Join(root, "x")); err == nil {
		t.Error("an image's name went through a shell")
	}
	if id, err := Command(root, nil).BootID(); err != nil || len(id) != 36 {
		t.Errorf("the kernel's boot id: %q, %v", id, err)
	}
}

func TestCommand_Failures(t *testing.T) {
	root := t.TempDir()
	bad := &schema.OSConfig{
		Booted: sh(":"), Staged: sh("echo a; echo b"), Stage: sh("echo no room >&2; exit 1"), Undo: []string{"/no/such/program"}, BootID: "/../../etc/hostname",
	}
	d, ctx := Command(root, bad), t.Context()
	_, booted := d.Booted(ctx)
	_, staged := d.Staged(ctx)
	_, bootID := d.BootID()
	for _, c := range []struct {
		what string
		err  error
		want schema.FailureClass
		says string
	}{
		{"prints nothing", booted, schema.ClassRetryable, "no version"},
		{"prints too much", staged, schema.ClassRetryable, "more than one line"},
		{"fails", d.Stage(ctx, "v2"), schema.ClassRetryable, "no room"},
		{"no image", d.Stage(ctx, ""), schema.ClassPermanent, "image"},
		{"an option for an image", d.Stage(ctx, "--force"), schema.ClassPermanent, "image"},
		{"missing", d.Undo(ctx, "v1"), schema.ClassPermanent, "/no/such/program"},
		{"not configured", d.Reboot(ctx), schema.ClassPermanent, "spec.os.reboot"},
		{"boot id outside the root", bootID, schema.ClassRetryable, "no such file"},
	} {
		f := failure.From(c.err)
		if c.err == nil || f.Class != c.want || f.Component != "os" || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v, want a %s failure that says %q", c.what, c.err, c.want, c.says)
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.Stage(stopped, "v2"); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
