package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"

	"github.com/gitopsd/gitopsd/internal/listen"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/webhook"
	"github.com/gitopsd/gitopsd/schema"
)

// checkListen refuses an address that is none, and one at which nobody could
// be believed.
func checkListen(spec schema.ServeSpec) error {
	if spec.Listen == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(spec.Listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return withHint(usagef("listen: %q is no host:port", spec.Listen), "127.0.0.1:8484 is for a proxy on the same machine, :8484 for everybody")
	}
	if spec.Webhook.SecretFile == "" {
		return secretHint(usagef("listen: there is no secret, so anybody who reaches %s could bring sweeps", spec.Listen))
	}
	return nil
}

func secretHint(err error) error {
	return withHint(err, "put a long random one into a file (openssl rand -hex 32), name the file with --webhook-secret-file, %s or webhook.secretFile, and give the secret to whoever sends the webhooks",
		variable("webhook-secret-file"))
}

// openEndpoint takes the address at which others can tell the daemon to sweep.
func openEndpoint(ctx context.Context, spec schema.ServeSpec, daemon *sweep.Daemon, pullRequest func(webhook.PullRequest), logger *slog.Logger) (*listen.Server, error) {
	hooks, err := webhook.New(webhook.Config{
		SecretFile: spec.Webhook.SecretFile, URL: spec.Repo.URL, Repository: spec.Webhook.Repository,
		Branch:      or(spec.Branch, schema.DefaultBranch),
		Push:        func(p webhook.Push) { daemon.Announce(sweep.Announcement(p)) },
		Sweep:       func() { daemon.Announce(sweep.Announcement{}) },
		PullRequest: pullRequest, Logger: logger,
	})
	if err != nil {
		return nil, secretHint(err)
	}
	handlers := hooks.Handlers()
	handlers["/healthz"] = http.HandlerFunc(healthz)
	server, err := listen.New(ctx, listen.Config{Address: spec.Listen, Handlers: handlers, Logger: logger})
	switch {
	case errors.Is(err, listen.ErrInUse):
		return nil, withHint(err, "end the other program, or name another address with --listen")
	case err != nil:
		return nil, withHint(err, "check --listen: the address must be one of this machine, and ports below 1024 are for root")
	}
	logger.Info("listening", "address", "http://"+server.Address())
	return server, nil
}

// healthz says that the process is there; whether the fleet is well, only its
// status says.
func healthz(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // who has gone needs no answer
}

// together runs all of them until the context ends or one of them does, and
// waits for each.
func together(ctx context.Context, runs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ended <- run(ctx) }()
	}
	var all error
	for range runs {
		all = errors.Join(all, <-ended)
		cancel()
	}
	return all
}
