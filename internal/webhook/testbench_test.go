package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testSecret = "it's a secret to everybody"
	commitA    = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB    = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	zeros      = "0000000000000000000000000000000000000000"
)

// bench is hooks with somebody who notes what they are told.
type bench struct {
	t       testing.TB
	hooks   *Hooks
	secrets string // the file
	logs    *bytes.Buffer

	mu    sync.Mutex
	now   time.Time
	heard []string
	ids   int
}

func newBench(t testing.TB, edits ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, secrets: filepath.Join(t.TempDir(), "secret"), logs: &bytes.Buffer{}, now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	b.rotate(testSecret + "\n")
	note := func(format string, args ...any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, fmt.Sprintf(format, args...))
	}
	cfg := Config{
		SecretFile: b.secrets, URL: "https://git.example.com/acme/fleet.git", Branch: "main",
		Push:        func(p Push) { note("push %s %.1s..%.1s", p.Branch, p.Before, p.Commit) },
		Sweep:       func() { note("sweep") },
		PullRequest: func(p PullRequest) { note("pull request %d %s %.1s", p.Number, p.Action, p.Head) },
		Now: func() time.Time {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.now
		},
		Logger: slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	hooks, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.hooks = hooks
	return b
}

func (b *bench) rotate(content string) {
	b.t.Helper()
	if err := os.WriteFile(b.secrets, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// take gives what the hooks told since the last time.
func (b *bench) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	heard := strings.Join(b.heard, "; ")
	b.heard = nil
	return heard
}

func sign(secret string, parts ...string) string {
	sum := hmac.New(sha256.New, []byte(secret))
	for _, part := range parts {
		sum.Write([]byte(part))
	}
	return "sha256=" + hex.EncodeToString(sum.Sum(nil))
}

// request is a signed delivery of its own id, as JSON.
func (b *bench) request(event, body string) *http.Request {
	b.ids++
	r := httptest.NewRequest(http.MethodPost, PathGitHub, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(headerEvent, event)
	r.Header.Set(headerDelivery, fmt.Sprintf("72d3162e-cc78-11e3-81ab-%012d", b.ids))
	r.Header.Set(headerSignature, sign(testSecret, body))
	return r
}

func (b *bench) do(r *http.Request) (status int, text string) {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.hooks.Handlers()[strings.TrimSuffix(r.URL.Path, "/")].ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (b *bench) want(r *http.Request, status int, heard string) {
	b.t.Helper()
	got, text := b.do(r)
	if told := b.take(); got != status || told != heard {
		b.t.Errorf("%d %q and told %q, want %d and %q", got, text, told, status, heard)
	}
}

const acme = `"repository": {"full_name": "acme/fleet", "html_url": "https://git.example.com/acme/fleet", "clone_url": "https://git.example.com/acme/fleet.git"}`

func pushBody(ref, before, after string) string {
	return fmt.Sprintf(`{"ref": %q, "before": %q, "after": %q, "commits": [{"id": %q, "author": {"name": "gitopsd"}, "modified": ["devices/x.yaml"]}], %s}`, ref, before, after, after, acme)
}

func pullBody(action, base, more string) string {
	return fmt.Sprintf(`{"action": %q, "number": 7, "pull_request": {"head": {"sha": %q}, "base": {"ref": %q}}, %s %s}`, action, commitB, base, more, acme)
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}
