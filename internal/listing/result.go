package listing

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// Result is what a validation found.
type Result struct {
	Dir string // the folder of the fleet, as a person named it
	// Root is where the folder lies in its git repository: "", or a path with a
	// slash at its end. Forges want the path from the root of the repository.
	Root     string
	Problems []schema.Problem // those that are shown
	Files    int              // documents read
	Devices  int
	Valid    bool   // of the whole fleet, whatever is shown
	Strict   bool   // warnings count as errors
	Since    *Since // nil = everything is shown
	Lines    *Lines // nil = no lines of the source are shown
	Version  string // of this program
}

// Since says what a result was narrowed to.
type Since struct {
	Revision string `json:"revision"` // as a person named it
	Commit   string `json:"commit"`   // that the fleet is compared with
	Errors   int    `json:"errors"`   // that were there already, and are not shown
	Warnings int    `json:"warnings"`
}

// Fails says whether what is shown should stop a pipeline.
func (r *Result) Fails() bool {
	wrong, warnings := Tally(r.Problems)
	return wrong > 0 || r.Strict && warnings > 0
}

// Verdict is the result in a line.
func (r *Result) Verdict() string {
	wrong, warnings := Tally(r.Problems)
	text := "valid"
	switch {
	case wrong > 0:
		text = plural(wrong, "error")
	case !r.Valid:
		text = "no new error"
	}
	if warnings > 0 {
		text += ", " + plural(warnings, "warning")
	}
	text += fmt.Sprintf(" in %s, %s", plural(r.Files, "document"), plural(r.Devices, "device"))
	if slices.ContainsFunc(r.Problems, func(p schema.Problem) bool { return p.Hides() }) {
		text += "; more may follow once these are mended"
	}
	if s := r.Since; s != nil && s.Errors+s.Warnings > 0 {
		text += fmt.Sprintf("; there already at %s: %s", view.Clean(s.Revision), counts(s.Errors, s.Warnings))
	}
	return text
}

// Tally counts errors and warnings.
func Tally(problems []schema.Problem) (wrong, warnings int) {
	for _, p := range problems {
		if p.Severity == schema.SeverityError {
			wrong++
		} else {
			warnings++
		}
	}
	return wrong, warnings
}

// counts names what there is of both; it is not for none of either.
func counts(wrong, warnings int) string {
	var parts []string
	if wrong > 0 {
		parts = append(parts, plural(wrong, "error"))
	}
	if warnings > 0 {
		parts = append(parts, plural(warnings, "warning"))
	}
	return strings.Join(parts, " and ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// errorsFirst is for listings that may have to end early.
func errorsFirst(problems []schema.Problem) []schema.Problem {
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b schema.Problem) int { return rank(a) - rank(b) })
	return sorted
}

func rank(p schema.Problem) int {
	if p.Severity == schema.SeverityError {
		return 0
	}
	return 1
}

// rulesPage explains each rule under its name.
const rulesPage = "https://github.com/gitopsd/gitopsd/blob/main/docs/reference/rules.md#"

// RuleURL is where a rule is explained.
func RuleURL(rule string) string { return rulesPage + url.PathEscape(rule) }

// clip cuts a text to so many runes. One problem may quote kilobytes.
func clip(s string, runes int) string {
	for i := range s {
		if runes--; runes < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
