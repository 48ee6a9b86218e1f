package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func starterFleet(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	if _, err := writeStarter(dir, partFleet); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What a repository holds never steers the terminal of whoever looks at it.
func TestHostileNamesAreHarmless(t *testing.T) {
	dir := starterFleet(t)
	const evil = "x\x1b]0;owned\x07\x1b[31m\u202e"
	for path, text := range map[string]string{
		"devices/" + evil + ".yaml":    "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: y}\nspec: {}\n",
		"devices/bad.yaml":             "apiVersion: gitopsd.dev/v1alpha1\nkind: \"" + `\e[31m\u202e` + "\"\nmetadata: {name: bad}\nspec: {}\n",
		"policies/" + "second.yaml":    "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: second}\nspec: {releaseLine: \"" + `\e[31m\a` + "\"}\n",
		"overlays/unknown.yaml":        "apiVersion: gitopsd.dev/v1alpha1\nkind: Overlay\nmetadata: {name: unknown}\nspec: {\"" + `\e[31m` + "\": 1}\n",
		"releases/gateways/v1.1.0.yml": "x: 1\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"validate", dir}, {"plan", dir}, {"render", evil, dir}, {"validate", dir + evil}, {evil}, {"validate", "--" + evil}, {"schema", evil}} {
		var out, errs bytes.Buffer
		code := run(context.Background(), args, strings.NewReader(""), &out, &errs, nil)
		if code == exitOK {
			t.Errorf("%q: exit code 0", args)
		}
		for _, text := range []string{out.String(), errs.String()} {
			if i := strings.IndexAny(text, "\x1b\x07\u202e"); i >= 0 {
				t.Errorf("%q: a control character at %d of\n%q", args, i, text)
			}
		}
	}
}

// A command that is proposed can be copied, whatever folders are called.
func TestProposedCommandsCanBeCopied(t *testing.T) {
	t.Chdir(t.TempDir())
	const dir = "a fleet; ls"
	bare := filepath.Join("bare "+dir, "refs")
	for _, folder := range []string{dir, bare, filepath.Join("bare "+dir, "objects"), "empty " + dir} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join("bare "+dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := writeStarter(dir, partFleet); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policies", "x.yaml"), []byte("x: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "no " + dir}, "gitopsd init 'no a fleet; ls'"},
		{[]string{"plan", "empty " + dir}, "gitopsd init 'empty a fleet; ls'"},
		{[]string{"plan", dir}, "gitopsd validate 'a fleet; ls' checks"},
		{[]string{"init", "--parts", "fleet", dir}, "gitopsd init 'a fleet; ls-2'"},
		{[]string{"init", "bare " + dir}, "git clone 'bare a fleet; ls' fleet"},
		{[]string{"validate", "bare " + dir}, "git clone 'bare a fleet; ls'"},
	} {
		var out, errs bytes.Buffer
		run(context.Background(), c.args, strings.NewReader(""), &out, &errs, nil)
		if !strings.Contains(errs.String(), c.want) {
			t.Errorf("%q: want %q in\n%s", c.args, c.want, errs.String())
		}
	}
}

// What could not be written was not done, whichever way a command prints.
func TestFullStandardOutputIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	dir := starterFleet(t)
	for _, args := range [][]string{
		{"agent", "reset", "--dry-run", "--root", t.TempDir()}, {"version"}, {"version", "-o", "json"}, {"render", "gw-example-01", dir},
		{"validate", "--explain", "list"}, {"brake"}, {"--help"}, {"completion", "bash"}, {"pause", "--all", dir, "--reason", "x", "--dry-run"},
	} {
		var errs bytes.Buffer
		if code := run(context.Background(), args, strings.NewReader(""), full, &errs, nil); code != exitCannot || strings.Count(errs.String(), "no space left on device") != 1 {
			t.Errorf("%q: exit code %d, %s", args, code, errs.String())
		}
	}
}

func TestCredentialsAreRedacted(t *testing.T) {
	for in, want := range map[string]string{
		"https://x:secret@host/r.git":                    "https://host/r.git",
		"a ssh://git:p%40ss@host/r and http://t@h/ more": "a ssh://host/r and http://h/ more",
		"https://x:se@cret@host/r":                       "https://host/r",
		"git@host:path, mail@example.com":                "git@host:path, mail@example.com",
		"https://host/path@v1":                           "https://host/path@v1",
		"see https://host/r.git?private_token=x%2F: no":  "see https://host/r.git no",
		"is it ssh://host/r? and what, file?x=1":         "is it ssh://host/r and what, file?x=1",
	} {
		if got := redactText(in); got != want {
			t.Errorf("redactText(%q) = %q, want %q", in, got, want)
		}
		var b bytes.Buffer
		if n, err := (&redactingWriter{w: &b}).Write([]byte(in)); n != len(in) || err != nil || b.String() != want {
			t.Errorf("Write(%q) = %d, %v and wrote %q", in, n, err, &b)
		}
	}
}

func TestHasPassword(t *testing.T) {
	for in, want := range map[string]bool{
		"/srv/git/fleet.git": false, "https://host/r.git": false, "ssh://git@host/r.git": false, "git@host:r.git": false,
		"https://ops@host/r.git": false, "https://0123456789abcdef0123@host/r.git": true, "https://x:y@host/r.git": true, "ssh://git:y@host/r.git": true, "https://x:%zz@host/": true,
		"https://host/r.git?private_token=x": true, "https://host/%zz?private_token=x": true, "/srv/what?.git": false,
	} {
		if got := hasPassword(in); got != want {
			t.Errorf("hasPassword(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestStateFolder(t *testing.T) {
	for _, c := range []struct {
		asked string
		env   environment
		want  string
	}{
		{"/x", environment{"STATE_DIRECTORY": "/y"}, "/x"},
		{"", environment{"STATE_DIRECTORY": "/y:/z", "HOME": "/h"}, "/y"},
		{"", environment{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/gitopsd"},
		{"", environment{"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/gitopsd"},
	} {
		got, err := stateBase(c.asked, c.env)
		if err != nil || got != c.want {
			t.Errorf("stateBase(%q, %v) = %q, %v; want %q", c.asked, c.env, got, err, c.want)
		}
	}
	if _, err := stateBase("", environment{}); exitCode(err) != exitUsage {
		t.Errorf("without any folder: %v", err)
	}
	a, b := folderName("https://a:b@host/fleet.git"), folderName("https://host/fleet.git/")
	if a != b || !strings.HasPrefix(a, "fleet-") {
		t.Errorf("a rotated credential moves the state: %q and %q", a, b)
	}
	if c := folderName("https://other/fleet.git"); c == a {
		t.Errorf("two repositories share %q", c)
	}
	if name := folderName("https://host/../" + strings.Repeat("x", 300) + "%2f\x00"); strings.ContainsAny(name, "/\x00") || len(name) > 60 {
		t.Errorf("an unsafe name: %q", name)
	}
}

// An empty value is mostly a variable of a script that is not set: reset of the
// device below --root "$DEVICE" must not become that of this machine.
func TestNoFlagTakesAnEmptyValue(t *testing.T) {
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "reason", strings.HasPrefix(f.Value.Type(), "string") && f.Value.Type() != "string": // have words of their own for it
			case f.Value.Set("") == nil:
				t.Errorf("%s --%s '' is taken", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			all(sub)
		}
	}
	all(newRoot(&app{out: io.Discard, err: io.Discard}))
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"agent", "reset", "--dry-run", "--root", ""}, strings.NewReader(""), &out, &errs, nil); code != exitUsage || !strings.Contains(errs.String(), "--root") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}
