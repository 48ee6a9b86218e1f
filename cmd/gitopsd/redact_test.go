package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// marker is the secret of these tests. No real message has it.
const marker = "Zq7Xv9"

// mistyped are repository names with the marker where a password or a token
// would be, in URLs as people type them: right, without a slash, with one too
// many, without a scheme, with a slash inside of the password.
func mistyped() []string {
	var list []string
	for _, scheme := range []string{
		"https://", "http://", "https:/", "https:///", "http:", "HTTPS://", "HTTP:/", "htps:/", "https//", "://", "//", "",
		"ssh://", "ssh:/", "git+ssh://", "git://", "file://", " https://",
	} {
		for _, secret := range []string{marker, marker + "/x", "p/" + marker, marker + "@y", "p@" + marker, "1/" + marker, "%zz" + marker, marker + "?", "p#" + marker, "p:" + marker, ":" + marker} {
			for _, rest := range []string{"h.invalid/r.git", "h.invalid:r.git", "h.invalid", "127.0.0.1:1/r.git", "127.0.0.1:1/a@b"} {
				list = append(list, scheme+"u:"+secret+"@"+rest)
			}
		}
		for _, tail := range []string{"?token=" + marker, "#" + marker, "?a=b@" + marker, "/?x&private_token=" + marker + "#x", "?" + marker + "@x"} {
			list = append(list, scheme+"127.0.0.1:1/r.git"+tail)
		}
	}
	return append(list, "ops:"+marker+"@h:repo", "me@x.invalid:"+marker+"@h:repo", "me@x.invalid:p/"+marker+"@h:repo", marker+"@h.invalid/x", "https://"+marker+":x@h.invalid/x", "https://"+marker+"@h.invalid/x")
}

func TestNoSecretOfAMistypedAddressIsShown(t *testing.T) {
	for _, in := range mistyped() {
		if got := redact(in); strings.Contains(got, marker) {
			t.Errorf("redact(%q) = %q", in, got)
		}
		lone := in == "https://"+marker+"@h.invalid/x" // a user name, as far as one can see
		if !hasPassword(in) && !lone {
			t.Errorf("hasPassword(%q) = false", in)
		}
		if name := folderName(in); strings.Contains(name, marker) {
			t.Errorf("folderName(%q) = %q", in, name)
		}
	}
}

// What commands print about a mistyped address, wherever it stands, has no
// part of its password.
func TestB124_NoSecretOfAMistypedAddress(t *testing.T) {
	dir, clone := t.TempDir(), starterFleet(t)
	state := filepath.Join(dir, "state")
	for n, repo := range mistyped() {
		// Every command with every address would take a minute: each address
		// is tried with some, and one in seven at all.
		if n%7 != 0 {
			continue
		}
		commands := [][]string{
			{"serve", "--once", "--state", state, "--log-level", "debug"}, {"status", "-o", "json"}, {"explain", "gw-1"}, {"plan", clone},
			{"agent", "--once", "--device", "gw-1", "--root", dir, "--log-format", "json"}, {"status"},
		}
		commands = [][]string{commands[n/7%len(commands)], {"config", "show", "serve"}, {"config", "show", "agent", "-o", "json"}}
		file := filepath.Join(dir, "serve.yaml")
		doc := fmt.Sprintf("apiVersion: gitopsd.dev/v1alpha1\nkind: ServeConfig\nspec:\n  repo:\n    url: %q\n", repo)
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		ways := []struct{ env, flags []string }{
			{env: []string{"GITOPSD_REPO=" + repo}},
			{env: []string{"GITOPSD_REPO=" + filepath.Join(dir, "none"), "GITOPSD_REPORTS_REPO=" + repo}},
		}
		if n%3 == 0 {
			ways = append(ways, struct{ env, flags []string }{flags: []string{"--repo", repo}})
		}
		for _, way := range ways {
			for _, args := range commands {
				check(t, append(append([]string(nil), args...), way.flags...), append(way.env, "HOME="+dir))
			}
		}
		check(t, []string{"config", "show", "serve", "--config", file}, []string{"HOME=" + dir})
	}
	err := filepath.WalkDir(state, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, marker) {
			t.Errorf("a file is named after the secret: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, args, env []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nothing is to be reached; what is said is said before
	var out, errs bytes.Buffer
	run(ctx, args, strings.NewReader(""), &out, &errs, env)
	if text := out.String() + errs.String(); strings.Contains(text, marker) {
		t.Errorf("%q with %q says: %s", args, env, text)
	}
}

func TestHarmlessAddressesAreShown(t *testing.T) {
	dir := t.TempDir()
	existing := filepath.Join(dir, "a@b?c#d:e@f")
	if err := os.Mkdir(existing, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, s := range []string{
		"/srv/git/fleet.git", "./fleet@v1", "../fleet.git", "fleet.git", "/srv/a@b/fleet.git", existing, filepath.Base(existing),
		"git@host:fleet.git", "git@[::1]:fleet.git", "host:fleet.git", "https://host/path@v1", "https://host:8443/r.git",
		"file:///srv/a@b/fleet.git", "ssh://host/~/fleet.git", "http://[::1]:80/r",
	} {
		if got := redact(s); got != s || hasPassword(s) {
			t.Errorf("redact(%q) = %q, hasPassword %v", s, got, hasPassword(s))
		}
	}
}
