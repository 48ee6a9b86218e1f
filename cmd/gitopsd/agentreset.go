package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// deviceReset is the JSON of gitopsd agent reset --dry-run.
type deviceReset struct {
	schema.TypeMeta
	Managed bool                `json:"managed"` // false = nothing is, and nothing would be done
	Changes []schema.Difference `json:"changes"`
	More    int                 `json:"more,omitempty"` // changes that are left out
	Trouble []string            `json:"trouble,omitempty"`
}

func agentResetCommand(a *app) *cobra.Command {
	format := newOutput("text", "json")
	var yes, dry bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Undo everything that is managed on this device",
		Long: `Give this device back to itself: what releases put there goes, what was there
before comes back, and then the agent's state goes too. It says first what it
will do, and asks. The operating system stays as it is, and no hooks run.

The agent must not run. Where something cannot be put back, the state is kept,
and reset, or the agent, goes on from there. A device that still is in the
fleet gets its release again as soon as its agent starts: take its file out of
the repository first. Where it is the last one, the sweep stops at that, and
gitopsd status names the line of a commit message that lets it go.

Exit codes: 0 done, or nothing was managed; 1 it could not be done, or the
answer was no; 2 wrong usage; with --dry-run 3 something would be done.`,
		Args: args(0, 0, ""),
		Example: `  gitopsd agent reset --dry-run
  gitopsd agent reset --dry-run -o json
  systemctl disable --now gitopsd-agent && gitopsd agent reset`,
	}
	options := bindLocal(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be done")
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := options.resolve(a)
		if err != nil {
			return err
		}
		switch {
		case dry:
			return a.resetWould(cmd.Context(), d, format.value == "json")
		case format.value == "json":
			return usagef("-o json goes with --dry-run")
		}
		return a.resetDevice(cmd.Context(), d, yes)
	}
	return cmd
}

func (a *app) resetWould(ctx context.Context, d *device, asJSON bool) error {
	c, err := d.compareReset(ctx)
	if err != nil {
		return permission(err)
	}
	switch {
	case asJSON:
		doc := deviceReset{TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "DeviceReset"}, Managed: c != nil, Changes: []schema.Difference{}}
		if c != nil {
			doc.More, doc.Trouble = c.More, c.Trouble
			for i := range c.Changes {
				doc.Changes = append(doc.Changes, c.Changes[i].Difference)
			}
		}
		err = writeJSON(a.out, doc)
	case c == nil:
		fmt.Fprintln(a.out, "nothing is managed here")
	default:
		a.writeReset(c)
	}
	if err == nil && c != nil {
		return &exitError{code: exitContent}
	}
	return err
}

// compareReset is nil where nothing is managed.
func (d *device) compareReset(ctx context.Context) (*reconcile.Comparison, error) {
	v, err := reconcile.OpenView(d.state)
	if errors.Is(err, reconcile.ErrNoState) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer v.Close()
	return v.CompareReset(ctx)
}

func (a *app) writeReset(c *reconcile.Comparison) {
	for _, one := range c.Changes {
		one.Hidden = "" // contents are not what this is about
		fmt.Fprintln(a.out, clean(changeText(&one)))
	}
	if c.More > 0 {
		fmt.Fprintf(a.out, "  … and %d more\n", c.More)
	}
	for _, t := range c.Trouble {
		fmt.Fprintf(a.out, "trouble: %s\n", clean(t))
	}
	fmt.Fprintln(a.out, "  remove the agent's state, /var/lib/gitopsd")
}

func (a *app) resetDevice(ctx context.Context, d *device, yes bool) error {
	d.state.Logger = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	agreed := false
	done, err := reconcile.Reset(ctx, d.state, func(c *reconcile.Comparison) (bool, error) {
		a.writeReset(c)
		agreed = yes || a.agrees("reset this device?")
		return agreed, nil
	})
	switch {
	case errors.Is(err, reconcile.ErrNoState):
		fmt.Fprintln(a.out, "nothing is managed here")
		return nil
	case errors.Is(err, reconcile.ErrLocked):
		hint := "end it first"
		if d.isHost() {
			hint = "systemctl disable --now gitopsd-agent ends it"
		}
		return withHint(fmt.Errorf("the agent of this device runs: %w", err), "%s", hint)
	case err != nil:
		return permission(err)
	case !agreed:
		return withHint(errors.New("nothing was done: the answer was not yes"), "--yes answers it")
	}
	a.sayln("reset: nothing is managed here any more")
	for _, k := range done.Kept {
		a.sayln("kept: %s, with what could not be put back in its place", clean(k))
	}
	return nil
}

// answerLimit bounds an answer that is read, in bytes.
const answerLimit = 100

// agrees asks the person at the terminal, and takes only yes for yes.
func (a *app) agrees(question string) bool {
	fmt.Fprintf(a.err, "%s (yes, or anything else for no) ", question)
	line, _ := bufio.NewReader(io.LimitReader(a.in, answerLimit)).ReadString('\n') // what could not be read is no
	return strings.TrimSpace(line) == "yes"
}
