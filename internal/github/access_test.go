package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/internal/githubtest"
)

// away is a network without a way to GitHub.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to host")
}

// Whoever asks once has to do something: nothing goes on by itself.
func TestCheckHasARemedyForNoAnswer(t *testing.T) {
	cfg := newWorld(t).config()
	cfg.Transport = away{}
	list, err := Check(context.Background(), cfg)
	if err != nil || len(list) != 1 || list[0].OK || strings.Contains(list[0].Remedy, "tried again") || !strings.Contains(list[0].Remedy, "github.apiURL") {
		t.Errorf("%v: %+v", err, list)
	}
}

// A person at a terminal does not wait for an hour until the rate limit is over.
func TestCheckWaitsForNoLimit(t *testing.T) {
	for limit := range 4 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.server.SetLimit(limit)
			began := time.Now()
			list, err := Check(t.Context(), w.config())
			if took := time.Since(began); took > checkLimit {
				t.Errorf("with %d requests it took %v", limit, took)
			}
			if last := list[len(list)-1]; limit < 2 && (err != nil || last.OK || !strings.Contains(last.Detail, "limit")) {
				t.Errorf("with %d requests: %+v, %v", limit, list, err)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	without := func(names ...string) map[string]string {
		may := githubtest.AllPermissions()
		for _, n := range names {
			delete(may, n)
		}
		return may
	}
	text := func(list []Finding) string {
		var b strings.Builder
		for _, f := range list {
			mark := "ok"
			if !f.OK {
				mark = "WRONG"
				if f.Remedy == "" {
					mark = "WRONG without a remedy"
				}
			}
			fmt.Fprintf(&b, "%s %s\n", mark, f.Name)
		}
		return b.String()
	}
	const begin = "ok credentials\nok repository\n"
	cases := []struct {
		name string
		set  func(w *world, c *Config)
		want string
	}{
		{"token", func(*world, *Config) {}, begin + "ok Pull requests: read and write\nok Commit statuses: read and write\nok Checks: read and write\n"},
		{"token that only reads", func(w *world, c *Config) {
			w.server.AddToken(testToken, testLogin, map[string]string{"metadata": "read", "pull_requests": "read", "statuses": "read"})
		}, begin + "WRONG Pull requests: read and write\nWRONG Commit statuses: read and write\nok Checks: read and write\n"},
		{"token without comments", func(w *world, c *Config) {
			w.server.AddToken(testToken, testLogin, without("pull_requests"))
		}, begin + "WRONG Pull requests: read and write\nok Commit statuses: read and write\nok Checks: read and write\n"},
		{"classic", func(w *world, c *Config) { w.server.AddClassicToken(testToken, testLogin, "repo, read:org") },
			begin + "ok Pull requests: read and write\nok Commit statuses: read and write\nok Checks: read and write\n"},
		{"revoked", func(w *world, c *Config) { w.server.Revoke(testToken) }, "WRONG credentials\n"},
		{"other repository", func(w *world, c *Config) { c.Repository = "acme/flee" }, "ok credentials\nWRONG repository\n"},
		{"app", func(w *world, c *Config) { w.asApp(nil)(c) },
			begin + "ok Pull requests: read and write\nok Commit statuses: read and write\nok Checks: read and write\n"},
		{"app without checks", func(w *world, c *Config) { w.asApp(without("checks", "statuses"))(c) },
			begin + "ok Pull requests: read and write\nWRONG Commit statuses: read and write\nWRONG Checks: read and write\n"},
		{"app that only reads", func(w *world, c *Config) {
			w.asApp(map[string]string{"metadata": "read", "pull_requests": "read", "statuses": "read", "checks": "read"})(c)
		}, begin + "WRONG Pull requests: read and write\nWRONG Commit statuses: read and write\nWRONG Checks: read and write\n"},
		{"app that is not installed", func(w *world, c *Config) {
			w.asApp(nil)(c)
			w.server.AddApp(w.t, 12, 0, "fleet-app", nil, 0)
		}, "ok credentials\nWRONG repository\n"},
		{"no file", func(w *world, c *Config) { c.TokenFile = w.dir + "/nothing" }, "WRONG credentials\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				cfg := w.config()
				c.set(w, &cfg)
				list, err := Check(context.Background(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if got := text(list); got != c.want {
					t.Errorf("found\n%s\nwant\n%s\n%+v", got, c.want, list)
				}
				for _, r := range w.server.Writes() {
					if r.Status < 400 {
						t.Errorf("it wrote something: %s", r)
					}
				}
				w.noSecrets()
			})
		})
	}
}
