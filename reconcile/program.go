package reconcile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/program"
	"github.com/gitopsd/gitopsd/schema"
)

// ErrHandOver is what [Agent.Run] returns when another program is to be the
// agent: the one of the package is to be started in the place of this process,
// and asks a [Launcher].
var ErrHandOver = errors.New("another program takes over")

// programComponent is the name of its failures.
const programComponent = "agent"

var programMeta = disk.Meta{Mode: 0o755, UID: -1, GID: -1}

// runs says that this process runs the program that a spec wants. One that a
// spec named is known by its sum, the one of the package by its version.
func (a *Agent) runs(want *schema.AgentProgram) bool {
	p := a.cfg.Program
	switch {
	case p == nil:
		return true // nobody can change it
	case want == nil:
		return p.SHA256 == ""
	}
	if p.SHA256 != "" {
		return p.SHA256 == want.Sum()
	}
	return program.Same(want.Version, a.cfg.AgentVersion)
}

// onTrial says that this process runs a program that has to prove itself.
func (a *Agent) onTrial() bool {
	p, t := a.cfg.Program, a.store.programs.Trial
	return p != nil && t != nil && t.GaveUp == "" && p.SHA256 == t.SHA256
}

// elsewhere says that another program should be the agent, and may be tried.
func (a *Agent) elsewhere() bool {
	p, next := a.cfg.Program, a.store.programs.next()
	return p != nil && p.SHA256 != next && (next == "" || p.Refused != next)
}

// hasProgram says that a program is on the disk, whole.
func (a *Agent) hasProgram(sum string) bool {
	if !sumForm.MatchString(sum) {
		return false
	}
	is, err := a.root.Sum(programPath(sum))
	return err == nil && is == sum && !a.root.Doubtful(programPath(sum))
}

// fetchProgram has the program of a spec on the disk, as one that can be the
// agent here.
func (a *Agent) fetchProgram(ctx context.Context, spec *schema.Spec) error {
	want := spec.Agent
	if want == nil || a.runs(want) {
		return nil
	}
	sum := want.Sum()
	switch {
	case a.hasProgram(sum):
	case want.URL == "" || !sumForm.MatchString(sum):
		return failure.Permanent(programComponent, want.Version, "a URL and a sha256 are wanted")
	default:
		a.log.Info("fetching the agent's next program", "version", want.Version, "from", want.URL)
		came := sha256.New()
		err := program.Fetch(ctx, want.URL, func(r io.Reader) error { return a.placeProgram(io.TeeReader(r, came), sum) })
		if errors.Is(err, disk.ErrDamaged) {
			return failure.Retryable(programComponent, want.Version, "what came has the sha256 %x instead of %s (fetch %s)", came.Sum(nil), sum, want.URL)
		}
		if err != nil {
			return failure.Retryable(programComponent, want.Version, "fetch %s: %w", want.URL, err)
		}
	}
	host, err := a.root.HostPath(programPath(sum))
	if err != nil {
		return failure.Retryable(programComponent, want.Version, "%w", err)
	}
	return program.Check(ctx, host, want.Version, a.cfg.Program.Check, a.cfg.Program.Env)
}

// placeProgram writes a program to its place.
func (a *Agent) placeProgram(r io.Reader, sum string) error {
	dir := programFolder(sum)
	if _, err := a.root.MkdirAll(dir, privDir); err != nil {
		return err
	}
	if err := a.root.Sweep(dir); err != nil {
		return err
	}
	return a.root.WriteFrom(programPath(sum), r, sum, programMeta)
}

// tryProgram has the program that the desired spec wants go on with the
// attempt; it is on trial until that has succeeded.
func (a *Agent) tryProgram(ctx context.Context, want *schema.AgentProgram) Result {
	t := trial{Attempt: a.store.desired.Attempt}
	if want != nil {
		t.Version, t.SHA256 = want.Version, want.Sum()
	}
	switch p := a.cfg.Program; {
	case t.SHA256 != "" && t.SHA256 == p.Refused:
		p.Refused = "" // the next try is another one
		return a.fail(ctx, StageReconcile, failure.Retryable(programComponent, t.Version, "%s", p.Trouble))
	case t.SHA256 != "" && !a.hasProgram(t.SHA256):
		return a.fail(ctx, StageReconcile, failure.Retryable(programComponent, t.Version, "the program is gone or damaged"))
	}
	p := a.store.programs
	p.Trial = &t
	if err := a.store.savePrograms(p); err != nil {
		return a.stateFailed(err)
	}
	return a.handOver()
}

// settleProgram ends whatever is on trial: from now on the agent is the program
// of the current spec.
func (a *Agent) settleProgram() error {
	p := programs{Kept: a.store.programs.Kept}
	if !a.store.current.Unknown {
		spec, err := a.store.currentSpec()
		if disk.Short(err) {
			return &stateError{err}
		}
		if err == nil { // else nobody knows what it says
			p.Kept = a.keptOf(spec.Agent)
		}
	}
	if was := a.store.programs; was.Trial == nil && sameKept(was.Kept, p.Kept) {
		return nil
	}
	return a.store.savePrograms(p)
}

// keptOf is the program that a spec wants kept, nil for the one of the package,
// which is also there for one that cannot be had.
func (a *Agent) keptOf(want *schema.AgentProgram) *kept {
	was := a.store.programs.Kept
	switch {
	case want == nil:
		return nil
	case was != nil && was.SHA256 == want.Sum():
		return was
	case was == nil && a.store.programs.Trial == nil && a.runs(want):
		return nil // the package has it
	case !a.hasProgram(want.Sum()):
		return nil
	}
	return &kept{Version: want.Version, SHA256: want.Sum()}
}

func sameKept(a, b *kept) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// handOver is the result when another program is to be the agent.
func (a *Agent) handOver() Result {
	p := &a.store.programs
	version := ""
	if p.Trial != nil {
		version = p.Trial.Version
	} else if p.Kept != nil {
		version = p.Kept.Version
	}
	a.log.Info("another program takes over as the agent", "version", versionOf(version), "from", a.cfg.AgentVersion)
	a.changed()
	return Result{Summary: "the agent goes on as " + versionOf(version), HandOver: true}
}

// programDrift tells that another program runs than the spec says. As with the
// operating system, to change that is an update.
func (a *Agent) programDrift(spec *schema.Spec) {
	if a.runs(spec.Agent) {
		return
	}
	a.drift = append(a.drift, programComponent)
	if a.driftReason != "" {
		return
	}
	want := ""
	if spec.Agent != nil {
		want = spec.Agent.Version
	}
	a.driftReason = fmt.Sprintf("agent: %s runs instead of %s", a.cfg.AgentVersion, versionOf(want))
	if why := a.cfg.Program.Trouble; why != "" {
		a.driftReason = oneLine(a.driftReason + "; " + why)
	}
}

// prunePrograms removes programs that nothing will start.
func (a *Agent) prunePrograms() {
	entries, err := a.root.List(programsDir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.log.Warn("programs could not be listed", "error", err)
		}
		return
	}
	var keep []string
	if k := a.store.programs.Kept; k != nil {
		keep = append(keep, k.SHA256)
	}
	if t := a.store.programs.Trial; t != nil {
		keep = append(keep, t.SHA256)
	}
	for _, file := range []string{currentFile, desiredFile} {
		if a.store.absent(file) {
			continue
		}
		r, err := a.store.whole(file)
		if err != nil {
			return
		}
		if spec, err := r.spec(); err != nil {
			return
		} else if spec.Agent != nil {
			keep = append(keep, spec.Agent.Sum())
		}
	}
	for _, e := range entries {
		if slices.Contains(keep, e.Name()) {
			continue
		}
		if err := a.removeAll(programsDir + "/" + e.Name()); err != nil {
			a.log.Warn("an unused program could not be removed", "program", e.Name(), "error", err)
		}
	}
}
