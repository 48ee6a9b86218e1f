package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/schema"
)

func retryCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry {POLICY | DEVICE} [DIR]",
		Short: "Forget the failures until now, so that a release is tried again",
		Long: `Set forgetFailuresBefore to now, in the file of a policy or of one device, in
the fleet repository in DIR (default: here): attempts that have ended are
forgotten, and what failed is tried again. It is for failures that the release
was not to blame for. A device's failure that is forgotten no longer halts its
policy.

A name that a policy and a device share is written policy/NAME or device/NAME.
The change is printed; the commit is yours.`,
		GroupID:               groupOperate,
		DisableFlagsInUseLine: true,
		Args:                  args(1, 2, "{POLICY | DEVICE} [DIR]"),
		ValidArgsFunction:     completePolicyOrDevice(a),
		Example: `  gitopsd retry gw-berlin-03
  gitopsd retry gateways --dry-run
  gitopsd retry policy/gateways`,
	}
	options := bindEdit(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		now := time.Now()
		return a.change(cmd.Context(), folder(args, 1), options, func(t *workTree) (edited, error) { return t.retry(args[0], now) })
	}
	return cmd
}

// retry forgets the failures of a policy or a device.
func (t *workTree) retry(name string, now time.Time) (edited, error) {
	kind, bare, written := strings.Cut(name, "/")
	switch {
	case !written:
		kind, bare = "", name
	case kind != "policy" && kind != "device":
		return edited{}, withHint(usagef("%q is neither a policy nor a device", name), "write policy/%s or device/%s", bare, bare)
	}
	if kind == "" {
		_, noPolicy := t.policyFile(bare)
		_, noDevice := t.deviceFile(bare)
		isPolicy, isDevice := noPolicy == nil, noDevice == nil
		switch {
		case isPolicy && isDevice:
			return edited{}, withHint(usagef("%q is a policy and a device", bare), "write policy/%s or device/%s", bare, bare)
		case isPolicy:
			kind = "policy"
		case isDevice:
			kind = "device"
		default:
			return edited{}, t.neither(bare)
		}
	}
	// A time in the future has no effect until then, and one that was cut to
	// its second would not be after a failure of this second.
	at := now.UTC().Truncate(time.Second)
	if at.Before(now) {
		at = at.Add(time.Second)
	}
	file, form := "", edit.Form{}
	var err error
	if kind == "policy" {
		if file, err = t.policyFile(bare); err == nil {
			form, err = edit.FormOf(schema.KindPolicy, schema.Policy{})
		}
	} else if file, err = t.deviceFile(bare); err == nil {
		form, err = edit.FormOf(schema.KindDevice, schema.Device{})
	}
	if err != nil {
		return edited{}, err
	}
	c, err := t.edit(file, form, step{path: []string{"spec", "forgetFailuresBefore"}, value: at})
	return edited{
		changes: []fileChange{c}, message: subject("%s: forget the failures, try again", bare),
		already: "the failures of " + bare + " until now are forgotten already",
	}, err
}

// neither is for a name that the fleet does not have.
func (t *workTree) neither(name string) error {
	names := t.policies()
	for _, m := range t.fleet.Devices {
		names = append(names, m.ID)
	}
	err := fmt.Errorf("%q is neither a policy nor a device of the fleet", name)
	if near := nearest(name, names); near != "" {
		return withHint(err, "did you mean %s?", near)
	}
	return withHint(err, "its policies are %s; a device's id is the name of its file below devices/", or(some(t.policies()), "none"))
}
