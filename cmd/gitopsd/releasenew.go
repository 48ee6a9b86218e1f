package main

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/schema"
)

func releaseCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "release",
		Short:   "Make releases",
		GroupID: groupOperate,
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(releaseNewCommand(a))
	return cmd
}

func releaseNewCommand(a *app) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "new LINE VERSION [DIR] --from OLD",
		Short: "Begin a release as a copy of another one",
		Long: `Copy the release OLD of a line under the name of a new version, in the fleet
repository in DIR (default: here): its document with its comments, where only
metadata.name is changed, and, where the release is a folder, the payloads
beside it. What the new version should do differently, you write then; no device
moves before a policy's targetVersion names it. A release that exists is never
overwritten, symlinks are not followed, and nothing is copied where a file is
larger than a payload may be (64 MiB).`,
		DisableFlagsInUseLine: true,
		Args:                  args(2, 3, "LINE VERSION [DIR]"),
		ValidArgsFunction:     completeLine(a),
		Example: `  gitopsd release new gateways v1.6.0 --from v1.5.0
  gitopsd release new gateways v1.6.0 ~/fleet --from v1.5.0 --dry-run`,
	}
	options := bindEdit(cmd)
	cmd.Flags().Var((*nonEmpty)(&from), "from", "the `version` to copy")
	// The error is for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("from", func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offerReleases(a, args)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.change(cmd.Context(), folder(args, 2), options, func(t *workTree) (edited, error) { return t.newRelease(args[0], args[1], from) })
	}
	return cmd
}

// newRelease copies a release.
func (t *workTree) newRelease(line, version, from string) (edited, error) {
	if !slices.Contains(t.lines(), line) {
		err := fmt.Errorf("there is no release line %q", line)
		if near := nearest(line, t.lines()); near != "" {
			return edited{}, withHint(err, "did you mean %s?", near)
		}
		return edited{}, withHint(err, "a line is a folder below releases/; it has %s", or(some(t.lines()), "none"))
	}
	versions, files := t.releasesOf(line)
	old := files[from]
	switch {
	case from == "":
		newest := "OLD"
		if len(versions) > 0 {
			newest = versions[0]
		}
		return edited{}, withHint(usagef("--from is missing"), "name the release to copy: gitopsd release new %s %s --from %s", shellWord(line), shellWord(version), shellWord(newest))
	case version == "" || strings.ContainsAny(version, "/\\\x00") || parseVersion(version) == nil:
		return edited{}, withHint(usagef("%q is no version", version), "a version looks like v1.5.0 or v1.5.0-rc.1")
	case files[version] != "":
		return edited{}, withHint(fmt.Errorf("the release %s of %s exists: %s", version, line, files[version]), "it is never overwritten; name another version, or edit that file")
	case old == "":
		return edited{}, t.noSource(line, from)
	}
	form, err := edit.FormOf(schema.KindRelease, schema.Release{})
	if err != nil {
		return edited{}, err
	}
	c, err := t.edit(old, form, step{path: []string{"metadata", "name"}, value: version})
	if err != nil {
		return edited{}, err
	}
	c.before, c.path = nil, path.Join("releases", line, version+".yaml")
	e := edited{changes: []fileChange{c}, message: subject("%s: add %s, a copy of %s", line, version, from)}
	folder, inFolder := strings.CutSuffix(old, "/release.yaml")
	if inFolder {
		to := path.Join("releases", line, version)
		e.changes[0].path = to + "/release.yaml"
		copies, err := t.copies(folder, to)
		if err != nil {
			return edited{}, err
		}
		e.changes = append(e.changes, copies...)
		if len(copies) > 0 {
			e.notes = append(e.notes, fmt.Sprintf("%s beside it: %s", plural(len(copies), "payload"), some(namesOf(copies, to))))
		}
		if bytes.Contains(c.after, []byte(folder+"/")) {
			e.notes = append(e.notes, "warning: it still names payloads in "+folder+"/; ./ is the folder of the release itself")
		}
	}
	e.notes = append(e.notes, fmt.Sprintf("so far it is %s under another name: edit %s", from, path.Join(t.dir, e.changes[0].path)))
	if t.followedBy(line) != "" {
		e.after = []string{command("gitopsd set-version "+shellWord(t.followedBy(line))+" "+shellWord(version), t.dir)}
	}
	return e, nil
}

// followedBy is the first policy that takes its releases from a line.
func (t *workTree) followedBy(line string) string {
	for _, p := range t.fleet.Policies {
		if lineOf(p) == line {
			return p.Metadata.Name
		}
	}
	return ""
}

// copies are the payloads of a release that is a folder, in another one.
func (t *workTree) copies(folder, to string) ([]fileChange, error) {
	var list []fileChange
	for i := range t.entries {
		e := &t.entries[i]
		rest, below := strings.CutPrefix(e.Path, folder+"/")
		switch {
		case !below || rest == "release.yaml":
			continue
		case e.Mode == schema.ModeSymlink || e.Mode == schema.ModeSubmodule:
			return nil, withHint(fmt.Errorf("cannot copy %s: it is no file, and is not followed", e.Path), "put the file itself there, or take it away")
		case e.Size > payloadLimit:
			return nil, withHint(fmt.Errorf("cannot copy %s: it has more than the %d MiB that a payload may have", e.Path, payloadLimit>>20), "take it out of the folder of the release")
		}
		list = append(list, fileChange{path: path.Join(to, rest), copyOf: e})
	}
	return list, nil
}

func namesOf(changes []fileChange, folder string) []string {
	var names []string
	for _, c := range changes {
		names = append(names, strings.TrimPrefix(c.path, folder+"/"))
	}
	return names
}
