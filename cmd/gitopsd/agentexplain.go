package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// deviceReasons is the JSON of gitopsd agent explain.
type deviceReasons struct {
	schema.TypeMeta
	Running bool     `json:"running"`
	Device  string   `json:"device"`
	Version string   `json:"version"`
	Reasons []string `json:"reasons"`
	Next    []string `json:"next"` // what to do
	said    string   // the end of what the program said that failed last
}

func agentExplainCommand(a *app) *cobra.Command {
	format := newOutput("text", "json")
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Why this device is not on the newest version",
		Long: `Say in words why this device is not on the newest version: it is busy or held,
a step failed (with the end of what the program said; -o json has all that was
reported of it), a retry has its time, or control does not answer. Needs no
network; what only the fleet repository knows, gitopsd explain DEVICE says at a
desk.`,
		Args: args(0, 0, ""),
		Example: `  gitopsd agent explain
  gitopsd agent explain -o json`,
	}
	options := bindLocal(cmd)
	format.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, s, err := options.standing(cmd, a)
		if err != nil {
			return err
		}
		doc := d.reasonsOf(s, time.Now())
		if format.value == "json" {
			return writeJSON(a.out, doc)
		}
		d.writeNobody(a.out, doc.Running)
		for i, reason := range doc.Reasons {
			reason, _, _ = strings.Cut(reason, "\n")
			label := ""
			if i == 0 {
				label = doc.Version
			}
			if len(label) >= factWidth {
				fmt.Fprintln(a.out, clean(label))
				label = ""
			}
			writeFact(a.out, clean(label), reason, a.look())
		}
		writeFact(a.out, "said", doc.said, a.look())
		for _, next := range doc.Next {
			writeFact(a.out, "next", next, a.look())
		}
		return nil
	}
	return cmd
}

// reasonsOf says why a device stands where it does, and what helps.
func (d *device) reasonsOf(s *deviceStanding, now time.Time) *deviceReasons {
	r := &s.Report
	doc := &deviceReasons{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "DeviceReasons"},
		Running:  s.Running, Device: r.Metadata.Name, Version: or(r.Current.Version, "unknown"), Reasons: []string{}, Next: []string{},
	}
	because := func(format string, args ...any) { doc.Reasons = append(doc.Reasons, fmt.Sprintf(format, args...)) }
	next := func(format string, args ...any) { doc.Next = append(doc.Next, fmt.Sprintf(format, args...)) }

	to := ""
	switch {
	case r.Desired != nil:
		to = r.Desired.Version
	case s.Last != nil:
		to = s.Last.Version
	}
	d.explainPhase(s, to, now, because, next)
	for _, f := range r.Failures {
		because("failed at %s", failureText(&f))
		doc.said = saidText(f.Message)
	}
	if w := r.WouldChange; w != nil && r.Phase != schema.PhaseObserving {
		because("nothing has begun since it was told only to compare itself with %s: it is left as it is", w.Version)
	}
	if why := s.Waits; why != "" && r.Phase != schema.PhaseWaiting {
		because("nothing may begin and nothing is repaired: %s", why)
	}
	if strings.HasPrefix(s.Waits, "held on the device") {
		next("%s ends the hold", d.command("unhold"))
	}
	if strings.HasPrefix(s.Waits, "busy: snoozed") {
		next("%s ends the snooze", d.command("snooze --end"))
	}
	switch {
	case r.Assigned == "":
	case r.Assigned == reconcile.LeftFleet:
		because("%s", r.Assigned)
		next("put it back into the fleet repository, or %s gives back what was there before (stop the agent first)", d.command("reset"))
	case isFresh(s):
		because("%s", r.Assigned)
	default:
		because("what is assigned to it is not acted on: %s", r.Assigned)
	}
	if c := s.Contact; c != nil && !c.Answers {
		because("control does not answer since %s: %s; nothing new begins before it does, and what runs stays", momentText(c.Since, now), c.Error)
		next("%s asks at once, and says what went wrong", d.command("run-now"))
	}
	switch n := len(r.Drift); {
	case n == 0 && r.DriftReason != "":
		because("%s", r.DriftReason)
	case n > 0:
		because("%d of what its version wants is different on the device: %s", n, driftText(s))
		next("%s shows the difference", d.command("diff --current"))
	}
	for _, t := range r.Warnings {
		because("of the agent itself: %s", t)
	}
	for _, t := range s.Trouble {
		because("its state could not be read whole: %s", t)
	}
	if !s.Running {
		next("%s", d.startHint())
	}
	return doc
}

func (d *device) explainPhase(s *deviceStanding, to string, now time.Time, because, next func(string, ...any)) {
	r := &s.Report
	if s.Unannounced != "" && !r.Begun {
		because("%s does not begin before control knows of it: %s; it is tried again with each poll", to, s.Unannounced)
		return
	}
	again := "with the next poll"
	if s.RetryAt != nil {
		again = momentText(*s.RetryAt, now)
	}
	switch r.Phase {
	case schema.PhaseUpdated:
		if isFresh(s) {
			because("nothing was ever applied here")
		} else {
			because("it is on what was assigned to it last")
		}
		if r.Reason != "" {
			because("%s", r.Reason)
		}
		if r.Assigned == "" {
			next("gitopsd explain %s, at a desk, says which release waits for what", or(r.Metadata.Name, "DEVICE"))
		}
	case schema.PhaseObserving:
		if r.WouldChange != nil {
			to = r.WouldChange.Version
		}
		because("it only compares itself with %s, as the spec says (onDevice.mode), and is left as it is: %s", to, or(r.Reason, "nothing has begun since"))
		next("%s shows what would change; a spec without onDevice.mode observe is applied", d.command("diff"))
	case schema.PhaseWaiting:
		because("attempt %d waits, and has changed nothing: %s", r.Attempt, r.Reason)
	case schema.PhaseDegraded:
		because("%s, attempt %d, did not work and is tried again: %s", to, r.Attempt, again)
		if len(r.Failures) == 0 {
			because("%s", r.Reason)
		}
	case schema.PhaseError:
		if r.Stage == "ROLLBACK" {
			because("the way back is not finished, and is tried again: %s", again)
			because("%s", r.Reason)
			next("mend what is named here; the agent goes on by itself")
			break
		}
		left := "nothing was changed"
		if r.Begun {
			left = "the device is back on its last good version"
		}
		because("%s, attempt %d, ended as %s at %s, and %s%s", to, r.Attempt, or(string(r.Outcome), "failed"), r.Stage, left, after(": ", besideFailure(r)))
		if name := or(r.Metadata.Name, "DEVICE"); r.Outcome == schema.OutcomeExhausted {
			next("nothing, if what stood in the way passes: the daemon assigns %s again after the backoff of its policy; gitopsd explain %s, at a desk, says when", to, name)
		} else {
			if r.Assigned == reconcile.LeftFleet {
				break // nobody is there to give it another one
			}
			next("the same attempt is never tried again: mend the release, or gitopsd retry %s in the fleet repository", name)
		}
	case schema.PhaseRollingBack:
		because("%s did not work, and it is going back now, %s", to, or(r.Reason, "at "+r.Stage))
	case schema.PhaseStarting:
		because("%s may begin as soon as control has taken the announcement and still says so", to)
	case schema.PhaseRebooting:
		because("it reboots into %s; what comes up must prove itself", to)
	default:
		because("it is on its way to %s: %s", to, phaseText(r))
	}
}
