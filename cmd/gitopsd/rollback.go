package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/schema"
)

func rollbackCommand(a *app) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "rollback POLICY [DIR]",
		Short: "Take the devices of a policy back to an earlier version",
		Long: `Set targetVersion of a policy back, and name the version that is left in
rollbackFrom, without which no device goes down, with the releases in between,
which devices may be on; in the fleet repository in DIR (default: here). The
change is printed; the commit is yours.

Without --to the target is what it was before, as the git history of the file
has it, or the newest release below the present one. It is never a version
that rollbackFrom names already, nor one that devices failed as far as the
clone knows. Where it is not sure, as in a clone without its whole history,
nothing is changed, and the releases are listed. A rollback that the file has
already is not gone on with unless --to says how far.

Exit codes: 0 done, or nothing to do; 1 it could not be done; 2 wrong usage;
3 the fleet would have more errors than now, and nothing was written.`,
		GroupID:           groupOperate,
		Args:              args(1, 2, "POLICY [DIR]"),
		ValidArgsFunction: completePolicy(a),
		Example: `  gitopsd rollback gateways
  gitopsd rollback gateways --to v1.4.2 --dry-run`,
	}
	options := bindEdit(cmd)
	cmd.Flags().Var((*nonEmpty)(&to), "to", "the `version` to go back to")
	// The error is for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("to", func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offerVersions(a, args)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.change(cmd.Context(), folder(args, 1), options, func(t *workTree) (edited, error) { return t.rollback(cmd.Context(), args[0], to) })
	}
	return cmd
}

// rollback takes a policy back to a version; "" = the one before.
func (t *workTree) rollback(ctx context.Context, name, to string) (edited, error) {
	policy, file, err := t.policy(name)
	if err != nil {
		return edited{}, err
	}
	from := policy.Spec.TargetVersion
	form, err := edit.FormOf(schema.KindPolicy, schema.Policy{})
	if err != nil {
		return edited{}, err
	}
	if to == "" {
		if left := newerOf(policy.Spec.RollbackFrom, from); left != "" {
			c, err := t.edit(file, form)
			return edited{changes: []fileChange{c}, already: fmt.Sprintf("%s goes back from %s to %s already; --to says how far else", name, left, from)}, err
		}
	}
	before := targetsBefore(ctx, t.dir, file)
	if to == "" {
		if to, err = t.earlier(policy, before); err != nil {
			return edited{}, err
		}
	}
	versions, files := t.releasesOf(lineOf(policy))
	if files[to] == "" {
		return edited{}, t.noSource(lineOf(policy), to)
	}
	if to == from {
		// Only the target was set back, here or in a commit.
		from = newerOf(before.versions, to)
	}
	switch {
	case from == "" && policy.Spec.TargetVersion == "":
		return edited{}, withHint(fmt.Errorf("%s names no version to go back from: its target is the build of gitopsd itself", name), "name both in %s: targetVersion: %s and rollbackFrom", file, to)
	case from == "":
		c, err := t.edit(file, form)
		return edited{changes: []fileChange{c}, already: "the target of " + name + " is " + to + " already"}, err
	case !older(to, from):
		return edited{}, withHint(usagef("%s is not older than %s, so this is no rollback", to, from), "%s; older releases are %s",
			command("gitopsd set-version "+shellWord(name)+" "+shellWord(to), t.dir), or(some(olderReleases(versions, from)), "none"))
	}
	steps := []step{{path: []string{"spec", "targetVersion"}, value: to}}
	for _, v := range append([]string{from}, olderReleases(versions, from)...) {
		if older(to, v) { // a device that failed the newest is on one in between
			steps = append(steps, step{path: []string{"spec", "rollbackFrom"}, value: v, more: true})
		}
	}
	c, err := t.edit(file, form, steps...)
	return edited{
		changes: []fileChange{c}, message: subject("%s: back from %s to %s", name, from, to), notes: standsStill(policy),
		already: fmt.Sprintf("%s goes back from %s to %s already", name, from, to), after: t.planWithStatus(),
	}, err
}

// planWithStatus is the command for a plan that knows what devices are on,
// which the repository tells that a work tree was cloned from; none where that
// is not known.
func (t *workTree) planWithStatus() []string {
	local, err := openLocalGit(t.dir, schema.ServeSpec{})
	if err != nil || local == nil {
		return nil
	}
	defer local.repo.Close()
	origin := originOf(t.dir, local.repo)
	if origin == "" {
		return nil
	}
	return []string{command("gitopsd plan", t.dir) + " --repo " + shellWord(redact(origin))}
}

// earlier is the version that a policy had before the present one, or the
// newest release below that. A version that devices were taken back from
// before, or that they failed, is none to go back to without being told.
func (t *workTree) earlier(p *schema.Policy, past pastTargets) (string, error) {
	from := p.Spec.TargetVersion
	versions, files := t.releasesOf(lineOf(p))
	lower := olderReleases(versions, from)
	earlier := slices.DeleteFunc(slices.Clone(past.versions), func(v string) bool { return v == from })
	if len(earlier) > 0 && older(from, earlier[0]) {
		// Somebody has set the target back, and named no version to come down
		// from: that may be what is wanted now, or one step more.
		err := fmt.Errorf("the target of %s has been set back from %s to %s, and whether to stay there is not clear", p.Metadata.Name, earlier[0], from)
		return "", withHint(err, "--to %s takes its devices back as well; older releases are %s", from, or(some(lower), "none"))
	}
	left := func(v string) bool {
		return slices.ContainsFunc(p.Spec.RollbackFrom, func(r string) bool { return sameVersion(r, v) })
	}
	var likely []string
	for _, v := range lower {
		if parseVersion(v).Prerelease() == "" && !left(v) {
			likely = append(likely, v)
		}
	}
	to := ""
	for _, v := range earlier {
		if older(v, from) && files[v] != "" && !left(v) {
			to = v
			break
		}
	}
	// What nobody is known to have run is gone to only where there is nothing
	// else that it could have been.
	if to == "" && len(likely) > 0 && (past.whole || len(likely) == 1) {
		to = likely[0]
	}
	why := ""
	switch n := past.failed(p, to); {
	case to != "" && n == 0:
		return to, nil
	case to != "":
		why = fmt.Sprintf(": %s failed %s, which would be next", plural(n, "device"), to)
	case !past.whole && len(likely) > 0:
		why = ": the git history here does not say, it is missing or was cut off (git fetch --unshallow gets the rest)"
	}
	err := fmt.Errorf("cannot tell which version %s should go back to from %s%s", p.Metadata.Name, or(from, "the build of gitopsd itself"), why)
	switch {
	case len(lower) == 0 && parseVersion(from) != nil && len(versions) > 0:
		err = fmt.Errorf("there is nothing that %s could go back to: no release of the line %s is older than %s", p.Metadata.Name, lineOf(p), from)
		if older(from, versions[0]) {
			return "", withHint(err, "if devices run a newer one, name it in the policy: rollbackFrom: [%s]", versions[0])
		}
		return "", withHint(err, "to stop it: %s --reason TEXT; a release that is mended is a newer one", command("gitopsd pause "+shellWord(p.Metadata.Name), t.dir))
	case len(lower) > 0:
		return "", withHint(err, "say it: --to VERSION; older releases are %s", some(annotated(lower, left)))
	case len(versions) > 0:
		return "", withHint(err, "say it with --to; the releases of %s are %s", lineOf(p), some(versions))
	}
	return "", withHint(err, "the line %s has no release", lineOf(p))
}

// annotated marks the versions that rollbackFrom names.
func annotated(versions []string, left func(string) bool) []string {
	list := slices.Clone(versions)
	for i, v := range list {
		if left(v) {
			list[i] += " (in rollbackFrom)"
		}
	}
	return list
}

// olderReleases are the versions that are older than another, newest first.
func olderReleases(versions []string, than string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return !older(v, than) })
}

// newerOf is the first of some versions that is newer than another; "" = none.
func newerOf(versions []string, than string) string {
	for _, v := range versions {
		if older(than, v) {
			return v
		}
	}
	return ""
}
