package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// renderedSpec is the JSON of gitopsd render.
type renderedSpec struct {
	schema.TypeMeta
	Device   string          `json:"device"`
	Policy   string          `json:"policy"`
	Version  string          `json:"version"`
	Digest   string          `json:"digest"`
	Rollout  string          `json:"rollout"`
	Needs    []string        `json:"needs"` // capabilities that its agent must have
	Spec     map[string]any  `json:"spec"`
	Payloads []payloadView   `json:"payloads"`
	Origins  []schema.Origin `json:"origins,omitempty"`
}

// payloadView is one payload of a rendered spec.
type payloadView struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

func renderCommand(a *app) *cobra.Command {
	format := newOutput("yaml", "json")
	var origin bool
	cmd := &cobra.Command{
		Use:   "render DEVICE [DIR]",
		Short: "Print what one device should be",
		Long: `Print the desired spec of one device as it would be assigned: release, overlays
and the device's own part merged, variables filled in, payloads by digest.`,
		GroupID:           groupAuthor,
		Args:              args(1, 2, "DEVICE [DIR]"),
		ValidArgsFunction: completeDevice(a),
		Example: `  gitopsd render gw-berlin-01
  gitopsd render gw-berlin-01 examples/fleet-repo --origin
  gitopsd render gw-berlin-01 -o json | jq .digest`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := folder(args, 1)
			fleet, err := loadFleet(dir, a.build.Version)
			if err != nil {
				return err
			}
			member, err := findMember(fleet, args[0])
			if err != nil {
				return err
			}
			if member.Rendered == nil {
				if !fleet.Valid() {
					return a.invalid(dir, fleet)
				}
				why := member.NoTarget
				if why == "" {
					why = "no policy selects it"
				}
				return &exitError{code: exitContent, err: fmt.Errorf("there is nothing to render for %s: %s", member.ID, why)}
			}
			if !fleet.Valid() {
				a.sayln("%s is not valid; this device could be rendered all the same", dir)
			}
			doc := renderedOf(member)
			if origin {
				doc.Origins = append([]schema.Origin{}, fleet.Origins(member.ID)...)
			}
			switch {
			case format.value == "json":
				return writeJSON(a.out, doc)
			case origin:
				return a.writeOrigins(doc)
			}
			data, err := yaml.Marshal(doc.Spec)
			if err != nil {
				return fmt.Errorf("cannot write the spec of %s: %w", member.ID, err)
			}
			a.sayln("# %s, %s, %s", member.ID, doc.Version, doc.Digest)
			_, err = a.out.Write(data)
			return err
		},
	}
	format.bind(cmd)
	cmd.Flags().BoolVar(&origin, "origin", false, "print the file and line of each value instead")
	return cmd
}

func renderedOf(m *schema.Member) renderedSpec {
	doc := renderedSpec{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "RenderedSpec"},
		Device:   m.ID, Policy: m.Policy, Version: m.Version, Digest: m.Rendered.Digest, Rollout: m.Rollout,
		Needs: append([]string{}, m.Rendered.Needs...), Spec: m.Rendered.Spec, Payloads: []payloadView{},
	}
	for _, digest := range slices.Sorted(maps.Keys(m.Rendered.Payloads)) {
		doc.Payloads = append(doc.Payloads, payloadView{Digest: digest, Size: m.Rendered.Payloads[digest].Size})
	}
	return doc
}

func (a *app) writeOrigins(doc renderedSpec) error {
	t := view.Table{Head: []string{"FROM", "POINTER", "VALUE"}}
	for _, o := range doc.Origins {
		t.Row(fmt.Sprintf("%s:%d", o.File, o.Line), o.Pointer, valueAt(doc.Spec, o.Pointer))
	}
	return t.Write(a.out, a.look())
}

// valueAt writes the value at a JSON pointer on one line; "" when it is none
// or a collection.
func valueAt(tree any, pointer string) string {
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch node := tree.(type) {
		case map[string]any:
			tree = node[step]
		case []any:
			var i int
			if _, err := fmt.Sscanf(step, "%d", &i); err != nil || i < 0 || i >= len(node) {
				return ""
			}
			tree = node[i]
		default:
			return ""
		}
	}
	switch tree.(type) {
	case nil, map[string]any:
		return ""
	case string:
		return fmt.Sprintf("%q", tree)
	}
	return fmt.Sprint(tree)
}

// findMember finds a device, or says which one was probably meant.
func findMember(fleet *schema.Fleet, id string) (*schema.Member, error) {
	if m := fleet.Member(id); m != nil {
		return m, nil
	}
	var ids []string
	for _, m := range fleet.Devices {
		ids = append(ids, m.ID)
	}
	return nil, noDevice(id, ids)
}

func noDevice(id string, ids []string) error {
	err := fmt.Errorf("the fleet has no device %q", id)
	if near := nearest(id, ids); near != "" {
		return withHint(err, "did you mean %s?", near)
	}
	return withHint(err, "it has %s; a device's id is the name of its file below devices/", plural(len(ids), "device"))
}
