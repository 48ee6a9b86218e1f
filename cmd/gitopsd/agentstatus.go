package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// deviceStanding is the JSON of gitopsd agent status.
type deviceStanding struct {
	schema.TypeMeta
	Running bool `json:"running"` // the agent answered; false = read from disk
	Well    bool `json:"well"`    // nobody needs to look at it
	reconcile.Standing
}

// shown is the JSON of a standing. Its report was not sent, and may never be: a
// number and a time of its own it only has from then on.
func (s *deviceStanding) shown() any {
	type report struct {
		schema.Report
		Sequence   int64     `json:"sequence,omitempty"`
		ReportedAt time.Time `json:"reportedAt,omitzero"`
	}
	return struct {
		*deviceStanding
		Report report `json:"report"`
	}{s, report{Report: s.Report, Sequence: s.Report.Sequence, ReportedAt: s.Report.ReportedAt}}
}

func agentStatusCommand(a *app) *cobra.Command {
	format := newOutput("table", "json")
	cmd := &cobra.Command{
		Use:   "status",
		Short: "How this device stands",
		Long: `Say how this device stands, without a network: the version that it is on and
the one that it goes to, what failed last, whether it is busy or held, and
whether it reaches its repository. Where no agent answers, the first line says
so, and the rest is what the state on the disk says.

Exit codes: 0 all is well; 1 it cannot be told; 3 somebody should look: no agent
answers, control does not, an update failed, something differs, or a file of the
agent's configuration is bad.`,
		Args: args(0, 0, ""),
		Example: `  gitopsd agent status
  gitopsd agent status -o json
  gitopsd agent status --root /tmp/gw-1`,
	}
	options := bindLocal(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, doc, err := options.standing(cmd, a)
		if err != nil {
			return err
		}
		if format.value == "json" {
			err = writeJSON(a.out, doc.shown())
		} else {
			d.writeNobody(a.out, doc.Running)
			writeStanding(a.out, doc, time.Now(), a.look())
		}
		if err == nil && !doc.Well {
			return &exitError{code: exitContent}
		}
		return err
	}
	return cmd
}

// standing finds the device, and how it stands.
func (o *localOptions) standing(cmd *cobra.Command, a *app) (*device, *deviceStanding, error) {
	d, err := o.resolve(a)
	if err != nil {
		return nil, nil, err
	}
	s, err := d.standing(cmd)
	return d, s, err
}

// standing asks the agent, or reads the disk.
func (d *device) standing(cmd *cobra.Command) (*deviceStanding, error) {
	doc := &deviceStanding{TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "DeviceStanding"}}
	reply, nobody, err := d.answer(cmd.Context(), agentsocket.Request{Do: agentsocket.DoStatus})
	switch {
	case err != nil:
		return nil, err
	case !nobody && reply.Standing != nil:
		doc.Running, doc.Standing = true, *reply.Standing
	default:
		v, err := d.look()
		if err != nil {
			return nil, err
		}
		defer v.Close()
		doc.Standing = v.Standing()
	}
	doc.Well = doc.Running && isWell(&doc.Standing)
	return doc, nil
}

// isWell says that nobody needs to look at the device.
func isWell(s *reconcile.Standing) bool {
	r := &s.Report
	switch r.Phase {
	case schema.PhaseError, schema.PhaseDegraded:
		return false
	}
	return len(s.Trouble) == 0 && len(r.Warnings) == 0 && len(r.Drift) == 0 && r.DriftReason == "" && (s.Contact == nil || s.Contact.Answers)
}

func writeStanding(w io.Writer, doc *deviceStanding, now time.Time, look view.Look) {
	r := &doc.Report
	fact := func(label, text string) { writeFact(w, label, text, look) }
	fact("device", r.Metadata.Name)
	fact("version", r.Current.Version)
	if r.Desired != nil {
		fact("desired", fmt.Sprintf("%s, attempt %d", r.Desired.Version, r.Desired.Attempt))
	}
	if isFresh(doc) {
		fact("phase", "none yet: nothing was ever applied here")
	} else {
		fact("phase", phaseText(r))
	}
	if doc.RetryAt != nil {
		fact("retry", momentText(*doc.RetryAt, now))
	}
	if l := doc.Last; l != nil {
		fact("last", fmt.Sprintf("attempt %d of %s: %s, %s", l.Attempt, l.Version, l.Outcome, view.Stamp(l.At)))
	}
	if n := len(r.Failures); n > 0 {
		first, _, _ := strings.Cut(failureText(&r.Failures[n-1]), "\n")
		fact("failure", first)
	}
	if r.Busy {
		fact("busy", r.BusyReason)
	}
	if r.Hold != nil {
		fact("hold", r.Hold.Reason)
	} else if strings.HasPrefix(doc.Waits, "held") {
		fact("hold", doc.Waits)
	}
	fact("assigned", r.Assigned)
	fact("control", contactText(doc.Contact, now))
	if doc.NextPoll != nil {
		fact("poll", momentText(*doc.NextPoll, now))
	}
	if r.WouldChange == nil {
		fact("drift", driftText(doc))
	} else {
		fact("compared", comparedText(r.WouldChange))
	}
	fact("apps", view.ApplicationsText(r.Applications))
	fact("units", view.UnitsText(r.Units))
	for _, m := range r.Monitors {
		fact("monitor", view.MonitorText(&m))
	}
	for _, t := range doc.Trouble {
		fact("trouble", t)
	}
	for _, t := range r.Warnings {
		fact("warning", t)
	}
	fact("agent", r.AgentVersion)
	fact("trial", doc.Trial)
	if n := len(r.Failures); n > 0 {
		fact("said", saidText(r.Failures[n-1].Message))
	}
}

func phaseText(r *schema.Report) string {
	text := string(r.Phase)
	if r.Stage != "" && r.Phase != schema.PhaseUpdated && r.Phase != schema.PhaseObserving {
		text += ", " + r.Stage
	}
	return text + after(": ", besideFailure(r))
}

// after is a text with what stands before it, or nothing where there is none.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// besideFailure is the reason of a report without the words of its last failure,
// which are told in full beside it.
func besideFailure(r *schema.Report) string {
	n := len(r.Failures)
	if n == 0 {
		return r.Reason
	}
	said, _, _ := strings.Cut(strings.TrimSpace(r.Failures[n-1].Message), "\n")
	said = strings.Map(func(c rune) rune { // as a reason has them
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, said)
	before, more, found := strings.Cut(r.Reason, said)
	if short, isCut := strings.CutSuffix(r.Reason, "…"); !found && isCut {
		for i := range short {
			if strings.HasPrefix(said, short[i:]) {
				before, more = short[:i], ""
				break
			}
		}
	}
	return strings.TrimSuffix(before, " after ") + strings.TrimPrefix(more, "; ")
}

// isFresh says that a device never had a release, nor lost the record of one.
func isFresh(s *deviceStanding) bool {
	r := &s.Report
	return r.Phase == schema.PhaseUpdated && s.Last == nil && r.Attempt == 0 && r.Reason == ""
}

// failureText is a failure on its first line, with the end of what the program
// said below.
func failureText(f *schema.Failure) string {
	text, below, found := strings.Cut(strings.TrimSpace(f.Message), "\n")
	if f.Tries > 1 {
		text += fmt.Sprintf(" (%d tries)", f.Tries)
	}
	if found {
		text += "\n" + below
	}
	return f.Stage + ": " + text
}

func contactText(c *reconcile.Contact, now time.Time) string {
	switch {
	case c == nil:
		return ""
	case c.Answers:
		return "answers, since " + momentText(c.Since, now)
	}
	return fmt.Sprintf("DOES NOT ANSWER, since %s: %s", momentText(c.Since, now), c.Error)
}

// driftShown is how many paths are listed; the JSON has more.
const driftShown = 10

func driftText(doc *deviceStanding) string {
	drift, why := doc.Report.Drift, doc.Report.DriftReason
	text := strings.Join(drift[:min(len(drift), driftShown)], ", ")
	if more := len(drift) - driftShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case text == "" && why == "" && doc.Looked:
		return "none"
	case text == "" && why == "" && doc.Running:
		return "not looked for yet"
	case text == "" && why == "":
		return "not looked for; gitopsd agent diff --current compares"
	case text == "":
		return why
	case why == "":
		return text
	}
	return text + " (" + why + ")"
}

// comparedText is what would change, the first few by name.
func comparedText(w *schema.WouldChange) string {
	if w.Count == 0 {
		return "with " + w.Version + ": nothing would change"
	}
	shown := w.Differences[:min(len(w.Differences), driftShown)]
	what := make([]string, len(shown))
	for i := range shown {
		what[i] = view.DifferenceText(&shown[i])
	}
	text := fmt.Sprintf("with %s: %s: %s", w.Version, view.CountText(w.Count, "thing would change", "things would change"), strings.Join(what, ", "))
	if more := w.Count - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// momentText is a moment with how far away it is.
func momentText(t, now time.Time) string {
	d := t.Sub(now).Round(time.Second)
	switch {
	case d > 0:
		return fmt.Sprintf("%s (in %s)", view.Stamp(t), schema.Duration(d))
	case d > -time.Minute:
		return view.Stamp(t) + " (now)"
	}
	return fmt.Sprintf("%s (%s ago)", view.Stamp(t), schema.Duration((-d).Truncate(time.Minute)))
}
