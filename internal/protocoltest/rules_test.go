package protocoltest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// promise is one rule of the protocol, as docs/explanation/protocol.md has it,
// with what notices when it is not kept.
type promise struct {
	says  string
	rules []rule
}

// rule is a part of a promise, and how to break it: a piece of one file of
// this module and what to put in its place. The schedules must notice.
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

// ofDevices and ofDaemons are the whole protocol. Over HTTP there is nothing
// to break yet.
var (
	ofDevices = []promise{
		{"What may begin names this installation, carries no hold, and is an attempt above every one that this device has ended.", []rule{
			{name: "a document is for one installation", file: "reconcile/admit.go", real: true,
				old: `	case a.For != f.install && a.For != "":`, new: `	case false && a.For != f.install && a.For != "":`},
			{name: "nothing begins that a hold is on", file: "reconcile/admit.go", real: true,
				old: `	case a.Hold != nil:`, new: `	case false && a.Hold != nil:`,
				also: []rule{{file: "reconcile/busy.go", old: `	case a.store.attempts.Hold != nil:`, new: `	case false:`}}},
			{name: "nothing begins that has ended here", file: "reconcile/admit.go", real: true,
				old: `	case a.Attempt <= f.ended || a.Attempt <= f.currentAttempt:`, new: `	case a.Attempt <= f.currentAttempt:`},
			{name: "an older generation is not acted on", file: "reconcile/admit.go", by: "reconcile",
				old: `	case a.Generation < f.generation:`, new: `	case false && a.Generation < f.generation:`},
		}},
		{"Anything else is never begun, and drops what has not begun.", []rule{
			{name: "what may not begin is dropped", file: "reconcile/poll.go", by: "reconcile",
				old: `	if err := a.store.dropDesired(); err != nil {
		return a.stateFailed(err)
	}
	a.prune()
	a.tell(ctx)
	return Result{Summary: fmt.Sprintf("deferred: attempt %d: %s; the device keeps %s", dropped, why, a.store.current.Version)}`,
				new: `	return Result{Summary: fmt.Sprintf("deferred: attempt %d: %s; the device keeps %s", dropped, why, a.store.current.Version)}`},
		}},
		{"A new attempt of what is desired already takes its number; one of what the device is already is done at once.", []rule{
			{name: "a new attempt of what is desired takes its number", file: "reconcile/admit.go", real: true,
				old: `	case a.Attempt == f.desired:
		return admitGoOn, ""`, new: `	case f.desired != 0 && a.Digest == f.desiredDigest:
		return admitGoOn, ""`},
			{name: "a new attempt of what it is already is done at once", file: "reconcile/admit.go", by: "reconcile",
				old: `	case a.Version == f.version && a.Digest == f.digest && f.onCurrent:`, new: `	case false && a.Version == f.version && a.Digest == f.digest && f.onCurrent:`},
		}},
		{"A start is announced when all that changes nothing is done, with a new sequence, and must be accepted.", []rule{
			{name: "the announcement must be accepted", file: "reconcile/update.go", real: true,
				old: `	if err := a.reports.flush(ctx); err != nil {
		return a.notYet(`, new: `	if err := a.reports.flush(ctx); false && err != nil {
		return a.notYet(`},
			{name: "a report that was not pushed was not accepted", file: "agentsync/report.go", real: true,
				old: `		if kind(err) != "race" || n+1 >= maxRaces {
			return fmt.Errorf("report to %s: %w", c.reportRef, err)`, new: `		if kind(err) != "race" || n+1 >= maxRaces {
			return nil`},
			{name: "no sequence is used twice", file: "reconcile/sequence.go", real: true,
				old: `	q.ins = i
	q.next = i.Reserved + 1
}

// begin`, new: `	q.ins = i
	q.next = 1
}

// begin`},
		}},
		{"Behind the announcement the device looks again: it must still be the same attempt, without a hold, and the device neither busy nor held.", []rule{
			{name: "the device looks again", file: "reconcile/update.go", real: true,
				old: `	if next, res, ok := a.lookAgain(ctx); !ok {`, new: `	if next, res, ok := a.lookAgain(ctx); false && !ok {`},
			{name: "the device looks behind its announcement", file: "reconcile/update.go", real: true,
				old: `	if err := a.reports.flush(ctx); err != nil {
		return a.notYet(ctx, "the announcement was not accepted", err), nil
	}
	if next, res, ok := a.lookAgain(ctx); !ok {
		return res, next
	}`, new: `	if next, res, ok := a.lookAgain(ctx); !ok {
		return res, next
	}
	if err := a.reports.flush(ctx); err != nil {
		return a.notYet(ctx, "the announcement was not accepted", err), nil
	}`},
			{name: "looking again must be answered", file: "reconcile/update.go", real: true,
				old: `		return nil, a.notYet(ctx, "control did not answer the second look", err), false`, new: `		return nil, Result{}, true`},
			{name: "looking again asks for busy and held", file: "reconcile/update.go", real: true,
				old: `	a.lookAround(ctx)
	if why := a.waits(); why != "" {
		return nil, a.deferred(ctx, StageLookAgain, why), false
	}`, new: ``},
		}},
		{"After every deferral, restart or retry it announces again, and looks again.", []rule{
			{name: "what is tried again is announced again", file: "reconcile/update.go", real: true,
				old: `	if err := a.reports.flush(ctx); err != nil {
		return a.notYet(ctx, "the announcement was not accepted", err), nil
	}
	if next, res, ok := a.lookAgain(ctx); !ok {
		return res, next
	}`, new: `	if !a.begunWork() {
		if err := a.reports.flush(ctx); err != nil {
			return a.notYet(ctx, "the announcement was not accepted", err), nil
		}
		if next, res, ok := a.lookAgain(ctx); !ok {
			return res, next
		}
	}`},
			{name: "that it begins is on disk first", file: "reconcile/update.go", real: true,
				old: `	att.Work, att.Observes = w, 0
	att.Direction, att.Incomplete = forward, ""
	return a.store.saveAttempts(att)`, new: `	att.Work, att.Observes = w, 0
	return a.store.saveAttempts(att)`},
		}},
		{"What was begun and put back ends as ok or failed, whatever comes in its way.", []rule{
			{name: "what was begun and put back does not wait", file: "reconcile/fail.go", by: "reconcile",
				old: `	if a.begunWork() {
		return a.endWaiting(ctx, why)
	}`, new: ``},
			{name: "what was begun and put back is not dropped", file: "reconcile/poll.go", real: true,
				old: `	d := a.store.desired
	return d != nil && a.store.attempts.of(d.Attempt).Begun`, new: `	return false`},
			{name: "a pre-check that fails for good ends what was begun as failed", file: "reconcile/fail.go", by: "reconcile",
				old: `	if !w.Begun {
		outcome`, new: `	if !w.Begun || !acting {
		outcome`},
		}},
		{"A spec that is only to be compared with ends as observed, and changes nothing; nothing else does either, until something begins.", []rule{
			{name: "what is only to be compared with does not begin", file: "reconcile/update.go", real: true,
				old: `	if spec.Observes() {`, new: `	if false && spec.Observes() {`},
			{name: "who observes is not there already", file: "reconcile/admit.go", real: true,
				old: `!s.current.Unknown && s.attempts.Observes == 0,`, new: `!s.current.Unknown,`},
			{name: "who observes is not repaired", file: "reconcile/drift.go", by: "reconcile",
				old: `	if observes {`, new: `	if false && observes {`},
			{name: "who lost its attempts goes on to observe", file: "reconcile/store.go", by: "reconcile",
				old: `attempts{Format: attemptsFormat, Observes: s.observed()}`, new: `attempts{Format: attemptsFormat}`},
		}},
		{"A device whose current attempt is assigned again takes its phase from that one, whatever has ended since.", []rule{
			{name: "what is assigned again ends the error", file: "reconcile/poll.go", real: true,
				old: `		res = a.stay(ctx, d.Assignment)`, new: `		res = a.unchanged()`},
			{name: "what is assigned again hides no number", file: "reconcile/report.go", by: "reconcile",
				old: `			r.Recalled = max(n, r.Recalled) //`, new: `			_ = n //`},
			{name: "what is assigned again hides what was taken back", file: "reconcile/state.go", by: "reconcile",
				old: `	a.tookBack(a.Dropped)`, new: ``},
			{name: "what failed hides what was taken back", file: "reconcile/fail.go", by: "reconcile",
				old: `	att.tookBack(a.doc.recalled)`, new: ``},
		}},
		{"A device whose own records cannot be read is another installation.", []rule{
			{name: "who lost its attempts is another installation", file: "reconcile/store.go", real: true,
				old: `	okCur := read(currentFile,`, new: `	if !okAtt {
		att, okAtt = attempts{Format: attemptsFormat}, true
	}
	okCur := read(currentFile,`},
			{name: "who lost its current spec is another installation", file: "reconcile/store.go", real: true,
				old: `	if !okIns || !okAtt || !okCur {`, new: `	if !okCur && okIns && okAtt {
		cur = record{Version: s.initial, Unknown: true}
	}
	if !okIns || !okAtt {`},
		}},
	}
	ofDaemons = []promise{
		{"An assignment is one commit on the status branch by compare-and-swap, and then the delivery.", []rule{
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
			{name: "attempts are numbered once", file: "internal/sweep/draft.go",
				old: `	number := d.lastNumber() + 1`, new: `	number := max(d.lastNumber(), 1)`},
		}},
		{"A delivery is pushed by the value that was read and whose generation was compared; when that is refused, both are read again.", []rule{
			{name: "a new delivery goes by the value that is known", file: "internal/sweep/publish.go",
				old: `	refused, err := p.d.cfg.Remote.Publish(ctx, lead, deliveries)`,
				new: `	refused, err := p.d.cfg.Remote.Publish(ctx, lead, nil)
	for ref, move := range deliveries {
		if refs, err := p.d.cfg.Remote.Refs(ctx, ref); err == nil {
			deliveries[ref] = [2]string{refs[ref], move[1]}
		}
	}
	if err == nil {
		refused, err = p.d.cfg.Remote.Publish(ctx, nil, deliveries)
	}`},
			{name: "a delivery is repaired by the value that was compared", file: "internal/sweep/repair.go",
				old: `			moves[ref] = [2]string{values[id], want}`,
				new: `			if refs, err := d.cfg.Remote.Refs(ctx, ref); err == nil {
				values[id] = refs[ref]
			}
			moves[ref] = [2]string{values[id], want}`},
			{name: "generations are compared before a delivery is repaired", file: "internal/sweep/repair.go",
				old: `		if there > here {`, new: `		if false && there > here {`},
			{name: "a delivery that was not taken is looked at again", file: "internal/sweep/publish.go", by: "internal/sweep",
				old: `			// Somebody else may have written it; the next repair looks.
			d.unsure[id] = true
`, new: ``},
			{name: "where there is no delivery the status branch is listed afresh", file: "internal/sweep/repair.go", by: "internal/sweep",
				old: `	if absent {`, new: `	if false && absent {`},
		}},
		{"Only a report that names the attempt decides it, and only one that is newer than the one that was decided from last.", []rule{
			{name: "only a report that names the attempt decides it", file: "planner/evidence.go",
				old: `	return d.Seen && a.Number > 0 && d.Said.Attempt == a.Number && sameInstall(d, a)`,
				new: `	return d.Seen && a.Number > 0 && sameInstall(d, a)`},
			{name: "a report decides only what the last one did not", file: "internal/sweep/known.go",
				old: `		Fresh: newer(r, observed), Sequence`, new: `		Fresh: newer(r, observed) || observed != nil, Sequence`},
			{name: "an older report is not listened to", file: "internal/sweep/known.go",
				old: `	return o != nil && o.InstallID == r.InstallID && r.Sequence < o.Sequence`, new: `	return o != nil && r == nil`},
		}},
		{"Silence counts only within a daemon's unbroken series of passes.", []rule{
			{name: "silence counts only while the daemon listens", file: "planner/evidence.go",
				old: `	if d.LastSeen.Sub(from) < limit && pl.Watching.After(from) {`, new: `	if false && d.LastSeen.Sub(from) < limit && pl.Watching.After(from) {`},
			{name: "a gap breaks the series of passes", file: "internal/sweep/state.go",
				old: `w.Since.IsZero() || now.Sub(w.Last) > gap || now.Before(`, new: `w.Since.IsZero() || now.Before(`},
			{name: "the series is kept in the state folder", file: "internal/sweep/state.go", by: "internal/sweep",
				old: `return json.Unmarshal(data, &s.watch)`, new: `return json.Unmarshal(data, &watchState{})`},
		}},
		{"A start is on record once a report announces it, or says that the device has begun.", []rule{
			{name: "a start is written when it is announced", file: "planner/judge.go", by: "planner",
				old: `a.OnTargetAt.IsZero() && (said.Starting || said.Begun) {`, new: `a.OnTargetAt.IsZero() && said.Begun {`},
			{name: "a start is written when a device says that it has begun", file: "planner/judge.go", by: "planner",
				old: `a.OnTargetAt.IsZero() && (said.Starting || said.Begun) {`, new: `a.OnTargetAt.IsZero() && said.Starting {`},
		}},
		{"A slot is taken from the assignment to the written outcome, by the policy that made it, also of a device that was removed or moved.", []rule{
			{name: "an assigned attempt holds a slot", file: "planner/count.go",
				old: `if k := (key{d.ID, a.Number}); a.Outcome == "" && !holding[k] {`, new: `if k := (key{d.ID, a.Number}); a.Outcome == "" && !a.StartedAt.IsZero() && !holding[k] {`},
			{name: "a recalled attempt holds its slot until it has ended", file: "planner/count.go",
				old: `if k := (key{d.ID, a.Number}); a.Outcome == "" && !holding[k] {`, new: `if k := (key{d.ID, a.Number}); a.Outcome == "" && a.Recalled == "" && !holding[k] {`},
			{name: "the slot of a removed device is taken", file: "planner/count.go",
				old: `if k := (key{d.ID, a.Number}); a.Outcome == "" && !holding[k] {`, new: `if k := (key{d.ID, a.Number}); a.Outcome == "" && !d.Removed && !holding[k] {`},
			{name: "an attempt belongs to the policy that made it", file: "planner/count.go",
				old: `				p := pl.rulesOf(d, a)
				p.holders = append(p.holders, d.ID)`, new: `				p := pl.rules(d)
				p.holders = append(p.holders, d.ID)`},
		}},
		{"A recall publishes a document without a spec; a device that defers only begins one.", []rule{
			{name: "a document without a spec does not bear the recalled number", file: "internal/sweep/document.go",
				old: `	next.Attempt = d.lastGood(a.Attempt)
	next.Recalled = a.Attempt`,
				new: `	next.Attempt, next.Spec, next.Version, next.Digest = a.Attempt, d.kept.Spec, a.Version, a.Digest`},
			{name: "a deferred report only begins a recall", file: "planner/judge.go",
				old: `		if a.StartedAt.IsZero() && a.OnTargetAt.IsZero() && (said.Starting || said.Begun) {`,
				new: `		if blocked, why := d.blocked(); blocked && gaveUp(d, a) {
			return end(Deferred, why)
		}
		if a.StartedAt.IsZero() && a.OnTargetAt.IsZero() && (said.Starting || said.Begun) {`},
		}},
		{"It ends behind its delivery: that is known to stand, and only then the reports are read, and show no start.", []rule{
			{name: "a recall frees a slot only once it is known to be delivered", file: "planner/judge.go",
				old: `case a.Recalled != "" && a.RecallDelivered && !begins(d, a):`, new: `case a.Recalled != "" && !begins(d, a):`,
				also: []rule{unseen}},
			{name: "deliveries are repaired before the reports are read", file: "internal/sweep/pass.go",
				old: "		p.repair,      // deliveries that do not stand as the status branch says\n		p.readReports, // what devices say\n",
				new: "		p.readReports, // what devices say\n		p.repair,      // deliveries that do not stand as the status branch says\n"},
			{name: "reports are listed again behind a confirmed recall", file: "internal/sweep/reports.go",
				old: `	if p.relist || !d.sameRepository() {`, new: `	if !d.sameRepository() {`},
			{name: "a recall frees no slot of an attempt that shows a start", file: "planner/judge.go",
				old: `case a.Recalled != "" && a.RecallDelivered && !begins(d, a):`, new: `case a.Recalled != "" && a.RecallDelivered:`},
		}},
		{"If the recalled attempt turns out well, the next document carries its spec and number again.", []rule{
			{name: "a success after its recall gives the spec back", file: "internal/sweep/document.go",
				old: `		next.Spec = m.Rendered.Spec
`, new: ``},
		}},
		{"So does the next document of a device that runs what is wanted of it, once later attempts have ended otherwise, and none as lost.", []rule{
			{name: "what runs is assigned again once it is wanted", file: "internal/sweep/document.go",
				old: `	case !d.onIt || `, new: `	case true || `},
			{name: "a lost device is told of nothing else before it was heard", file: "internal/sweep/document.go", by: "internal/sweep",
				old: `	case last.Outcome == schema.OutcomeLost && `, new: `	case false && `},
		}},
		{"What has changed anything ends as ok, failed or lost; refused and exhausted end what has not.", []rule{
			{name: "what has changed anything ends as ok, failed or lost", file: "planner/evidence.go",
				old: `	return s.Begun || s.Starting || s.Outcome != "" || !slices.Contains(beforeStart, s.Phase)`,
				new: `	return s.Starting || s.Outcome != "" || slices.Contains(beforeStart, "never")`},
			{name: "who gives up after it had begun has failed", file: "planner/judge.go", by: "planner",
				old: `			if said.Begun {
				return failed(said, "the device gave up after it had begun")
			}
`, new: ``},
		}},
		{"An attempt that ended as observed says nothing of what its device runs: whatever is wanted next is assigned.", []rule{
			{name: "who observes is not current", file: "planner/plan.go",
				old: `pl.runs(d, d.target) && !d.observing()`, new: `pl.runs(d, d.target)`},
			{name: "who has observed is not asked again", file: "planner/count.go", by: "planner",
				old: `			h = history{observed: a}
`, new: ``},
			{name: "who says that it has begun cannot have observed", file: "planner/judge.go", by: "planner",
				old: `			if said.Begun {
				return failed(said, "the device gave up after it had begun")`, new: `			if said.Begun && said.Outcome != string(Observed) {
				return failed(said, "the device gave up after it had begun")`},
		}},
		{"The commit that ends an attempt other than well takes its document back.", []rule{
			{name: "the end of an attempt takes its document back", file: "internal/sweep/draft.go",
				old: `		if d.doc != nil && d.doc.Attempt == a.Attempt && d.doc.Spec != nil {`,
				new: `		if false && d.doc != nil && d.doc.Attempt == a.Attempt && d.doc.Spec != nil {`},
		}},
		{"Lost is corrected to unreached only behind that document, and counts as a failure.", []rule{
			{name: "lost is corrected only behind the delivered recall", file: "planner/judge.go", by: "planner",
				old: `	if a.RecallDelivered && gaveUp(d, a) {`, new: `	if gaveUp(d, a) {`},
			{name: "lost counts as a failure", file: "planner/count.go",
				old: `		case Failed, Lost:
			failed = true`, new: `		case Failed:
			failed = true`},
		}},
		{"Another installation ends the attempt of the one before as lost, and lifts no halt.", []rule{
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
		}},
		{"Numbers never fall for a device that left, and it is told when it is back.", []rule{
			{name: "what is left of a removed device keeps its numbers", file: "internal/sweep/publish.go",
				old: `	b.retired[dr.id] = rec
	return b.put(ctx, rec.Path, rec.Status)`, new: `	_ = rec
	return nil`},
			{name: "a delivery goes only once its device knows that it left", file: "internal/sweep/publish.go", by: "internal/sweep",
				old: `known != "" && p.sawItsLast(dr.id) {`, new: `known != "" {`},
			{name: "a device that is back is told so", file: "internal/sweep/document.go",
				old: `	if last := d.status.Assignment; d.doc == nil && last != nil {`, new: `	if last := d.status.Assignment; false && d.doc == nil && last != nil {`},
		}},
	}
)

// rules are all of them.
func rules() []rule {
	var all []rule
	for _, p := range slices.Concat(ofDevices, ofDaemons) {
		all = append(all, p.rules...)
	}
	return all
}

// broken gives the text of each file that keeps the rule, by absolute path,
// as it is without the rule.
func (r rule) broken(t *testing.T) map[string]string {
	t.Helper()
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, piece := range append([]rule{r}, r.also...) {
		source := filepath.Join(module, piece.file)
		text, ok := texts[source]
		if !ok {
			data, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		if n := strings.Count(text, piece.old); n != 1 {
			t.Fatalf("%s has the text that keeps the rule %d times, want once: it moved; mend this table\n%s", piece.file, n, piece.old)
		}
		texts[source] = strings.Replace(text, piece.old, piece.new, 1)
	}
	return texts
}

// TestRulesAreWhereTheTableSays finds the text of every rule, so that whoever
// moves code hears at once of a rule that nothing would break any more.
func TestRulesAreWhereTheTableSays(t *testing.T) {
	for _, r := range slices.Concat(rules(), restraints) {
		t.Run(r.name, func(t *testing.T) { r.broken(t) })
	}
}

var update = flag.Bool("update", false, "write the table of docs/explanation/protocol.md anew")

// TestPage holds the page that describes the protocol to what is tested of it.
func TestPage(t *testing.T) {
	const page, begin, end = "../../docs/explanation/protocol.md", "<!-- rules -->\n", "<!-- end of rules -->\n"
	seen := map[string]bool{}
	for _, r := range rules() {
		if seen[r.name] {
			t.Errorf("two rules are called %q", r.name)
		}
		seen[r.name] = true
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, there := strings.Cut(rest, end)
	if !ok || !there {
		t.Fatalf("%s has no place for the table between %q and %q", page, begin, end)
	}
	want := pageTable("Of the device", ofDevices) + "\n" + pageTable("Of the daemon", ofDaemons)
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s does not say what is tested; -update writes it:\n%s", page, want)
	}
}

func pageTable(title string, promises []promise) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | what is switched off | what notices |\n|--|--|--|\n", title)
	for _, p := range promises {
		says := p.says
		for _, r := range p.rules {
			notices := "schedules"
			switch {
			case r.by != "":
				notices = "tests of `" + r.by + "`"
			case r.real:
				notices = "schedules of real agents"
			case r.fleet:
				notices = "histories"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", says, r.name, notices)
			says = ""
		}
	}
	return b.String()
}
