package github

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gitopsd/gitopsd/internal/comment"
	"github.com/gitopsd/gitopsd/internal/githubtest"
)

const (
	testToken = "github_pat_Secret0123"
	testLogin = "fleet-writer"
)

// commit is a commit for tests, by a number.
func commit(n int) string { return fmt.Sprintf("%040x", n) }

// world is one repository at GitHub with daemons that write to it. All of it
// runs in a bubble of synctest: an hour costs nothing.
type world struct {
	t      *testing.T
	server *githubtest.Server
	dir    string
	wrap   func(forge) forge // nil = the client alone

	mu    sync.Mutex
	base  string // the newest commit of the branch
	looks []Pull
	look  func(ctx context.Context, p Pull) (Review, error) // nil = all is well
	logs  lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, server: githubtest.New(t, "acme", "fleet", nil), dir: t.TempDir(), base: commit(1)}
	w.server.AddToken(testToken, testLogin, nil)
	return w
}

// write makes a file with a secret.
func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) config() Config {
	return Config{
		Repository: "acme/fleet", Branch: "main", TokenFile: w.write("token", testToken+"\n"), Look: w.lookAt,
		Transport: w.server.Transport(), Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
	}
}

// review is what a valid pull request gets.
func (w *world) review(p Pull) Review {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Review{
		Head: p.Head, Base: w.base, Validate: Verdict{Success, "valid"}, Plan: Verdict{Success, "1 device changes"},
		Comment: comment.Mark{Head: p.Head, Base: w.base}.String() + "\n### plan of " + p.Head + "\n",
	}
}

func (w *world) lookAt(ctx context.Context, p Pull) (Review, error) {
	w.mu.Lock()
	w.looks = append(w.looks, p)
	look := w.look
	w.mu.Unlock()
	if look != nil {
		return look(ctx, p)
	}
	return w.review(p), nil
}

func (w *world) looked() []Pull {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.looks)
}

// start runs a daemon's service until the test's bubble ends.
func (w *world) start(edits ...func(*Config)) *Service {
	w.t.Helper()
	cfg := w.config()
	for _, edit := range edits {
		edit(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.wrap != nil {
		s.forge = w.wrap(s.forge)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run ended with %v", err)
		}
		for _, wrong := range w.server.Wrongs() {
			w.t.Errorf("GitHub does not want: %s", wrong)
		}
		w.noSecrets()
	})
	return s
}

// noSecrets looks for tokens in everything that was said or sent.
func (w *world) noSecrets() {
	w.t.Helper()
	said := w.logs.String()
	for _, r := range w.server.Requests() {
		said += r.Path + r.Body
	}
	for n := range 5 {
		for _, c := range w.server.Comments(n) {
			said += c.Body
		}
	}
	for _, secret := range []string{"Secret", "PRIVATE KEY", "Bearer"} {
		if i := strings.Index(said, secret); i >= 0 {
			w.t.Errorf("B124: %q was said: …%s", secret, said[max(0, i-100):min(len(said), i+100)])
		}
	}
}

// second gives another daemon a token of its own.
func (w *world) second(c *Config) {
	w.server.AddToken("github_pat_Secret9", testLogin, nil)
	c.TokenFile = w.write("other", "github_pat_Secret9")
}

// open opens pull request n with a head, or moves it there.
func (w *world) open(n int, head string) {
	w.server.SetPull(githubtest.Pull{Number: n, Base: "main", BaseSHA: commit(1), Branch: "topic", Head: head})
}

func (w *world) event(s *Service, n int, head string) {
	w.t.Helper()
	if err := s.PullRequest(Event{Number: n, Action: "synchronize", Head: head}); err != nil {
		w.t.Error(err)
	}
}

// writes are the requests that changed something, in short.
func (w *world) writes() []string {
	var list []string
	for _, r := range w.server.Writes() {
		list = append(list, r.String())
	}
	return list
}

func (w *world) wantWrites(want ...string) {
	w.t.Helper()
	got := w.writes()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("the writes were\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	w.server.Forget()
}

// wantComment wants one comment, by the daemon, and gives it.
func (w *world) wantComment(n int, holds string) string {
	w.t.Helper()
	var own []string
	for _, c := range w.server.Comments(n) {
		if strings.HasPrefix(c.Author, "fleet-") {
			own = append(own, c.Body)
		}
	}
	if len(own) != 1 || !strings.Contains(own[0], holds) {
		w.t.Errorf("the comments of the daemon at %d are %q, want one with %q", n, own, holds)
		return ""
	}
	return own[0]
}

func (w *world) wantStatus(head, context, want string) {
	w.t.Helper()
	if got := w.server.Status(head, context); got != want {
		w.t.Errorf("the status %s of %s is %q, want %q", context, short(head), got, want)
	}
}
