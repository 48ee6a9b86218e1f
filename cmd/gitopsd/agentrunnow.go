package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// devicePoll is the JSON of gitopsd agent run-now.
type devicePoll struct {
	schema.TypeMeta
	Fetched *reconcile.Fetched `json:"fetched,omitempty"`
	Ran     *reconcile.Ran     `json:"ran,omitempty"` // with --wait, or where nothing was fetched
}

func agentRunNowCommand(a *app) *cobra.Command {
	format := newOutput("text", "json")
	var wait bool
	cmd := &cobra.Command{
		Use:   "run-now",
		Short: "Have the agent ask for its assignment at once",
		Long: `Have the running agent read its delivery ref now instead of with its next poll,
and print the commit of before and now. What is assigned still begins only when
nothing keeps it: busy and held devices wait, and a daemon decides who may move.
An update that goes on is waited for first. With --wait, one that brings another
agent is waited for until that is kept or has given way; a reboot ends the wait;
what the device is at goes to the standard error meanwhile.

Exit codes: 0 the repository answered; with --wait the work is done, there was
none, it is deferred, or a reboot was started; 1 it did not answer, or the work
failed, also that of before; 3 with --wait, nothing was left to do although the
version assigned last has failed or was refused, or the agent that took over
does not answer.`,
		Args: args(0, 0, ""),
		Example: `  gitopsd agent run-now
  gitopsd agent run-now --wait
  gitopsd agent run-now --wait -o json | jq -r .ran.summary`,
	}
	options := bindLocal(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for what comes of it, an update included")
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := options.resolve(a)
		if err != nil {
			return err
		}
		asText := format.value == "text"
		doc := devicePoll{TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "DevicePoll"}}
		say := func(text string) {
			if asText {
				fmt.Fprintln(a.out, clean(text))
			}
		}
		version := "" // that it is on
		fetched := func(f *reconcile.Fetched) {
			version = f.Current
			if doc.Fetched == nil { // the agent that takes over asks once more
				doc.Fetched = f
				say(fetchedText(f))
			}
		}
		if wait && asText {
			stop := d.follow(cmd.Context(), a.err, followEvery)
			defer stop()
		}
		was := d.versionNow(cmd.Context())
		ran, nobody, err := d.runNow(cmd.Context(), wait, fetched)
		if err != nil {
			return err
		}
		if nobody {
			return withHint(fmt.Errorf("no agent answers at %s", agentsocket.Path(d.root)), "%s", d.pollHint())
		}
		over := ran != nil && ran.HandOver
		if over {
			say(ran.Summary)
			if ran, err = d.takenOver(cmd.Context(), takeOverPause, wait, fetched); err != nil {
				return err
			}
			tellUpdate(ran, was, version)
		}
		if doc.Ran = ran; ran != nil {
			say(ran.Summary)
		}
		if !asText {
			if err := writeJSON(a.out, doc); err != nil {
				return err
			}
		}
		switch {
		case ran == nil:
		case ran.Exit != 0, ran.GaveUp && over:
			return &exitError{code: exitCannot}
		case ran.GaveUp:
			return &exitError{code: exitContent}
		}
		return nil
	}
	return cmd
}

// runNow has the agent poll, tells what that has fetched, and gives what came of
// it if it waits for that; nil = it does not.
func (d *device) runNow(ctx context.Context, wait bool, fetched func(*reconcile.Fetched)) (ran *reconcile.Ran, nobody bool, err error) {
	nobody, err = d.ask(ctx, agentsocket.Request{Do: agentsocket.DoRunNow}, func(r agentsocket.Reply) bool {
		if r.Fetched == nil {
			ran = r.Ran
			return true
		}
		fetched(r.Fetched)
		return !wait
	})
	if err == nil && !nobody && wait && ran == nil {
		err = reconcile.ErrEnded
	}
	return ran, nobody, err
}

const (
	// takeOverPause is between two looks at the agent that takes over.
	takeOverPause = time.Second
	// takeOverLooks without any answer are ten minutes, in which systemd has
	// ended an agent that hangs three times.
	takeOverLooks = 600
)

// takenOver is runNow of the agent that another program is from now on: it waits
// until none is on trial.
func (d *device) takenOver(ctx context.Context, pause time.Duration, wait bool, fetched func(*reconcile.Fetched)) (*reconcile.Ran, error) {
	for silent := 0; silent < takeOverLooks; silent++ {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		reply, nobody, err := d.answer(ctx, agentsocket.Request{Do: agentsocket.DoStatus})
		if nobody || err != nil || reply.Standing == nil {
			continue // it is just being started, or hangs
		}
		if reply.Standing.Trial != "" {
			silent = 0
			continue
		}
		ran, nobody, err := d.runNow(ctx, wait, fetched)
		switch {
		case nobody, errors.Is(err, reconcile.ErrEnded):
		case err != nil:
			return nil, err
		case ran == nil, !ran.HandOver:
			return ran, nil
		}
	}
	return nil, withHint(&exitError{code: exitContent, err: errors.New("the agent that took over does not answer, so what came of the update is not known")}, "%s", d.startHint())
}

// versionNow is what the device is on; "" = nobody says so.
func (d *device) versionNow(ctx context.Context) string {
	reply, nobody, err := d.answer(ctx, agentsocket.Request{Do: agentsocket.DoStatus})
	if err != nil || nobody || reply.Standing == nil {
		return ""
	}
	return reply.Standing.Report.Current.Version
}

// tellUpdate has a result say what the agent that took over had done before it
// could be asked.
func tellUpdate(ran *reconcile.Ran, was, version string) {
	if ran != nil && ran.Idle && ran.Exit == 0 && !ran.GaveUp && was != "" && version != "" && was != version {
		ran.Summary = fmt.Sprintf("updated from %s to %s", was, version)
	}
}

// pollHint is how to poll without an agent that answers.
func (d *device) pollHint() string {
	if d.isHost() {
		return "systemctl start gitopsd-agent; gitopsd agent --once polls without a service"
	}
	return d.startHint()
}

func fetchedText(f *reconcile.Fetched) string {
	commit := func(c string) string { return or(view.Short(c), "none") }
	text := fmt.Sprintf("fetched %s", commit(f.To))
	if f.From != f.To {
		text = fmt.Sprintf("fetched %s → %s", commit(f.From), commit(f.To))
	}
	if f.Assigned == "" {
		return fmt.Sprintf("%s: nothing is assigned; on %s", text, f.Current)
	}
	return fmt.Sprintf("%s: %s is assigned; on %s", text, f.Assigned, f.Current)
}
