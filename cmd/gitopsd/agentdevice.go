package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// localOptions say which device a command of its own people is for.
type localOptions struct{ root, config string }

func bindLocal(cmd *cobra.Command) *localOptions {
	o := &localOptions{}
	cmd.Flags().Var((*nonEmpty)(&o.root), "root", "`folder` that the device's paths are relative to (default: that of the agent's configuration, or /)")
	cmd.Flags().Var((*nonEmpty)(&o.config), flagConfig, "the agent's configuration `file` (default "+defaultAgentConfig+" if it exists)")
	return o
}

// device is this device, as its own people see it.
type device struct {
	root  string
	state reconcile.Config
}

// resolve finds the device. A configuration that cannot be read keeps nobody
// from looking, unless it was asked for: the one at the device may be there to
// mend it.
func (o *localOptions) resolve(a *app) (*device, error) {
	f := agentFilesOf(o.config, a.env)
	f.root = or(o.root, a.env[variable("root")])
	f.judge = func(*schema.AgentSpec) []error { return nil }
	if err := f.load(); err != nil {
		switch {
		case o.config != "":
			return nil, err
		case len(f.warnings) == 0: // which say the same
			a.sayln("warning: %s", view.CleanLines(err.Error()))
		}
	}
	for _, w := range f.warnings {
		a.sayln("warning: %s", w)
	}
	spec := f.spec
	d := &device{root: or(f.root, or(spec.Root, "/"))}
	d.state = reconcile.Config{
		Device: spec.Device, Root: d.root, AgentVersion: a.build.Version, InitialVersion: spec.InitialVersion,
		Heartbeat: spec.Heartbeat.D(defaultHeartbeat), OS: spec.OS, Protected: protectedPaths(d.root, f.file, spec), Identities: spec.Secrets.Identities,
	}
	return d, nil
}

// ask asks the running agent. nobody says that there is none that answers.
func (d *device) ask(ctx context.Context, r agentsocket.Request, got func(agentsocket.Reply) bool) (nobody bool, err error) {
	err = agentsocket.Ask(ctx, d.root, r, got)
	if errors.Is(err, agentsocket.ErrNobody) {
		return true, nil
	}
	return false, permission(err)
}

// answer is ask for an answer of one line.
func (d *device) answer(ctx context.Context, r agentsocket.Request) (reply agentsocket.Reply, nobody bool, err error) {
	nobody, err = d.ask(ctx, r, func(one agentsocket.Reply) bool {
		reply = one
		return true
	})
	return reply, nobody, err
}

// look opens the state on disk.
func (d *device) look() (*reconcile.View, error) {
	v, err := reconcile.OpenView(d.state)
	if errors.Is(err, reconcile.ErrNoState) {
		return nil, withHint(fmt.Errorf("no agent answers, and none has worked below %s yet", d.root), "%s; or name another root with --root", d.startHint())
	}
	return v, permission(err)
}

// isHost says that the device is the machine itself, whose agent is a service.
func (d *device) isHost() bool { return d.root == "/" }

// command is one of gitopsd agent for this device.
func (d *device) command(text string) string {
	if d.isHost() {
		return "gitopsd agent " + text
	}
	return "gitopsd agent " + text + " --root " + shellWord(d.root)
}

// startHint is what to do where no agent answers.
func (d *device) startHint() string {
	if d.isHost() {
		return "systemctl status gitopsd-agent says why no agent runs, journalctl -u gitopsd-agent what it said last"
	}
	return fmt.Sprintf("gitopsd agent --repo URL --device NAME --root %s runs one, with --once for one pass", shellWord(d.root))
}

// permission adds what to do where the system says no.
func permission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return withHint(err, "try it as root; a group that may ask the agent is set as socket.group in its configuration")
	}
	return err
}

// writeNobody is the first line where no agent answers.
func (d *device) writeNobody(w io.Writer, running bool) {
	if !running {
		fmt.Fprintf(w, "NO AGENT ANSWERS at %s; this is what its state on the disk says\n", clean(agentsocket.Path(d.root)))
	}
}

// factWidth is the column in which the facts begin.
const factWidth = 10

// writeFact writes one labelled text, and nothing where there is none.
func writeFact(w io.Writer, label, text string, look view.Look) {
	if text == "" {
		return
	}
	width := 0
	if look.Width > factWidth+20 {
		width = look.Width - factWidth
	}
	var lines []string
	for one := range strings.Lines(text) {
		lines = append(lines, view.Wrap(clean(strings.TrimRight(one, "\n")), width)...)
	}
	for _, one := range lines {
		fmt.Fprintf(w, "%s%s%s\n", label, strings.Repeat(" ", max(factWidth-utf8.RuneCountInString(label), 1)), one)
		label = ""
	}
}
