package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

func agentHoldCommand(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "hold --reason TEXT",
		Short: "Keep this device as it is",
		Long: `Hold this device, with or without its agent running: no update begins and
nothing is repaired until gitopsd agent unhold, also after a reboot. An update
that has begun goes on to its end. The daemon sees the hold and its reason in
the next report.`,
		DisableFlagsInUseLine: true,
		Args:                  args(0, 0, ""),
		Example: `  gitopsd agent hold --reason "on the bench"
  gitopsd agent hold --reason "on the bench" --root /tmp/gw-1`,
	}
	options := bindLocal(cmd)
	bindReason(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkReason(cmd, &reason); err != nil {
			return err
		}
		return a.noteOnDevice(cmd.Context(), options, agentsocket.Request{Do: agentsocket.DoHold, Reason: reason})
	}
	return cmd
}

func agentUnholdCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unhold",
		Short: "Give this device back to its agent",
		Long: `End the hold of this device that gitopsd agent hold began. A hold in the fleet
repository, or one of the brake, is not on the device.`,
		Args:    args(0, 0, ""),
		Example: `  gitopsd agent unhold`,
	}
	options := bindLocal(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.noteOnDevice(cmd.Context(), options, agentsocket.Request{Do: agentsocket.DoUnhold})
	}
	return cmd
}

func agentSnoozeCommand(a *app) *cobra.Command {
	var reason string
	var end bool
	cmd := &cobra.Command{
		Use:   "snooze {DURATION | --end}",
		Short: "Begin no update on this device for a while",
		Long: `Have no update begin, and nothing be repaired, for a while, also after a reboot:
the device counts as busy, and its reports say until when and why. It ends by
itself, at most seven days later; another snooze takes its place.`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, got []string) error {
			if end {
				return args(0, 0, "--end")(cmd, got)
			}
			return args(1, 1, "{DURATION | --end}")(cmd, got)
		},
		Example: `  gitopsd agent snooze 2h --reason "the line is being measured"
  gitopsd agent snooze 3d --reason "the trade fair"
  gitopsd agent snooze --end`,
	}
	options := bindLocal(cmd)
	bindReason(cmd, &reason)
	cmd.Flags().BoolVar(&end, "end", false, "end the snooze that goes on")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if end {
			return a.noteOnDevice(cmd.Context(), options, agentsocket.Request{Do: agentsocket.DoWake})
		}
		var given span
		if err := given.Set(args[0]); err != nil {
			return usagef("%q: %w", args[0], err)
		}
		if length := time.Duration(given); length < time.Minute || length > reconcile.MaxSnooze {
			return withHint(usagef("a snooze lasts from 1m to %dd", reconcile.MaxSnooze/(24*time.Hour)), "gitopsd agent hold lasts until gitopsd agent unhold")
		}
		if err := checkReason(cmd, &reason); err != nil {
			return err
		}
		return a.noteOnDevice(cmd.Context(), options, agentsocket.Request{Do: agentsocket.DoSnooze, For: schema.Duration(given), Reason: reason})
	}
	return cmd
}

// noteOnDevice has the running agent take a note, or takes it for the one to
// come.
func (a *app) noteOnDevice(ctx context.Context, options *localOptions, r agentsocket.Request) error {
	d, err := options.resolve(a)
	if err != nil {
		return err
	}
	reply, nobody, err := d.answer(ctx, r)
	if err != nil {
		return err
	}
	done := reply.Done
	if nobody {
		if done, err = d.note(r); err != nil {
			return permission(err)
		}
	}
	if done == nil {
		done = &agentsocket.Done{}
	}
	text := ""
	switch r.Do {
	case agentsocket.DoHold:
		text = "held: " + r.Reason
	case agentsocket.DoUnhold:
		text = isOver("hold", done.Was)
	case agentsocket.DoSnooze:
		text = "no update begins: " + r.Reason
		if done.Until != nil {
			text = "no update begins until " + view.Stamp(*done.Until) + ": " + r.Reason
		}
	case agentsocket.DoWake:
		text = isOver("snooze", done.Was)
	}
	if nobody {
		text += " (no agent answers; the next one to start obeys)"
	}
	a.sayln("%s", clean(text))
	return nil
}

func isOver(what string, was bool) string {
	if was {
		return "the " + what + " is over"
	}
	return "there was no " + what + "; nothing to do"
}

// note writes what the agent would.
func (d *device) note(r agentsocket.Request) (*agentsocket.Done, error) {
	n, err := reconcile.OpenNotes(d.root)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	return agentsocket.Take(n, r)
}
