package main

import (
	"fmt"
	"io"
	"log/slog"
)

// newLogger logs to standard error, where the writer takes credentials out of
// URLs. Format and level are checked words; "" is the default.
func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var least slog.Level
	if level == "" {
		level = logLevels[0]
	}
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("log level %q: %w", level, err)
	}
	options := &slog.HandlerOptions{Level: least}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case "text", "":
		return slog.New(slog.NewTextHandler(w, options)), nil
	}
	return nil, usagef("log format %q is neither text nor json", format)
}

// sayln narrates to standard error.
func (a *app) sayln(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}
