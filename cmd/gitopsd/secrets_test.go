package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// No output, log line, status document, report or state file has a credential
// in any form, whichever way it was given and whether the repository can be
// reached, refuses, or works.
func TestB124_NoSecretAnywhere(t *testing.T) {
	const secret = "hunter2%/@ä"
	dir := t.TempDir()
	bare := gitserver.Bare(t, dir, "fleet.git")
	server := gitserver.New(t, dir)
	clone := starterFleet(t)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "fleet"}, {"push", "-q", bare, "HEAD:main"}} {
		gitserver.Git(t, clone, args...)
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	state, root := filepath.Join(t.TempDir(), "state"), t.TempDir()
	userinfo := func(address string) string {
		return strings.Replace(address, "://", "://"+url.UserPassword("bot", secret).String()+"@", 1) + "/fleet.git"
	}
	ways := map[string][]string{
		"user info":  {"GITOPSD_REPO=" + userinfo(server.URL)},
		"unreadable": {"GITOPSD_REPO=" + strings.Replace(userinfo(server.URL), "%25", "%zz", 1)},
		"nobody":     {"GITOPSD_REPO=" + userinfo("http://127.0.0.1:1")},
		"query":      {"GITOPSD_REPO=" + server.URL + "/fleet.git?private_token=" + url.QueryEscape(secret)},
		"file":       {"GITOPSD_REPO=" + server.URL + "/fleet.git", "GITOPSD_PASSWORD_FILE=" + file, "GITOPSD_USERNAME=bot"},
		"token file": {"GITOPSD_REPO=" + server.URL + "/fleet.git", "GITOPSD_TOKEN_FILE=" + file},
	}
	commands := [][]string{
		{"serve", "--once", "--state", state, "--log-level", "debug"},
		{"agent", "--once", "--device", "gw-1", "--root", root, "--log-level", "debug", "--log-format", "json"},
		{"serve", "--once", "--state", state, "--log-level", "debug", "--log-format", "json"},
		{"agent", "--once", "--device", "gw-1", "--root", root, "--log-level", "debug"},
		{"status"}, {"status", "-o", "json"}, {"explain", "gw-1"}, {"plan", clone}, {"config", "show", "serve"}, {"config", "show", "agent", "-o", "json"},
	}
	var said []string
	worked := 0
	for way, env := range ways {
		for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
			"works": nil,
			"repeats": func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprintf(w, "%s %s", r.Header.Get("Authorization"), r.URL)
				return true
			},
		} {
			server.Intercept(answer)
			for _, args := range commands {
				var out, errs bytes.Buffer
				code := run(context.Background(), args, strings.NewReader(""), &out, &errs, append(env, "HOME="+dir))
				if code == exitOK {
					worked++
				}
				said = append(said, fmt.Sprintf("%s, %s, %v: %s%s", way, name, args, &out, &errs))
			}
		}
	}
	server.Intercept(nil)
	if worked < 15 {
		t.Errorf("only %d commands worked:\n%s", worked, strings.Join(said, "\n"))
	}
	for _, folder := range []string{state, root, bare} {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				data, err := os.ReadFile(path)
				said = append(said, path+": "+string(data))
				return err
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range strings.Fields(gitserver.Git(t, bare, "for-each-ref", "--format=%(refname)")) {
		for _, path := range strings.Fields(gitserver.Git(t, bare, "ls-tree", "-r", "--name-only", ref)) {
			said = append(said, ref+":"+path+": "+gitserver.Git(t, bare, "show", ref+":"+path))
		}
		said = append(said, gitserver.Git(t, bare, "log", "--format=full", ref))
	}
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), "hunter2",
		base64.StdEncoding.EncodeToString([]byte("bot:" + secret)), base64.StdEncoding.EncodeToString([]byte(secret))}
	for _, text := range said {
		for _, form := range forms {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("%q is in: %.300s … %.200s", form, text, text[max(0, i-100):])
				break
			}
		}
	}
}
