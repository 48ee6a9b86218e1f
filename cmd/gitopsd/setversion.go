package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/schema"
)

func setVersionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set-version POLICY VERSION [DIR]",
		Short: "Set the version that a policy converges on",
		Long: `Set targetVersion in the file of a policy, in the fleet repository in DIR
(default: here). The version has to be a release of the policy's line, written
as it is there. Everything else in the file stays as it is. The change is
printed; the commit is yours, and gitopsd plan shows what it would do.

A target that is older than what devices run moves none of them: that is what
gitopsd rollback is for.`,
		GroupID:               groupOperate,
		DisableFlagsInUseLine: true,
		Args:                  args(2, 3, "POLICY VERSION [DIR]"),
		ValidArgsFunction:     completeVersion(a),
		Example: `  gitopsd set-version gateways v1.5.0
  gitopsd set-version gateways v1.5.0 ~/fleet --dry-run`,
	}
	options := bindEdit(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.change(cmd.Context(), folder(args, 2), options, func(t *workTree) (edited, error) { return t.setVersion(args[0], args[1]) })
	}
	return cmd
}

func (t *workTree) setVersion(name, version string) (edited, error) {
	if version == "" {
		return edited{}, withHint(usagef("the version is empty"), "name a release, as gitopsd set-version %s v1.5.0", shellWord(name))
	}
	policy, file, err := t.policy(name)
	if err != nil {
		return edited{}, err
	}
	if _, files := t.releasesOf(lineOf(policy)); files[version] == "" && policy.Spec.TargetVersion != version {
		return edited{}, t.noRelease(lineOf(policy), version)
	}
	form, err := edit.FormOf(schema.KindPolicy, schema.Policy{})
	if err != nil {
		return edited{}, err
	}
	c, err := t.edit(file, form, step{path: []string{"spec", "targetVersion"}, value: version})
	e := edited{changes: []fileChange{c}, message: subject("%s: %s", name, version), already: "the target of " + name + " is " + version + " already"}
	if from := policy.Spec.TargetVersion; older(version, from) && !slices.Contains(policy.Spec.RollbackFrom, from) {
		e.notes = append(e.notes, fmt.Sprintf("warning: %s is older than %s, and devices on %s will stay there; to take them back as well: %s",
			version, from, from, command("gitopsd rollback "+shellWord(name)+" --to "+shellWord(version), t.dir)))
	}
	e.notes = append(e.notes, standsStill(policy)...)
	return e, err
}

// standsStill says why a change of the target moves nobody.
func standsStill(p *schema.Policy) []string {
	switch {
	case !p.Spec.Enabled:
		return []string{p.Metadata.Name + " is not enabled, so nothing will move"}
	case p.Spec.Paused != nil:
		return []string{p.Metadata.Name + " is paused, so nothing new will start: " + p.Spec.Paused.Reason}
	}
	return nil
}
