//go:build system

package protocoltest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// rule is one rule of the protocol, and how to break it: a piece of one file
// of this module and what to put in its place. The schedules must notice.
type rule struct {
	name  string // also of its line in testdata/seeds
	file  string
	old   string
	new   string
	also  []rule // further pieces that keep the same rule
	real  bool   // it is a rule of the agent, so only real ones can break it
	fleet bool   // it is a restraint of rollouts, which only histories meet
	by    string // package whose tests notice it, where no invariant depends on it alone
}

// unseen keeps the daemon from looking at the delivery of a recalled attempt.
var unseen = rule{file: "internal/sweep/repair.go",
	old: `	for id := range p.status.counted().awaiting {
		values[id] = ""
	}
	for id := range d.unsure {`, new: `	for id := range map[string]bool{} {`}

var rules = []rule{
	// The daemon.
	{name: "a lost race is planned anew, from everything fetched again", file: "internal/sweep/publish.go",
		old: `		commit, err := p.d.cfg.Remote.Commit(`,
		new: `		if refs, err := p.d.cfg.Remote.Refs(ctx, branchRef(p.d.cfg.StatusBranch)); err == nil {
			p.tip = refs[branchRef(p.d.cfg.StatusBranch)]
		}
		commit, err := p.d.cfg.Remote.Commit(`},
	{name: "the status branch is written before the deliveries", file: "internal/sweep/publish.go",
		old: `	refused, err := p.d.cfg.Remote.Publish(ctx, lead, deliveries)`,
		new: `	refused, err := p.d.cfg.Remote.Publish(ctx, nil, deliveries)
	if err == nil {
		_, err = p.d.cfg.Remote.Publish(ctx, lead, nil)
	}`},
	{name: "a new delivery goes by the value that is known", file: "internal/sweep/publish.go",
		old: `			moves[ref] = [2]string{known, commit}`,
		new: `			if refs, err := p.d.cfg.Remote.Refs(ctx, ref); err == nil && refs[ref] != commit {
				known = refs[ref]
			}
			moves[ref] = [2]string{known, commit}`},
	{name: "a delivery is repaired by the value that was compared", file: "internal/sweep/repair.go",
		old: `			moves[ref] = [2]string{values[id], want}`,
		new: `			if refs, err := d.cfg.Remote.Refs(ctx, ref); err == nil {
				values[id] = refs[ref]
			}
			moves[ref] = [2]string{values[id], want}`},
	{name: "generations are compared before a delivery is repaired", file: "internal/sweep/repair.go",
		old: `		if there > here {`, new: `		if false && there > here {`},
	{name: "deliveries are repaired before the reports are read", file: "internal/sweep/pass.go",
		old: "		p.repair,      // deliveries that do not stand as the status branch says\n		p.readReports, // what devices say\n",
		new: "		p.readReports, // what devices say\n		p.repair,      // deliveries that do not stand as the status branch says\n"},
	{name: "reports are listed again behind a confirmed recall", file: "internal/sweep/reports.go",
		old: `	if p.relist || !d.sameRepository() {`, new: `	if !d.sameRepository() {`},
	{name: "a recall frees a slot only once it is known to be delivered", file: "planner/judge.go",
		old: `case a.Recalled != "" && a.RecallDelivered && !begins(d, a):`, new: `case a.Recalled != "" && !begins(d, a):`,
		also: []rule{unseen}},
	{name: "a recall frees no slot of an attempt that shows a start", file: "planner/judge.go",
		old: `case a.Recalled != "" && a.RecallDelivered && !begins(d, a):`, new: `case a.Recalled != "" && a.RecallDelivered:`},
	{name: "a recalled attempt holds its slot until it has ended", file: "planner/count.go",
		old: `if k := (key{d.ID, a.Number}); a.Outcome == "" && !holding[k] {`, new: `if k := (key{d.ID, a.Number}); a.Outcome == "" && a.Recalled == "" && !holding[k] {`},
	{name: "an assigned attempt holds a slot", file: "planner/count.go",
		old: `if k := (key{d.ID, a.Number}); a.Outcome == "" && !holding[k] {`, new: `if k := (key{d.ID, a.Number}); a.Outcome == "" && !a.StartedAt.IsZero() && !holding[k] {`},
	{name: "a deferred report only begins a recall", file: "planner/judge.go",
		old: `		if a.StartedAt.IsZero() && a.OnTargetAt.IsZero() && (said.Starting || said.Begun) {`,
		new: `		if blocked, why := d.blocked(); blocked && gaveUp(d, a) {
			return end(Deferred, why)
		}
		if a.StartedAt.IsZero() && a.OnTargetAt.IsZero() && (said.Starting || said.Begun) {`},
	{name: "only a report that names the attempt decides it", file: "planner/evidence.go",
		old: `	return d.Seen && a.Number > 0 && d.Said.Attempt == a.Number && sameInstall(d, a)`,
		new: `	return d.Seen && a.Number > 0 && sameInstall(d, a)`},
	{name: "what has changed anything ends as ok, failed or lost", file: "planner/evidence.go",
		old: `	return s.Begun || s.Starting || s.Outcome != "" || !slices.Contains(beforeStart, s.Phase)`,
		new: `	return s.Starting || s.Outcome != "" || slices.Contains(beforeStart, "never")`},
	{name: "the end of an attempt takes its document back", file: "internal/sweep/draft.go",
		old: `		if d.doc != nil && d.doc.Attempt == a.Attempt && d.doc.Spec != nil {`,
		new: `		if false && d.doc != nil && d.doc.Attempt == a.Attempt && d.doc.Spec != nil {`},
	{name: "a document without a spec does not bear the recalled number", file: "internal/sweep/draft.go",
		old: `	next.Attempt = d.lastGood(a.Attempt)
	next.Recalled = a.Attempt`,
		new: `	next.Attempt, next.Spec, next.Version, next.Digest = a.Attempt, d.kept.Spec, a.Version, a.Digest`},
	{name: "a success after its recall gives the spec back", file: "internal/sweep/draft.go",
		old: `		next.Spec = m.Rendered.Spec
`, new: ``},
	{name: "lost is corrected only behind the delivered recall", file: "planner/judge.go", by: "planner",
		old: `	if a.RecallDelivered && gaveUp(d, a) {`, new: `	if gaveUp(d, a) {`},
	{name: "attempts are numbered once", file: "internal/sweep/draft.go",
		old: `	number := d.lastNumber() + 1`, new: `	number := max(d.lastNumber(), 1)`},
	{name: "a new installation ends the attempt of the old one", file: "planner/judge.go",
		old: `	if d.Seen && said.Fresh && !sameInstall(d, a) {
		// Its`, new: `	if false && d.Seen && said.Fresh && !sameInstall(d, a) {
		// Its`},
	{name: "it ends as lost also where no start was seen", file: "planner/judge.go",
		old: `		return end(Lost, "another installation reports")`,
		new: `		if a.StartedAt.IsZero() {
			return end(Deferred, "another installation reports")
		}
		return end(Lost, "another installation reports")`},
	{name: "a new installation does not lift the halt", file: "planner/count.go",
		old: `if a.Outcome == "" || !concerns(a) || a.EndedAt.Before(forget) {`,
		new: `if a.Outcome == "" || !concerns(a) || a.EndedAt.Before(forget) || !sameInstall(d, a) {`},
	{name: "lost counts as a failure", file: "planner/count.go",
		old: `		case Failed, Lost:
			failed = true`, new: `		case Failed:
			failed = true`},

	// The device.
	{name: "a document is for one installation", file: "reconcile/admit.go", real: true,
		old: `	case a.For != f.install && a.For != "":`, new: `	case false && a.For != f.install && a.For != "":`},
	{name: "nothing begins that a hold is on", file: "reconcile/admit.go", real: true,
		old: `	case a.Hold != nil:`, new: `	case false && a.Hold != nil:`,
		also: []rule{{file: "reconcile/busy.go", old: `	case a.store.attempts.Hold != nil:`, new: `	case false:`}}},
	{name: "nothing begins that has ended here", file: "reconcile/admit.go", real: true,
		old: `	case a.Attempt <= f.ended || a.Attempt <= f.currentAttempt:`, new: `	case a.Attempt <= f.currentAttempt:`},
	{name: "a new attempt of what is desired takes its number", file: "reconcile/admit.go", real: true,
		old: `	case a.Attempt == f.desired:
		return admitGoOn, ""`, new: `	case f.desired != 0 && a.Digest == f.desiredDigest:
		return admitGoOn, ""`},
	{name: "the announcement must be accepted", file: "reconcile/update.go", real: true,
		old: `	if err := a.reports.flush(ctx); err != nil {
		return a.notYet(`, new: `	if err := a.reports.flush(ctx); false && err != nil {
		return a.notYet(`},
	{name: "a report that was not pushed was not accepted", file: "agentsync/report.go", real: true,
		old: `		if kind(err) != "race" || n+1 >= maxRaces {
			return fmt.Errorf("report to %s: %w", c.reportRef, err)`, new: `		if kind(err) != "race" || n+1 >= maxRaces {
			return nil`},
	{name: "the device looks again", file: "reconcile/update.go", real: true,
		old: `	if next, res, ok := a.lookAgain(ctx); !ok {`, new: `	if next, res, ok := a.lookAgain(ctx); false && !ok {`},
	{name: "looking again must be answered", file: "reconcile/update.go", real: true,
		old: `		return nil, a.notYet(ctx, "control did not answer the second look", err), false`, new: `		return nil, Result{}, true`},
	{name: "looking again asks for busy and held", file: "reconcile/update.go", real: true,
		old: `	a.lookAround(ctx)
	if why := a.waits(); why != "" {
		return nil, a.deferred(ctx, StageLookAgain, why), false
	}`, new: ``},
	{name: "what was begun and put back does not wait", file: "reconcile/fail.go", by: "reconcile",
		old: `	if a.begunWork() {
		return a.endWaiting(ctx, why)
	}`, new: ``},
	{name: "what was begun and put back is not dropped", file: "reconcile/poll.go", real: true,
		old: `	d := a.store.desired
	return d != nil && a.store.attempts.of(d.Attempt).Begun`, new: `	return false`},
	{name: "who lost its attempts is another installation", file: "reconcile/store.go", real: true,
		old: `	okCur := read(currentFile,`, new: `	if !okAtt {
		att, okAtt = attempts{Format: attemptsFormat}, true
	}
	okCur := read(currentFile,`},
	{name: "no sequence is used twice", file: "reconcile/sequence.go", real: true,
		old: `	q.ins = i
	q.next = i.Reserved + 1
}

// begin`, new: `	q.ins = i
	q.next = 1
}

// begin`},
	{name: "that it begins is on disk first", file: "reconcile/update.go", real: true,
		old: `	att.Work = w
	att.Direction, att.Incomplete = forward, ""
	return a.store.saveAttempts(att)`, new: `	att.Work = w
	return a.store.saveAttempts(att)`},
}

// violated is what the tests print of a schedule that found something.
var violated = regexp.MustCompile(`(?m)as short as it could be made \((\d+) steps\): (.*)$`)
var shortest = regexp.MustCompile(`(?m)^\s*schedule: ([0-9a-f]+)$`)

// The ordinary run plays the seeds. When none of them notices any more, because
// the code takes other steps now, a few schedules are searched for one that
// does; GITOPSD_FIND=1 looks through more of them, and adds what it finds to
// testdata/seeds/rules.txt, which GITOPSD_FIND=all makes anew.
const (
	searchLimit = 600
	findLimit   = 4000
)

// TestSystemRules breaks one rule after the other and expects a schedule to
// notice. It needs no switches in the code: each time the packages are built
// with one file of an overlay.
func TestSystemRules(t *testing.T) {
	find := os.Getenv("GITOPSD_FIND") != ""
	if os.Getenv("GITOPSD_FIND") == "all" {
		_ = os.Remove("testdata/seeds/rules.txt") // all are looked for again
		_ = os.Remove("testdata/histories/rules.txt")
	}
	for _, r := range slices.Concat(rules, restraints) {
		t.Run(r.name, func(t *testing.T) {
			if r.by != "" {
				r.noticedBy(t)
				return
			}
			bin := r.build(t, ".")
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			run := func(test string, env ...string) (string, error) {
				c := exec.CommandContext(ctx, bin, "-test.run", test)
				c.Env = append(os.Environ(), env...)
				out, err := c.CombinedOutput()
				return string(out), err
			}
			seeds, all, file := "^TestSeeds$", "^TestSchedules$", "testdata/seeds/rules.txt"
			if r.fleet {
				seeds, all, file = "^TestHistorySeeds$", "^TestHistories$", "testdata/histories/rules.txt"
			}
			out, err := run(seeds)
			if err == nil {
				limit := searchLimit
				if find {
					limit = findLimit
				}
				every := "GITOPSD_REAL_EVERY=1000000"
				if r.real {
					every = "GITOPSD_REAL_EVERY=1"
				}
				out, err = run(all, every, "GITOPSD_FROM=1", fmt.Sprintf("GITOPSD_SCHEDULES=%d", limit), fmt.Sprintf("GITOPSD_HISTORIES=%d", limit))
				if s := shortest.FindStringSubmatch(out); err != nil && s != nil && find {
					remember(t, file, s[1]+" # "+r.name)
				}
			}
			what := violated.FindStringSubmatch(out)
			switch {
			case err == nil:
				t.Fatal("the rule is broken, and no schedule has noticed")
			case what == nil:
				t.Fatalf("the tests fail, but not because a schedule noticed:\n%s", out)
			}
			t.Logf("noticed by a schedule of %s steps: %s", what[1], what[2])
		})
	}
}

func remember(t *testing.T, file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// noticedBy expects a package's own tests to fail.
func (r rule) noticedBy(t *testing.T) {
	bin := r.build(t, "../../"+r.by)
	c := exec.CommandContext(t.Context(), bin, "-test.failfast")
	c.Dir = filepath.Join("../..", r.by)
	out, err := c.CombinedOutput()
	name := failing.FindSubmatch(out)
	if err == nil || name == nil {
		t.Fatalf("the rule is broken, and no test of %s has noticed", r.by)
	}
	t.Logf("noticed by %s", name[1])
}

var failing = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// build makes the tests of a package with the rule broken.
func (r rule) build(t *testing.T, pkg string) string {
	t.Helper()
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, replaced := t.TempDir(), map[string]string{}
	for _, piece := range append([]rule{r}, r.also...) {
		source := filepath.Join(module, piece.file)
		at := source
		if replaced[source] != "" {
			at = replaced[source]
		}
		data, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), piece.old); n != 1 {
			t.Fatalf("%s has the text that keeps the rule %d times, want once: it moved; mend this table\n%s", piece.file, n, piece.old)
		}
		broken := filepath.Join(dir, fmt.Sprintf("broken-%d.go", len(replaced)))
		if err := os.WriteFile(broken, []byte(strings.Replace(string(data), piece.old, piece.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[source] = broken
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "broken.test")
	c := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", file, "-c", "-o", bin, pkg)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("the broken code does not build: %v\n%s", err, out)
	}
	return bin
}
