package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// Point is where in an update hooks run.
type Point string

// The four points.
const (
	BeforeUpdating  Point = "beforeUpdating"
	AfterUpdating   Point = "afterUpdating"
	BeforeRebooting Point = "beforeRebooting"
	AfterRebooting  Point = "afterRebooting"
)

// Points lists them in the order of an update.
var Points = []Point{BeforeUpdating, AfterUpdating, BeforeRebooting, AfterRebooting}

// DefaultTimeout is a hook's own where it names none: a check answers within
// it, and what takes longer should say so.
const DefaultTimeout = 10 * time.Second

// exitDeferred is EX_TEMPFAIL of sysexits.h: "not now".
const exitDeferred = 75

// component is the name of this package's failures.
const component = "hooks"

// changedFiles is where a hook finds the changed paths: a folder that a
// reboot clears.
const changedFiles = "/run/gitopsd/changed-files"

// Context is what hooks are told.
type Context struct {
	Root, Device, From, To string // From and To are versions
	Attempt                int64
	Changed                []string // at BeforeUpdating, what will be
	RebootPending          bool
	RollingBack            bool
}

// Watch follows hooks, so that a restart in the middle finds how far they have
// come. What is nil is not asked.
type Watch struct {
	Warn func(error) // told what failed and is ignored
	// Begin is asked before each hook; one that is not due is passed over.
	Begin func(element string) (due bool, err error)
	// End is told that it came to its own end, well or not. It is not where the
	// agent is stopped meanwhile.
	End func(element string, well bool) error
}

// Of picks the hooks of a point.
func Of(h *schema.Hooks, p Point) map[string]*schema.Hook {
	if h == nil {
		return nil
	}
	switch p {
	case BeforeUpdating:
		return h.BeforeUpdating
	case AfterUpdating:
		return h.AfterUpdating
	case BeforeRebooting:
		return h.BeforeRebooting
	case AfterRebooting:
		return h.AfterRebooting
	}
	return nil
}

// Check resolves every hook's program without running it: a missing one is a
// permanent failure.
func Check(root string, h *schema.Hooks) error {
	r, err := disk.Open(root, disk.Options{})
	if err != nil {
		return failure.Permanent(component, "", "%w", err)
	}
	defer func() { _ = r.Close() }()
	var errs []error
	for _, p := range Points {
		for _, name := range Ordered(Of(h, p)) {
			if _, _, err := resolve(r, Of(h, p)[name]); err != nil {
				errs = append(errs, failure.Permanent(component, Element(p, name), "%w", err))
			}
		}
	}
	return failure.Join(errs...)
}

// Element names a hook in failures; one of the device's own is named by its
// path, which says its point.
func Element(p Point, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return string(p) + "/" + name
}

// Ordered gives the names by order, then name.
func Ordered(h map[string]*schema.Hook) []string {
	names := make([]string, 0, len(h))
	for n := range h {
		names = append(names, n)
	}
	order := func(n string) int {
		if h[n] == nil {
			return 0
		}
		return h[n].Order
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(path.Base(a), path.Base(b)), cmp.Compare(a, b))
	})
	return names
}

// resolve gives a hook's argv with its program as the host finds it, and its
// working folder as the host sees it.
func resolve(r *disk.Root, h *schema.Hook) (argv []string, dir string, err error) {
	if h == nil || len(h.Run) == 0 || h.Run[0] == "" {
		return nil, "", errors.New("it names no program to run")
	}
	for _, a := range h.Run {
		if strings.ContainsRune(a, 0) {
			return nil, "", fmt.Errorf("argument %q has a NUL", a)
		}
	}
	for k, v := range h.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return nil, "", fmt.Errorf("environment variable %q cannot be set", k)
		}
		if strings.HasPrefix(k, "GITOPSD_") {
			return nil, "", fmt.Errorf("environment variable %s is the agent's own", k)
		}
	}
	work := path.Join("/", h.WorkDir)
	if dir, err = r.HostPath(work); err != nil {
		return nil, "", fmt.Errorf("workDir: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, "", fmt.Errorf("workDir %s is no folder of the device", work)
	}
	program := h.Run[0]
	if strings.Contains(program, "/") && !path.IsAbs(program) {
		if program, err = r.HostPath(path.Join(work, program)); err != nil {
			return nil, "", fmt.Errorf("program %s: %w", h.Run[0], err)
		}
	}
	if program, err = lookPath(program); err != nil {
		return nil, "", err
	}
	return append([]string{program}, h.Run[1:]...), dir, nil
}

// ErrNoProgram is the error of a program that is missing or cannot be run.
var ErrNoProgram = errors.New("no such program")

// lookPath finds a program of the host; the error names what is missing.
func lookPath(program string) (string, error) {
	found, err := exec.LookPath(program)
	switch {
	case err == nil:
		return filepath.Abs(found)
	case errors.Is(err, fs.ErrPermission):
		return "", &programError{program + " is not executable"}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &programError{program + " is missing"}
	}
	return "", &programError{fmt.Sprintf("%s cannot be run: %v", program, err)}
}

type programError struct{ what string }

func (e *programError) Error() string        { return "program " + e.what }
func (e *programError) Is(target error) bool { return target == ErrNoProgram }

// Due says whether a hook runs where these paths have changed, or will.
func Due(h *schema.Hook, changed []string) bool {
	if h == nil || h.If == nil {
		return true // what is no hook at all fails when it is run
	}
	for _, p := range changed {
		for _, wanted := range h.If.Changed {
			if p == wanted || strings.HasPrefix(p, strings.TrimSuffix(wanted, "/")+"/") {
				return true
			}
		}
	}
	return false
}

// Run runs the hooks of one point that are due, in order; the first failure stops (onFailure:
// ignore goes on). Exit 75 at BeforeUpdating is Deferred, any other failure
// there Permanent; a timeout is Retryable at BeforeUpdating and Permanent
// elsewhere. When ctx ends, its error is returned, and no failure; a hook that
// runs then has a moment to come to its end.
func Run(ctx context.Context, p Point, h map[string]*schema.Hook, c Context, w Watch) error {
	if len(h) == 0 {
		return nil
	}
	r, err := disk.Open(c.Root, disk.Options{})
	if err != nil {
		return failure.Retryable(component, string(p), "%w", err)
	}
	defer func() { _ = r.Close() }()
	list, err := writeChanged(r, c.Changed)
	if err != nil {
		return failure.Retryable(component, string(p), "tell the hooks what changed: %w", err)
	}
	defer func() {
		if err := r.Remove(changedFiles); err != nil && w.Warn != nil {
			w.Warn(err)
		}
	}()
	for _, name := range Ordered(h) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !Due(h[name], c.Changed) {
			continue
		}
		at := Element(p, name)
		if w.Begin != nil {
			if due, err := w.Begin(at); err != nil {
				return err
			} else if !due {
				continue
			}
		}
		failed := runOne(ctx, r, p, name, h[name], c, list)
		if failed != nil && ctx.Err() != nil {
			return fmt.Errorf("%s: %w", at, ctx.Err())
		}
		ignore := h[name] != nil && h[name].OnFailure == schema.OnFailureIgnore
		if failed != nil && ignore && failure.From(failed).Class != schema.ClassDeferred {
			if w.Warn != nil {
				w.Warn(failed)
			}
			failed = nil
		}
		if w.End != nil {
			if err := w.End(at, failed == nil); err != nil {
				return err
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

func runOne(ctx context.Context, r *disk.Root, p Point, name string, h *schema.Hook, c Context, list string) error {
	at := Element(p, name)
	argv, dir, err := resolve(r, h)
	if err != nil {
		return failure.Permanent(component, at, "%w", err)
	}
	var own []string
	for k, v := range h.Env {
		own = append(own, k+"="+v)
	}
	slices.Sort(own)
	env := append(own,
		"GITOPSD_ROOT="+r.Dir(), "GITOPSD_DEVICE="+c.Device, "GITOPSD_FROM="+c.From, "GITOPSD_TO="+c.To,
		"GITOPSD_ATTEMPT="+strconv.FormatInt(c.Attempt, 10), "GITOPSD_CHANGED_FILES="+list,
		"GITOPSD_REBOOT_PENDING="+flag(c.RebootPending), "GITOPSD_ROLLING_BACK="+flag(c.RollingBack))
	ctx, cancel := lingering(ctx)
	defer cancel()
	err = run(ctx, argv, dir, env, h.Timeout.D(DefaultTimeout), nil)
	if err == nil {
		return nil
	}
	f := &failure.Error{Class: schema.ClassPermanent, Component: component, Element: at, Err: err}
	var end *Exit
	if errors.As(err, &end) {
		f.Output = end.Output
		switch {
		case end.Code == exitDeferred && p == BeforeUpdating:
			f.Class = schema.ClassDeferred
		case end.Timeout && p == BeforeUpdating:
			f.Class = schema.ClassRetryable
		}
	} else if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		f.Class = schema.ClassRetryable // the host had no room for a process
	}
	return f
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// Sweep removes what told the hooks of an agent that was killed while they ran.
func Sweep(r *disk.Root) error {
	if err := r.Remove(changedFiles); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.Sweep(path.Dir(changedFiles))
}

// writeChanged lists paths so that no name can be misread: each ends with NUL.
func writeChanged(r *disk.Root, paths []string) (host string, err error) {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(p)
		b.WriteByte(0)
	}
	if _, err := r.MkdirAll(path.Dir(changedFiles), disk.Meta{Mode: 0o755, UID: -1, GID: -1}); err != nil {
		return "", err
	}
	// The folder is ours, and a link in it nobody's loss.
	if err := r.WriteFile(changedFiles, []byte(b.String()), disk.Meta{Mode: 0o600, UID: -1, GID: -1, ReplaceLink: true}); err != nil {
		return "", err
	}
	return r.HostPath(changedFiles)
}
