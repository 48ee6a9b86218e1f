package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/schema"
)

// brakeTarget is what a brake is to stop.
type brakeTarget struct {
	policy, device string
	all            bool
}

// check wants exactly one thing to stop.
func (b *brakeTarget) check(cmd *cobra.Command, args []string) error {
	given := 0
	if len(args) > 0 {
		b.policy = args[0]
		given++
	}
	if b.device != "" {
		given++
	}
	if b.all {
		given++
	}
	switch {
	case given == 0:
		return withHint(usagef("nothing is named: a POLICY, --device ID or --all"), "%s --help has examples", cmd.CommandPath())
	case given > 1:
		return withHint(usagef("only one of POLICY, --device ID and --all at a time"), "run it once for each")
	}
	return nil
}

// String is how people call it.
func (b brakeTarget) String() string {
	switch {
	case b.all:
		return "everything"
	case b.device != "":
		return "device " + b.device
	}
	return b.policy
}

// path is where it stands in a brake.yaml.
func (b brakeTarget) path() []string {
	switch {
	case b.all:
		return []string{"all"}
	case b.device != "":
		return []string{"devices", b.device}
	}
	return []string{"policies", b.policy}
}

// meant is the one of the stops that stand there which was probably meant; ""
// where none is near.
func (b brakeTarget) meant(stands *schema.Brake) string {
	switch {
	case b.all:
		return ""
	case b.device != "":
		if near := nearest(b.device, slices.Sorted(maps.Keys(stands.Devices))); near != "" {
			return "--device " + near
		}
		if _, ok := stands.Policies[b.device]; ok {
			return b.device + ", which is a policy"
		}
		return ""
	}
	if near := nearest(b.policy, slices.Sorted(maps.Keys(stands.Policies))); near != "" {
		return near
	}
	if _, ok := stands.Devices[b.policy]; ok {
		return "--device " + b.policy
	}
	return ""
}
