package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPushes(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ ref, before, after, heard string }{
		{"refs/heads/main", commitA, commitB, "push main a..b"},
		{"refs/heads/main", zeros, commitB, "push main ..b"},
		{"refs/heads/main", commitA, zeros, "push main a.."},
		{"refs/heads/gitopsd/brake", commitA, commitB, "push gitopsd/brake a..b"},
		{"refs/heads/gitopsd/brake", commitA, zeros, "push gitopsd/brake a.."},
		{"refs/heads/feature", commitA, commitB, ""},
		{"refs/heads/main2", commitA, commitB, ""},
		{"refs/heads/Main", commitA, commitB, ""},
		{"refs/tags/main", commitA, commitB, ""},
		{"refs/gitopsd/devices/gw-1", commitA, commitB, ""},
	} {
		b.want(b.request("push", pushBody(c.ref, c.before, c.after)), http.StatusAccepted, c.heard)
	}
}

// The daemon's own pushes come back as deliveries, and must not bring a sweep,
// which would push, which would come back.
func TestB18_OwnPushBringsNothing(t *testing.T) {
	b := newBench(t)
	for _, ref := range []string{"refs/heads/gitopsd/status", "refs/heads/gitopsd/devices/gw-1", "refs/gitopsd/devices/gw-1", "refs/heads/gitopsd/reports/gw-1"} {
		b.want(b.request("push", pushBody(ref, commitA, commitB)), http.StatusAccepted, "")
	}
}

func TestPullRequests(t *testing.T) {
	b := newBench(t)
	rebased := `"changes": {"base": {"ref": {"from": "main"}, "sha": {"from": "` + commitA + `"}}},`
	for _, c := range []struct{ action, base, more, heard string }{
		{"opened", "main", "", "pull request 7 opened b"},
		{"synchronize", "main", "", "pull request 7 synchronize b"},
		{"reopened", "main", "", "pull request 7 reopened b"},
		{"closed", "main", "", "pull request 7 closed b"},
		{"edited", "main", `"changes": {"base": {"ref": {"from": "other"}}},`, "pull request 7 edited b"},
		{"edited", "other", rebased, "pull request 7 edited b"},
		{"edited", "main", `"changes": {"title": {"from": "x"}},`, ""},
		{"labeled", "main", "", ""},
		{"opened", "other", "", ""},
	} {
		b.want(b.request("pull_request", pullBody(c.action, c.base, c.more)), http.StatusAccepted, c.heard)
	}
	b = newBench(t, func(c *Config) { c.PullRequest = nil })
	b.want(b.request("pull_request", pullBody("opened", "main", "")), http.StatusAccepted, "")
}

func TestB113_WhatSendersTakeForSuccess(t *testing.T) {
	b := newBench(t)
	body := pushBody("refs/heads/main", commitA, commitB)
	b.want(b.request("ping", `{"zen": "Keep it logically awesome.", "hook_id": 1}`), http.StatusOK, "")
	for _, event := range []string{"issues", "workflow_run", "no such event", "push2", strings.Repeat("x", 5000)} {
		r := b.request(event, `{"action": "opened"}`)
		status, text := b.do(r)
		if status != http.StatusAccepted || !strings.HasPrefix(text, "ignored") || b.take() != "" {
			t.Errorf("%q: %d %q", event, status, text)
		}
	}
	r := b.request("push", body)
	r.Header.Del(headerEvent)
	b.want(r, http.StatusBadRequest, "")
	b.want(b.request("push", ""), http.StatusBadRequest, "")
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		for path, h := range b.hooks.Handlers() {
			r := b.request("push", body)
			r.Method, r.Body = method, io.NopCloser(unread{t})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
				t.Errorf("%s %s: %d, Allow: %q", method, path, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}
