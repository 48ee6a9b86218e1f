package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// quiet is a log without the lines that a one-shot command says in its own
// words at its end: who looks at it would read them twice. A program that
// reads JSON gets all of them.
type quiet struct {
	slog.Handler
	beginnings []string
}

func quietLog(logger *slog.Logger, format string, beginnings ...string) *slog.Logger {
	if format == "json" {
		return logger
	}
	return slog.New(quiet{logger.Handler(), beginnings})
}

// Handle leaves out a line with one of the beginnings.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if slices.ContainsFunc(q.beginnings, func(b string) bool { return strings.HasPrefix(r.Message, b) }) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs is a quiet log with these attributes.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.beginnings}
}

// WithGroup is a quiet log with this group.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.beginnings}
}
