package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// planDocument is the JSON of gitopsd plan.
type planDocument struct {
	schema.TypeMeta
	Verdicts []planVerdict `json:"verdicts"`
	Recalls  []planRecall  `json:"recalls"`
	Summary  planSummary   `json:"summary"`
}

type planVerdict struct {
	Device    string     `json:"device"`
	Policy    string     `json:"policy"`
	Upgrade   bool       `json:"upgrade"`
	Code      string     `json:"code"`
	Reason    string     `json:"reason"`
	Version   string     `json:"version"` // that it runs
	Target    string     `json:"target"`
	Detail    string     `json:"detail,omitempty"`
	Position  int        `json:"position,omitempty"`
	NotBefore *time.Time `json:"notBefore,omitempty"`
}

type planRecall struct {
	Device  string `json:"device"`
	Attempt int64  `json:"attempt"`
	Because string `json:"because"`
}

type planSummary struct {
	// Assumed says that no status was read: devices count as seen, online,
	// idle and capable, at v0.0.0.
	Assumed  bool           `json:"assumed"`
	Upgrades int            `json:"upgrades"`
	Recalls  int            `json:"recalls"`
	Counts   map[string]int `json:"counts"`
	Policies []policyPlan   `json:"policies"`
	Warnings []string       `json:"warnings"`
}

type policyPlan struct {
	Policy    string   `json:"policy"`
	Target    string   `json:"target"`
	Devices   int      `json:"devices"` // that are not absent
	Slots     int      `json:"slots"`
	InFlight  int      `json:"inFlight"`
	Available int      `json:"available"`
	Failed    int      `json:"failed"`
	Refused   int      `json:"refused"`
	Halted    bool     `json:"halted"`
	HaltedBy  []string `json:"haltedBy"`
}

func planCommand(a *app) *cobra.Command {
	format := newOutput("table", "json")
	var exitCode bool
	cmd := &cobra.Command{
		Use:   "plan [DIR]",
		Short: "Show what a sweep would do with a fleet repository",
		Long: `Show what a sweep would do with the fleet repository in DIR (default: here),
device by device. With --repo (or a configuration that names one) the present
status is read from there; without it devices count as seen, online, idle,
capable and at v0.0.0, and the summary says so.

Exit codes with --exit-code: 0 nothing would be upgraded or recalled, 3
something would. Without it: 0. An invalid fleet always ends with 3.`,
		GroupID:           groupAuthor,
		Args:              args(0, 1, "[DIR]"),
		ValidArgsFunction: completeFolder(0),
		Example: `  gitopsd plan
  gitopsd plan examples/fleet-repo
  gitopsd plan --repo https://git.example/fleet.git --exit-code
  gitopsd plan -o json | jq -r '.verdicts[] | select(.upgrade) | .device'`,
	}
	options := bindReader(cmd)
	format.bind(cmd)
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 3 if something would be upgraded or recalled")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := folder(args, 0)
		fleet, err := loadFleet(dir, a.build.Version)
		if err != nil {
			return err
		}
		if !fleet.Valid() {
			return a.invalid(dir, fleet)
		}
		result, assumed, err := a.plan(cmd, options, fleet)
		if err != nil {
			return err
		}
		doc := planOf(fleet, result, assumed)
		for _, p := range fleet.Problems {
			doc.Summary.Warnings = append(doc.Summary.Warnings, problemText(p))
		}
		if format.value == "json" {
			err = writeJSON(a.out, doc)
		} else {
			err = a.writePlan(doc)
		}
		if err == nil && exitCode && doc.Summary.Upgrades+doc.Summary.Recalls > 0 {
			return contentProblems()
		}
		return err
	}
	return cmd
}

// plan plans the fleet with its present status, if a repository is named.
func (a *app) plan(cmd *cobra.Command, options *readerOptions, fleet *schema.Fleet) (result planner.Result, assumed bool, err error) {
	spec, _, _, err := options.resolve(cmd, a.env)
	if err != nil {
		return result, false, err
	}
	now := time.Now()
	if spec.Repo.URL == "" {
		return sweep.PlanNow(fleet, nil, nil, now, a.build.Version), true, nil
	}
	r, err := openReader(spec)
	if err != nil {
		return result, false, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	ctx := cmd.Context()
	status, err := r.status(ctx)
	if err != nil {
		return result, false, err
	}
	reports, err := r.readReports(ctx, r.reportRefs())
	if err != nil {
		return result, false, err
	}
	return sweep.PlanNow(fleet, status, reports, now, a.build.Version), false, nil
}

// planOf is the document of a plan.
func planOf(fleet *schema.Fleet, result planner.Result, assumed bool) planDocument {
	doc := planDocument{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "Plan"},
		Verdicts: []planVerdict{}, Recalls: []planRecall{},
		Summary: planSummary{Assumed: assumed, Counts: map[string]int{}, Policies: []policyPlan{}, Warnings: []string{}},
	}
	for _, v := range result.Verdicts {
		one := planVerdict{
			Device: v.Device.ID, Policy: v.Device.Policy, Upgrade: v.Upgrade, Code: string(v.Code), Reason: v.Reason,
			Version: v.Device.Version, Target: v.Target.Version, Detail: v.Detail, Position: v.Position,
		}
		if !v.NotBefore.IsZero() {
			at := v.NotBefore.UTC()
			one.NotBefore = &at
		}
		if v.Upgrade {
			doc.Summary.Upgrades++
		}
		doc.Summary.Counts[one.Code]++
		doc.Verdicts = append(doc.Verdicts, one)
	}
	for _, d := range result.Decisions {
		if d.Recall != "" {
			doc.Recalls = append(doc.Recalls, planRecall{Device: d.Device, Attempt: d.Attempt, Because: d.Because})
		}
	}
	doc.Summary.Recalls = len(doc.Recalls)
	doc.Summary.Warnings = append(doc.Summary.Warnings, surprises(result.Verdicts)...)
	for _, s := range result.Policies {
		doc.Summary.Policies = append(doc.Summary.Policies, policyPlan{
			Policy: s.Policy, Target: s.Target, Devices: s.N, Slots: s.Slots, InFlight: s.InFlight, Available: s.Available,
			Failed: s.Failed, Refused: s.Refused, Halted: s.Halted, HaltedBy: append([]string{}, s.HaltedBy...),
		})
		for _, w := range s.Warnings {
			doc.Summary.Warnings = append(doc.Summary.Warnings, s.Policy+": "+w)
		}
	}
	return doc
}

// surprises are what an author of a change should know before it is merged
// and only the present status can tell.
func surprises(verdicts []planner.Verdict) []string {
	type group struct{ policy, version, target string }
	again, newer := map[group]int{}, map[group]int{}
	for _, v := range verdicts {
		g := group{v.Device.Policy, v.Device.Version, v.Target.Version}
		changed := v.Target.Version == v.Device.Version && v.Device.Digest != "" && v.Target.Digest != v.Device.Digest
		switch {
		case v.Code == planner.Newer:
			newer[g]++
		case changed && v.Code != planner.Current && v.Code != planner.Upgrading:
			again[g]++
		}
	}
	var list []string
	for g, n := range again {
		list = append(list, fmt.Sprintf("%s: the content of %s has changed: %s on it will be updated again", g.policy, g.version, plural(n, "device")))
	}
	for g, n := range newer {
		list = append(list, fmt.Sprintf("%s: %s on %s, newer than the target %s, will stay there; rollbackFrom: [%s] would let them go down",
			g.policy, plural(n, "device"), g.version, g.target, g.version))
	}
	slices.Sort(list)
	return list
}

func (a *app) writePlan(doc planDocument) error {
	look := a.look()
	policies := view.Table{Head: []string{"POLICY", "TARGET", "DEVICES", "SLOTS", "MOVING", "FAILED", "STATE"}}
	for _, p := range doc.Summary.Policies {
		state := ""
		if p.Halted {
			state = "HALTED by " + strings.Join(p.HaltedBy, ", ")
		}
		policies.Row(p.Policy, or(p.Target, "-"), strconv.Itoa(p.Devices), strconv.Itoa(p.Slots), strconv.Itoa(p.InFlight), strconv.Itoa(p.Failed), state)
	}
	devices := view.Table{Head: []string{"DEVICE", "VERDICT", "VERSION", "TARGET", "REASON"}}
	for _, v := range doc.Verdicts {
		reason := v.Reason
		if v.Detail != "" {
			reason = v.Detail
		}
		if v.Position > 0 {
			reason += fmt.Sprintf(" (number %d)", v.Position)
		}
		devices.Row(v.Device, v.Code, or(v.Version, "-"), or(v.Target, "-"), reason)
	}
	if err := policies.Write(a.out, look); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	if err := devices.Write(a.out, look); err != nil {
		return err
	}
	for _, r := range doc.Recalls {
		if _, err := fmt.Fprintf(a.out, "recall %s: attempt %d, %s\n", clean(r.Device), r.Attempt, clean(r.Because)); err != nil {
			return err
		}
	}
	for _, w := range doc.Summary.Warnings {
		a.sayln("warning: %s", clean(w))
	}
	text := plural(doc.Summary.Upgrades, "upgrade") + ", " + plural(doc.Summary.Recalls, "recall")
	if doc.Summary.Assumed {
		text += "; no status was read, so every device counts as seen, online, idle and at v0.0.0 (--repo reads it)"
	}
	a.sayln("%s", text)
	return nil
}
