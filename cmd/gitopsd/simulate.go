package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/simulate"
	"github.com/gitopsd/gitopsd/internal/sweep"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// maxMadeUp bounds a fleet that is invented, in devices: so many take about a
// minute.
const maxMadeUp = 20_000

// assumedVersion is what a device runs of which nothing is known.
const assumedVersion = sweep.AssumedVersion

// simulateOptions are the assumptions, as flags.
type simulateOptions struct {
	head       string
	devices    int
	by         string
	seed       uint64
	updateTime span
	offline    share
	offlineFor span
	failures   share
	refusals   share
	backAfter  span
	interval   span
	until      span
	bad        bool
}

func simulateCommand(a *app) *cobra.Command {
	format := newOutput("text", "json", "yaml")
	o := &simulateOptions{
		updateTime: span(simulate.DefaultUpdateTime), offlineFor: span(simulate.DefaultOfflineFor),
		interval: span(simulate.DefaultInterval), until: span(simulate.DefaultUntil),
	}
	cmd := &cobra.Command{
		Use:   "simulate [DIR]",
		Short: "Show how a rollout will unfold",
		Long: `Show how the rollouts of the fleet repository in DIR (default: here) will
unfold: the planner is run forward over the fleet, with devices that take some
time for an update, are away now and then, and fail as often as you assume. A
timeline shows each wave and site; then come the devices that are away at most
at one time, those that never get to their target and why, and how far a release
would get of which every update fails.

The fleet is that of the working tree, or of the commit that --head names. With
--repo (or a configuration that names one) its devices are as the status branch
and their reports say, and the brake holds back what it does; without it they
count as seen, online, idle, capable and at v0.0.0. With --devices so many are
made up, in the proportions of those in the repository.

What a device is now it stays: held ones are held, busy ones busy, and with
--offline 0% offline ones offline; --back-after lets the last two come back.
Nobody acts: no policy, hold or brake changes, no stop of the daemon comes, and
no device gets new hardware. A stop that is in force counts as over, with a
warning. Updates take between half and one and a half of --update-time. The same
seed gives the same future. Nothing is written and no device is asked.

Output formats: text, json and yaml (every device and when it moved).

Exit codes: 0 it was simulated, whatever came out; 1 it could not be; 2 wrong
usage; 3 the head is not valid.`,
		GroupID:           groupAuthor,
		Args:              args(0, 1, "[DIR]"),
		ValidArgsFunction: completeFolder(0),
		Example: `  gitopsd simulate
  gitopsd simulate examples/fleet-repo --offline 5% --seed 7
  gitopsd simulate --repo https://git.example/fleet.git --update-time 20m
  gitopsd simulate --devices 2000 --failures 1%
  gitopsd simulate -o json | jq -r '.never[] | .code + " " + .devices[]'`,
	}
	options := bindReader(cmd)
	o.bind(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		doc, err := a.simulate(cmd, options, o, folder(args, 0))
		if err != nil {
			return err
		}
		return a.printSimulation(doc, format.value)
	}
	return cmd
}

func (o *simulateOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var((*nonEmpty)(&o.head), "head", "`revision` to look at (default the working tree)")
	f.IntVar(&o.devices, "devices", 0, "make up so many devices, in the proportions of those in the repository (at most 20000, which take about a minute)")
	o.by = simulate.DefaultBy
	f.Var((*nonEmpty)(&o.by), "by", "`label` that sites are told apart by")
	f.Uint64Var(&o.seed, "seed", 1, "what is left to chance; the same seed gives the same future")
	f.Var(&o.updateTime, "update-time", "how long an update takes on the mean")
	f.Var(&o.offline, "offline", "share of the time for which a device is away")
	f.Var(&o.offlineFor, "offline-for", "how long it is away then, on the mean")
	f.Var(&o.failures, "failures", "share of updates that fail and are put back")
	f.Var(&o.refusals, "refusals", "share of devices that cannot take the release at all")
	f.BoolVar(&o.bad, "bad", false, "every update fails: --failures 100%")
	f.Var(&o.backAfter, "back-after", "when devices that are offline or busy now are back or idle (default never)")
	f.Var(&o.interval, "interval", "time between two sweeps")
	f.Var(&o.until, "until", "how far to look ahead")
	for _, name := range []string{"seed", "update-time", "offline", "offline-for", "failures", "refusals", "bad", "back-after", "interval", "until"} {
		under(f.Lookup(name), assumptionFlags)
	}
	for _, name := range []string{"head", "devices", "by", "seed", "update-time", "offline", "offline-for", "failures", "refusals", "back-after", "interval", "until"} {
		_ = cmd.RegisterFlagCompletionFunc(name, offerNothing) // the error is for a flag that does not exist
	}
}

func (o *simulateOptions) assumptions() simulate.Assumptions {
	failures := float64(o.failures)
	if o.bad {
		failures = 1
	}
	return simulate.Assumptions{
		UpdateTime: schema.Duration(o.updateTime), Offline: float64(o.offline), OfflineFor: schema.Duration(o.offlineFor),
		Failures: failures, Refusals: float64(o.refusals), BackAfter: schema.Duration(o.backAfter),
		Interval: schema.Duration(o.interval), Until: schema.Duration(o.until), Seed: o.seed,
	}
}

// simulate loads the fleet as it is now, and runs it forward.
func (a *app) simulate(cmd *cobra.Command, options *readerOptions, o *simulateOptions, dir string) (doc *simulate.Simulation, err error) {
	switch {
	case cmd.Flags().Changed("devices") && o.devices < 1 || o.devices > maxMadeUp:
		return nil, usagef("--devices %d: want a number from 1 to %d", o.devices, maxMadeUp)
	case o.devices > 0 && cmd.Flags().Changed("repo"):
		return nil, withHint(usagef("--devices makes devices up, and --repo asks for the real ones"), "leave one of them out")
	}
	if o.bad && cmd.Flags().Changed("failures") {
		return nil, withHint(usagef("--bad is --failures 100%%"), "leave one of them out")
	}
	if err := o.assumptions().Check(); err != nil {
		return nil, usagef("%w", err)
	}
	spec, _, _, err := options.resolve(cmd, a.env)
	if err != nil {
		return nil, err
	}
	if o.devices > 0 {
		spec.Repo.URL = "" // what is made up has no status
	}
	ctx := cmd.Context()
	s := a.openSides(dir, spec)
	defer func() { err = errors.Join(err, s.close()) }()
	head, err := s.head(ctx, o.head)
	if err != nil {
		return nil, err
	}
	present, err := openPresent(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, present.close()) }()
	in := present.input(head.fleet, time.Now().UTC().Truncate(time.Second), a.build.Version)
	cfg := simulate.Config{Input: in, Assume: o.assumptions(), By: o.by, Unknown: present.status == nil, BadRelease: !o.bad, Step: a.narrate(ctx)}
	if o.devices > 0 {
		if cfg.Input = simulate.MakeUp(in, o.devices); len(cfg.Input.Devices) == 0 {
			return nil, withHint(errors.New("there is no device to make up others like it"), "put one of each kind below devices/")
		}
	}
	if err := cfg.Assume.CheckFor(len(cfg.Input.Devices)); err != nil {
		return nil, withHint(usagef("%w", err), "lengthen --offline-for, or shorten --until")
	}
	switch doc, err = simulate.Run(ctx, cfg); {
	case interrupted(ctx, err):
		return nil, errors.New("the simulation was interrupted before its end")
	case err != nil:
		return nil, err
	}
	doc.MadeUp = o.devices
	doc.Warnings = append(doc.Warnings, present.standing()...)
	return doc, nil
}

const (
	// narrateAfter is how long somebody waits without a word.
	narrateAfter = 2 * time.Second
	// narrateEvery is the time between two words.
	narrateEvery = 5 * time.Second
)

// narrate tells a person who waits how far a simulation is.
func (a *app) narrate(ctx context.Context) func(simulate.Step) error {
	next := time.Now().Add(narrateAfter)
	return func(s simulate.Step) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if now := time.Now(); now.After(next) {
			next = now.Add(narrateEvery)
			a.sayln("simulated until %s: %d of %s there", view.Stamp(s.Now), s.Arrived, plural(s.Pending, "device"))
		}
		return nil
	}
}

func (a *app) printSimulation(doc *simulate.Simulation, format string) error {
	switch format {
	case "json":
		return writeJSON(a.out, doc)
	case "yaml":
		return a.writeYAML(doc)
	}
	if err := view.WriteSimulation(a.out, doc, a.look()); err != nil {
		return err
	}
	for _, w := range doc.Warnings {
		a.sayln("warning: %s", clean(w))
	}
	a.sayln("%s", assumedText(doc))
	return nil
}

// assumedText says what a simulation goes by.
func assumedText(doc *simulate.Simulation) string {
	as := &doc.Assumptions
	text := fmt.Sprintf("assumed: updates take %s, %s, %s", as.UpdateTime, rateText(as.Offline, "nobody goes offline", "devices are offline %s of the time"),
		rateText(as.Failures, "none fails", "%s of them fail"))
	if as.Refusals > 0 {
		text += ", " + rateText(as.Refusals, "", "%s of the devices refuse")
	}
	text += fmt.Sprintf(", no stop comes, no hardware is replaced; seed %d", as.Seed)
	switch {
	case doc.MadeUp > 0:
		text += fmt.Sprintf("; %s made up, seen, online, idle and at %s", plural(doc.MadeUp, "device"), assumedVersion)
	case doc.Assumed:
		text += fmt.Sprintf("; no status was read, so every device counts as seen, online, idle and at %s (--repo reads it)", assumedVersion)
	}
	return text
}

func rateText(rate float64, none, some string) string {
	if rate == 0 {
		return none
	}
	return fmt.Sprintf(some, share(rate).text())
}
