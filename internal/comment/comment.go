package comment

import (
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// MaxBytes is how long a comment may become. GitHub names 65,536 characters
	// where it refuses a body, and counts code points in some places and bytes
	// in others; the summary of a check run takes one less. Bytes are never
	// fewer than characters of any sort.
	MaxBytes = 65_535
	// MinBytes is the least that a comment is written for: its mark, the verdict
	// and what is compared may take 1,600 bytes, a banner 600, and naming all
	// that is left out 300; the rest is for the most important rows.
	MinBytes = 4_000
)

// Options are what a comment depends on beside its content.
type Options struct {
	// Name tells the comments of several fleets on one pull request apart: the
	// folder of the fleet in the repository, say; "" for the only one.
	Name string
	// Limit is how many bytes the comment may have, between MinBytes and
	// MaxBytes; 0 = MaxBytes.
	Limit int
	// Command is the line that shows the same on a terminal, without
	// credentials; "" = none is shown.
	Command string
}

func (o Options) limit() int {
	if o.Limit == 0 {
		return MaxBytes
	}
	return min(max(o.Limit, MinBytes), MaxBytes)
}

// fleet introduces what is said of one of several fleets.
func (o Options) fleet() string {
	if o.Name == "" {
		return ""
	}
	return "In " + code(clip(o.Name, longestName)) + ": "
}

// Render writes what a change would do.
func Render(p *preview.Plan, o Options) string {
	mark := Mark{Name: o.Name, Head: p.Head.Commit}
	if p.Base != nil {
		mark.Base = p.Base.Commit
	}
	d := document{limit: o.limit(), command: o.Command}
	d.line("%s", mark)
	d.line("### gitopsd plan: %s", verdict(p))
	d.line("")
	d.line("%s%s", o.fleet(), compared(p))
	if p.Summary.Assumed {
		d.line("")
		d.line("No status was read: every device counts as seen, online, idle and at `v0.0.0`.")
	}
	d.note(p.Note)
	d.warnings(p.Summary.Warnings)
	d.changes(p.Changes)
	d.policies(p.PolicyChanges)
	d.membership(&p.Membership)
	d.worstCase(p.WorstCase)
	d.sweep(p)
	d.everyChange(p.Changes)
	d.everyDevice(p)
	return d.String()
}

// RenderProblems writes why there is no plan: the problems of the head, of
// which at least one is an error.
func RenderProblems(head preview.Place, problems []schema.Problem, o Options) string {
	d := document{limit: o.limit(), command: o.Command}
	d.line("%s", Mark{Name: o.Name, Head: head.Commit})
	wrong, warnings := tally(problems)
	text := "not valid: " + counted(wrong, "error")
	if warnings > 0 {
		text += ", " + counted(warnings, "warning")
	}
	d.line("### gitopsd plan: %s", text)
	d.line("")
	d.line("%s%s cannot be planned before its errors are corrected.", o.fleet(), place(head))
	d.problems(problems)
	return d.String()
}

func tally(problems []schema.Problem) (wrong, warnings int) {
	for i := range problems {
		if problems[i].Severity == schema.SeverityError {
			wrong++
		} else {
			warnings++
		}
	}
	return wrong, warnings
}

// verdict is the whole comment in one line, without a word from the repository.
func verdict(p *preview.Plan) string {
	var words []string
	if p.Base != nil {
		changed := 0
		for i := range p.Changes {
			if !p.Changes[i].Effect.Already {
				changed += len(p.Changes[i].Devices)
			}
		}
		if p.Base.Commit != "" && changed == 0 && len(p.PolicyChanges) == 0 && stays(&p.Membership) {
			words = append(words, "nothing changes")
		} else {
			words = append(words, changeText(changed))
		}
	}
	if n := len(p.PolicyChanges); n > 0 {
		words = append(words, counted(n, "policy")+" "+pick(n == 1, "changes", "change"))
	}
	if n := lessCareful(p.PolicyChanges); n > 0 {
		words = append(words, counted(n, "setting")+" less careful")
	}
	switch n := holdsAndPins(p.Membership.Settings); n {
	case 0:
	case 1:
		words = append(words, "1 hold or pin changes")
	default:
		words = append(words, fmt.Sprintf("%d holds or pins change", n))
	}
	words = append(words, movingText(p.Summary.Upgrades))
	if n := p.Summary.Recalls; n > 0 {
		words = append(words, counted(n, "recall"))
	}
	if n := len(p.Summary.Warnings); n > 0 {
		words = append(words, counted(n, "warning"))
	}
	return strings.Join(words, ", ")
}

// stays says that nobody comes, goes, moves, or is held or pinned otherwise.
func stays(m *preview.Membership) bool {
	return len(m.Added)+len(m.Removed)+len(m.Moved)+len(m.NoTarget)+len(m.Settings) == 0
}

func holdsAndPins(list []preview.DeviceSetting) int {
	n := 0
	for _, s := range list {
		if s.Field == "hold" || s.Field == "pin" {
			n++
		}
	}
	return n
}

func changeText(n int) string {
	switch n {
	case 0:
		return "no device changes"
	case 1:
		return "1 device changes"
	}
	return fmt.Sprintf("%d devices change", n)
}

func movingText(n int) string {
	switch n {
	case 0:
		return "nobody moves next"
	case 1:
		return "1 moves next"
	}
	return fmt.Sprintf("%d move next", n)
}

func lessCareful(list []preview.PolicyChange) int {
	n := 0
	for i := range list {
		for _, f := range list[i].Fields {
			if f.Careful == "less" {
				n++
			}
		}
	}
	return n
}

// compared says what is compared with what.
func compared(p *preview.Plan) string {
	if p.Base == nil {
		return place(p.Head) + ", compared with nothing."
	}
	return place(p.Head) + " against " + place(*p.Base) + "."
}

func place(p preview.Place) string {
	if p.Commit != "" && strings.HasPrefix(p.Commit, p.Name) {
		return code(view.Short(p.Name))
	}
	text := code(clip(p.Name, longestName))
	if p.Commit == "" {
		return text
	}
	return text + " (" + code(clip(view.Short(p.Commit), longestName)) + ")"
}

// counted writes a number with its noun.
func counted(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
