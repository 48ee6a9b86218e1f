package program

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"syscall"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
)

// checkTimeout is for a program that says what it is and reads a
// configuration, in seconds, on a device that is busy with other things.
const checkTimeout = 60

// component is the name of this package's failures.
const component = "agent"

// Check runs a program, which must tell the wanted version, and then once with
// these arguments, by which it looks at what it would have to work with. One
// that does not is a permanent failure.
func Check(ctx context.Context, path, version string, args, env []string) error {
	out, err := hooks.Command(ctx, []string{path, "--version"}, "/", env, checkTimeout)
	if err != nil {
		return judge(version, "it does not tell its version", err)
	}
	words := strings.Fields(out)
	if len(words) < 2 || words[0] != "gitopsd" {
		return failure.Permanent(component, version, "the program is no gitopsd: it says %q", firstOf(out))
	}
	if !Same(words[1], version) {
		return failure.Permanent(component, version, "the program says that it is %s", firstOf(words[1]))
	}
	if _, err := hooks.Command(ctx, append([]string{path}, args...), "/", env, checkTimeout); err != nil {
		return judge(version, "it cannot work here", err)
	}
	return nil
}

// judge says what a program that ended badly is a failure of.
func judge(version, what string, err error) error {
	var exit *hooks.Exit
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ENOEXEC):
		return failure.Permanent(component, version, "the program is none for this processor (%s)", runtime.GOARCH)
	case errors.Is(err, fs.ErrPermission):
		return failure.Permanent(component, version, "the program cannot be run where it lies; is that file system mounted noexec? %w", err)
	case disk.Short(err):
		return failure.Retryable(component, version, "%w", err)
	case !errors.As(err, &exit):
		return failure.Permanent(component, version, "%s: %w", what, err)
	}
	class := failure.Permanent
	if exit.Timeout || exit.Signal == syscall.SIGKILL.String() { // by who needed its memory
		class = failure.Retryable
	}
	f := failure.From(class(component, version, "%s: %w", what, err))
	f.Output = exit.Output
	return f
}

// Same says that two versions are one; a v may stand before each.
func Same(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }

// firstOf is the beginning of what a stranger said.
func firstOf(s string) string {
	const shown = 60 // bytes
	if len(s) > shown {
		return strings.ToValidUTF8(s[:shown], "") + "…"
	}
	return s
}
