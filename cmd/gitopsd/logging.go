package main

import (
	"fmt"
	"io"
	"log"
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

// hearLibraries takes what libraries say past every logger into the log: net/http
// has no other way to tell of a server that answers unasked.
func hearLibraries(logger *slog.Logger) {
	log.SetFlags(0) // the log has its own time
	log.SetOutput(slog.NewLogLogger(logger.Handler(), slog.LevelWarn).Writer())
}

// sayln narrates to standard error.
func (a *app) sayln(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}
