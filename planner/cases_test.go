package planner

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the outcomes in testdata")

// caseNow is the present of all cases.
var caseNow = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// TestCases runs the cases in testdata. Each is a pair of files in an
// archive: <name>/in and <name>/want. What a case leaves out:
//
//   - a policy is called p, is enabled, goes to v1.5.0, and calls a device
//     offline after 15m;
//   - a device is governed by p, seen a minute ago, online, idle, at v1.4.0,
//     its target is v1.5.0 with a digest of its own, in rollout r1;
//   - an attempt is the device's, at its target, of the same installation;
//   - what a device said is fresh.
//
// Times are written relative to now ("-20m") or in full, durations as "1h".
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runArchive(t, file) })
	}
}

func runArchive(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []txtar.File
	for _, f := range archive.Files {
		name, kind, _ := strings.Cut(f.Name, "/")
		if kind != "in" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			in := readCase(t, f.Data)
			before := marshal(t, in)
			got := describeCase(in, Plan(in))
			if after := marshal(t, in); before != after {
				t.Errorf("Plan changed its input:\n%s", cmp.Diff(before, after))
			}
			out = append(out, f, txtar.File{Name: name + "/want", Data: []byte(got)})
			i := slices.IndexFunc(archive.Files, func(w txtar.File) bool { return w.Name == name+"/want" })
			if *update {
				return
			}
			if i < 0 {
				t.Fatal("no outcome is written: run with -update, and read it")
			}
			if diff := cmp.Diff(string(archive.Files[i].Data), got); diff != "" {
				t.Errorf("in:\n%s\nwant (-) got (+):\n%s", f.Data, diff)
			}
		})
	}
	if *update && !t.Failed() {
		archive.Files = out
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// describe writes a plan for people, one line for each finding.
func describe(r Result) string {
	var b strings.Builder
	for _, d := range r.Decisions {
		what := "start"
		switch {
		case d.OnTarget:
			what = "on target"
		case d.End != "":
			what = "end " + string(d.End)
		case d.Recall != "":
			what = "recall " + string(d.Recall)
		}
		fmt.Fprintf(&b, "# %s/%d %s: %s", d.Device, d.Attempt, what, d.Because)
		if d.Stage != "" {
			fmt.Fprintf(&b, " (stage %s)", d.Stage)
		}
		b.WriteString("\n")
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "%s %s", v.Device.ID, v.Code)
		if v.Position > 0 {
			fmt.Fprintf(&b, " %d", v.Position)
		}
		if !v.NotBefore.IsZero() {
			fmt.Fprintf(&b, " until %s", at(v.NotBefore))
		}
		fmt.Fprintf(&b, ": %s", v.Reason)
		if v.Detail != "" {
			fmt.Fprintf(&b, " [%s]", v.Detail)
		}
		if plain := v.Field == fields[v.Code] || v.Code == Queued && v.Field == "maxInFlight"; !plain || v.FieldIn == InFleet {
			fmt.Fprintf(&b, " {%s %s}", v.FieldIn, v.Field)
		}
		b.WriteString("\n")
	}
	for _, p := range r.Policies {
		fmt.Fprintf(&b, "= %s %s: N %d, slots %d, in flight %d, available %d, failed %d, refused %d",
			p.Policy, p.Target, p.N, p.Slots, p.InFlight, p.Available, p.Failed, p.Refused)
		if p.Halted {
			fmt.Fprintf(&b, ", halted by %s", strings.Join(p.HaltedBy, " "))
		}
		b.WriteString("\n")
		for _, line := range describeSummary(p) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		for _, w := range p.Warnings {
			fmt.Fprintf(&b, "! %s\n", w)
		}
	}
	return b.String()
}

// describeSummary writes what a policy is asked for beyond slots.
func describeSummary(p Summary) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	soaking := func(n int, until time.Time) string {
		if until.IsZero() {
			return fmt.Sprintf("soaking %d", n)
		}
		return fmt.Sprintf("soaking %d until %s", n, at(until))
	}
	if t := p.Pilot; t != nil {
		add("pilot: over %v, done %d of %d, in flight %d, %s", t.Over, t.Done, t.Count, t.InFlight, soaking(t.Soaking, t.SoakingUntil))
	}
	for _, w := range p.Waves {
		why := w.Why
		if why != "" {
			why = ": " + why
		}
		add("wave %q: open %v, satisfied %v, members %d, countable %d, successes %d of %d, in flight %d, %s%s",
			w.Name, w.Open, w.Satisfied, w.Members, w.Countable, w.Successes, w.Needed, w.InFlight, soaking(w.Soaking, w.SoakingUntil), why)
	}
	lines = append(lines, describeBudgets(p.Budgets)...)
	if w := p.Windows; w != nil {
		if w.Open {
			add("windows: open until %s, next %s", orNever(w.Until), orNever(w.Next))
		} else {
			add("windows: closed, next %s", orNever(w.Next))
		}
	}
	if f := p.Freeze; f != nil {
		add("frozen until %s: %s", at(f.Until), f.Note)
	}
	if !p.NextUpgrade.IsZero() {
		add("next upgrade %s", at(p.NextUpgrade))
	}
	return lines
}

func orNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return at(t)
}

func describeBudgets(budgets []BudgetSummary) []string {
	var lines []string
	for _, b := range budgets {
		line := fmt.Sprintf("budget by %s: %d groups", strings.Join(b.GroupBy, ","), b.Groups)
		for _, g := range b.Used {
			line += fmt.Sprintf("; %v %d of %d, limit %d, waiting %d", g.Labels, g.Unavailable, g.N, g.Limit, g.Waiting)
		}
		lines = append(lines, line)
	}
	return lines
}

// describeCase adds what only a case shows that asks for more than slots.
func describeCase(in Input, r Result) string {
	text := describe(r)
	f, wide := r.Fleet, !reflect.DeepEqual(in.Fleet, Fleet{})
	if wide {
		text += fmt.Sprintf("== N %d, slots %d, in flight %d, available %d", f.N, f.Slots, f.InFlight, f.Available)
		if f.Paused != "" {
			text += ", paused: " + f.Paused
		}
		if f.Problem != "" {
			text += ", invalid: " + f.Problem
		}
		if z := f.Freeze; z != nil {
			text += fmt.Sprintf(", frozen until %s: %s", at(z.Until), z.Note)
		}
		text += "\n"
		for _, line := range describeBudgets(f.Budgets) {
			text += "   " + line + "\n"
		}
	}
	moves := slices.ContainsFunc(in.Policies, func(p Policy) bool {
		return len(p.Waves)+len(p.Windows)+len(p.Freezes)+p.Pilot.Count > 0 || p.MinInterval > 0
	})
	if wide || moves {
		text += "next change " + orNever(r.NextChange) + "\n"
	}
	return text
}
