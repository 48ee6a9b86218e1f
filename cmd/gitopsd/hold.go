package main

import (
	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/schema"
)

func holdCommand(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "hold DEVICE [DIR] --reason TEXT",
		Short: "Take a device out of service in its file",
		Long: `Write a hold into the file of a device, in the fleet repository in DIR
(default: here): it is not upgraded, and its files are not put back, until
gitopsd unhold. Everything else in the file stays as it is. The change is
printed; the commit is yours.

A device that is held already gets the new reason.

Exit codes: 0 done, or nothing to do; 1 it could not be done; 2 wrong usage;
3 the fleet would have more errors than now, and nothing was written.`,
		GroupID:               groupOperate,
		DisableFlagsInUseLine: true,
		Args:                  args(1, 2, "DEVICE [DIR]"),
		ValidArgsFunction:     completeDevice(a),
		Example: `  gitopsd hold gw-berlin-01 --reason "disk being replaced"
  gitopsd hold gw-berlin-01 ~/fleet --reason "on the bench" --dry-run`,
	}
	options := bindEdit(cmd)
	bindReason(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkReason(cmd, &reason); err != nil {
			return err
		}
		return a.change(cmd.Context(), folder(args, 1), options, func(t *workTree) (edited, error) {
			return t.hold(args[0], reason)
		})
	}
	return cmd
}

func unholdCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unhold DEVICE [DIR]",
		Short: "Give a device back: take its hold out of its file",
		Long: `Take the hold out of the file of a device, in the fleet repository in DIR
(default: here), with the comments that belong to it. The change is printed; the
commit is yours. A hold on the device itself, or one of the brake, is not in
that file.`,
		GroupID:               groupOperate,
		DisableFlagsInUseLine: true,
		Args:                  args(1, 2, "DEVICE [DIR]"),
		ValidArgsFunction:     completeHeld(a),
		Example: `  gitopsd unhold gw-berlin-01
  gitopsd unhold gw-berlin-01 ~/fleet --dry-run`,
	}
	options := bindEdit(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.change(cmd.Context(), folder(args, 1), options, func(t *workTree) (edited, error) {
			return t.hold(args[0], "")
		})
	}
	return cmd
}

// hold sets the hold of a device; without a reason it goes.
func (t *workTree) hold(id, reason string) (edited, error) {
	file, err := t.deviceFile(id)
	if err != nil {
		return edited{}, err
	}
	form, err := edit.FormOf(schema.KindDevice, schema.Device{})
	if err != nil {
		return edited{}, err
	}
	s := step{path: []string{"spec", "hold", "reason"}, value: reason}
	e := edited{message: subject("%s: hold, %s", id, reason), already: id + " is held already, with this reason"}
	if reason == "" {
		s = step{path: []string{"spec", "hold"}}
		e = edited{message: subject("%s: back in service", id), already: file + " has no hold"}
	}
	c, err := t.edit(file, form, s)
	e.changes = []fileChange{c}
	return e, err
}
