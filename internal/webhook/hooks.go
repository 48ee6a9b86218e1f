package webhook

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Paths of the handlers.
const (
	PathGitHub = "/v1/webhooks/github"
	PathSweep  = "/v1/sweep"
)

// Config says what is served and who hears of it. The functions are called
// from the goroutines of requests, several at once, and must not wait.
type Config struct {
	SecretFile string // one secret a line; read for every request, so that a rotated one is picked up
	URL        string // of the fleet repository, as the daemon fetches it
	Repository string // its name at the sender, owner/name; "" = as the URL says
	Branch     string // the source branch

	Push        func(Push)        // the source branch or the brake branch has moved
	Sweep       func()            // a sweep is wanted now
	PullRequest func(PullRequest) // a pull request of the source branch has changed; nil = nobody wants to know

	Now    func() time.Time // nil = time.Now
	Logger *slog.Logger     // nil = silent
}

// Push is news of a branch.
type Push struct {
	Branch string
	Before string // its commit before; "" = there was none, or it is not known
	Commit string // its commit now; "" = the branch is gone
}

// PullRequest is news of a pull request.
type PullRequest struct {
	Number int
	Action string // opened, synchronize, reopened, closed; edited = it has another base
	Head   string // its commit
}

// Hooks are the handlers.
type Hooks struct {
	cfg     Config
	log     *slog.Logger
	watched watched
	bodies  *bodies
	seen    *seen

	refused, secretless, foreign seldom // log lines that others could fill a disk with
}

// New makes the handlers. It refuses to without a secret.
func New(cfg Config) (*Hooks, error) {
	if cfg.Push == nil || cfg.Sweep == nil {
		return nil, errors.New("webhook: nobody is told of what comes in")
	}
	if _, err := ReadSecrets(cfg.SecretFile); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Hooks{
		cfg: cfg, log: cfg.Logger, watched: newWatched(cfg.URL, cfg.Repository),
		bodies: newBodies(), seen: newSeen(),
	}, nil
}

// Handlers are the handlers by their paths.
func (h *Hooks) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		PathGitHub: h.handler(h.github),
		PathSweep:  h.handler(h.sweep),
	}
}

// answer is what a request comes to: a sentence for whoever looks at the
// sender's list of deliveries, of our own words only.
type answer struct {
	status int
	text   string
}

// handler answers POST alone. It redirects nothing: senders follow a redirect
// without the body, or do not and count it as success.
func (h *Hooks) handler(handle func(w http.ResponseWriter, r *http.Request) answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answer{http.StatusMethodNotAllowed, "send it with POST"}
		if r.Method == http.MethodPost {
			a = handle(w, r)
		} else {
			w.Header().Set("Allow", http.MethodPost)
		}
		header := w.Header()
		header.Set("Content-Type", "text/plain; charset=utf-8")
		header.Set("X-Content-Type-Options", "nosniff")
		switch a.status {
		case http.StatusServiceUnavailable:
			header.Set("Retry-After", "10") // seconds
		case http.StatusUnauthorized:
			h.noteRefusal(r, a)
		}
		if a.status >= http.StatusBadRequest {
			// Else the server would read on, to use the connection again.
			header.Set("Connection", "close")
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.text+"\n") // who has gone needs no answer
	})
}

// noteRefusal says that somebody is not believed.
func (h *Hooks) noteRefusal(r *http.Request, a answer) {
	if n := h.refused.due(h.cfg.Now()); n > 0 {
		h.log.Warn("requests are refused: "+a.text, keyCount, n, keyFrom, r.RemoteAddr)
	}
}
