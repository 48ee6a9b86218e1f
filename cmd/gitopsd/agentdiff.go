package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/internal/edit"
	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// deviceComparison is the JSON of gitopsd agent diff.
type deviceComparison struct {
	schema.TypeMeta
	Running bool `json:"running"` // the agent answered
	*reconcile.Comparison
}

func agentDiffCommand(a *app) *cobra.Command {
	format := newOutput("text", "json")
	var current, secrets bool
	var file string
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "What would change on this device",
		Long: `Compare this device with the version that it is on its way to or only observes,
or, where there is none, with the one that it is on: then what differs is drift.
Files come as a unified diff from what is on the device to what it would be;
units and applications are asked for how they run; hooks that would run are
listed with their programs, which are not run.

With --spec it compares with a spec that is not assigned, as gitopsd render
prints it; this needs no agent. Contents of payloads are not at hand then: that
they differ is told, and not how.

What not everybody on the device may read is not shown, nor what looks like a
secret; --secrets shows it, and reads the disk, which takes root. What is
encrypted in the fleet repository is never shown.

Exit codes: 0 nothing differs; 1 it cannot be told; 3 something does.`,
		Args: args(0, 0, ""),
		Example: `  gitopsd agent diff
  gitopsd agent diff --current
  gitopsd agent diff --spec gw-1.yaml   # of gitopsd render gw-1
  gitopsd agent diff -o json`,
	}
	options := bindLocal(cmd)
	cmd.Flags().Var((*nonEmpty)(&file), "spec", "compare with the spec in this `file`; - is standard input")
	cmd.Flags().BoolVar(&current, "current", false, "compare with the version that it is on, whatever is desired")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "show contents that are secret, too")
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := options.resolve(a)
		if err != nil {
			return err
		}
		var doc *deviceComparison
		if file != "" {
			doc, err = a.comparedTo(cmd.Context(), d, file, secrets)
		} else {
			doc, err = d.comparison(cmd, current, secrets)
		}
		if err != nil {
			return err
		}
		if !secrets {
			hideSecrets(doc.Changes)
		}
		if format.value == "json" {
			err = writeJSON(a.out, doc)
		} else {
			if file == "" { // else nobody was asked, and nobody needs to be
				d.writeNobody(a.out, doc.Running)
			}
			err = a.writeComparison(doc)
		}
		switch {
		case err != nil:
			return err
		case len(doc.Changes) > 0:
			return &exitError{code: exitContent}
		case len(doc.Trouble) > 0:
			return &exitError{code: exitCannot}
		}
		return nil
	}
	return cmd
}

// comparison asks the agent, or compares by itself.
func (d *device) comparison(cmd *cobra.Command, current, secrets bool) (*deviceComparison, error) {
	doc := &deviceComparison{TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "DeviceComparison"}}
	reply, nobody, err := d.answer(cmd.Context(), agentsocket.Request{Do: agentsocket.DoDiff, Current: current})
	doc.Running, doc.Comparison = !nobody, reply.Comparison
	if err != nil || doc.Comparison != nil && !secrets {
		return doc, err
	}
	v, err := d.look()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	doc.Comparison, err = v.Compare(cmd.Context(), current, secrets)
	return doc, permission(err)
}

// comparedTo compares with a spec that is written in a file.
func (a *app) comparedTo(ctx context.Context, d *device, file string, secrets bool) (*deviceComparison, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = readAll(a.in, "standard input", specLimit)
	} else {
		data, err = readLimited(file, specLimit)
	}
	if err != nil {
		return nil, fmt.Errorf("read the spec: %w", err)
	}
	var spec map[string]any
	if err := yaml.Unmarshal(data, &spec); err != nil {
		return nil, withHint(fmt.Errorf("read the spec in %s: %w", file, err), "gitopsd render DEVICE writes one")
	}
	switch kind := spec["kind"]; kind {
	case string(schema.KindRelease), string(schema.KindOverlay), string(schema.KindDevice):
		return nil, withHint(fmt.Errorf("%s is a part of a spec, of the kind %s", file, kind), "gitopsd render DEVICE puts a spec together")
	}
	if _, document := spec["apiVersion"]; document {
		spec, _ = spec["spec"].(map[string]any) // render -o json
	}
	if spec == nil { // a render that failed; a spec of nothing is {}
		return nil, withHint(fmt.Errorf("read the spec in %s: there is no spec in it", file), "gitopsd render DEVICE writes one")
	}
	c, err := reconcile.CompareSpec(ctx, d.state, spec, secrets)
	if err != nil {
		return nil, permission(err)
	}
	c.To.Version = file
	return &deviceComparison{TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "DeviceComparison"}, Comparison: c}, nil
}

// specLimit bounds a spec in bytes, as the agent bounds its state.
const specLimit = 32 << 20

// hideSecrets takes out the contents that look like secrets.
func hideSecrets(changes []reconcile.Change) {
	for i := range changes {
		c := &changes[i]
		for _, side := range []*string{c.From, c.To} {
			if side == nil || c.Hidden != "" {
				continue
			}
			c.Hidden = preview.LooksSecret(c.File(), *side)
		}
		if c.Hidden != "" {
			c.From, c.To = nil, nil
		}
	}
}

func (a *app) writeComparison(doc *deviceComparison) error {
	what := "drift from " + doc.To.Version
	switch {
	case doc.Observed:
		what = fmt.Sprintf("compared with %s, attempt %d, and nothing of it is done", doc.To.Version, doc.To.Attempt)
	case doc.Desired && doc.To.Attempt == 0:
		what = "on the way to " + doc.To.Version
	case doc.Desired:
		what = fmt.Sprintf("on the way to %s, attempt %d", doc.To.Version, doc.To.Attempt)
	}
	switch {
	case len(doc.Changes) > 0:
		what += ":"
	case len(doc.Trouble) > 0:
		what += ": it cannot be told whether something differs"
	default:
		what += ": nothing differs"
	}
	fmt.Fprintln(a.out, clean(what))
	for _, c := range doc.Changes {
		fmt.Fprintln(a.out, clean(changeText(&c)))
	}
	if doc.More > 0 {
		fmt.Fprintf(a.out, "… and %d more\n", doc.More)
	}
	for i, h := range doc.Hooks {
		if i == 0 {
			fmt.Fprintln(a.out, "hooks that would run:")
		}
		fmt.Fprintf(a.out, "  %s\n", clean(h))
	}
	for _, t := range doc.Trouble {
		fmt.Fprintf(a.out, "trouble: %s\n", clean(t))
	}
	for _, c := range doc.Changes {
		if c.From == nil && c.To == nil {
			continue
		}
		var before []byte
		if c.From != nil {
			before = []byte(*c.From)
		}
		after := ""
		if c.To != nil {
			after = *c.To
		}
		if err := a.writeDiff(edit.Diff(strings.TrimPrefix(c.File(), "/"), before, []byte(after))); err != nil {
			return err
		}
	}
	return nil
}

// changeText is a change in one line.
func changeText(c *reconcile.Change) string {
	text := "  " + view.DifferenceText(&c.Difference)
	if c.Hidden != "" {
		text += ", not shown: " + c.Hidden
	}
	return text
}
