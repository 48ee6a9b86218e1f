package listing

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// What GitHub shows of the annotations of a step, and how long they may be.
const (
	annotationsOfAKind = 10   // errors, and again warnings; more are dropped without a word
	titleLimit         = 255  // characters
	annotationLimit    = 4096 // characters; GitHub takes 64 KiB, and nobody reads them
)

// WriteGitHub writes the commands with which a step of GitHub Actions
// annotates lines, errors first. What is above GitHub's limits follows as plain
// lines, so that the log has everything.
func WriteGitHub(w io.Writer, r *Result) error {
	var b strings.Builder
	var more []schema.Problem
	used := map[schema.Severity]int{}
	for _, p := range errorsFirst(r.Problems) {
		if used[p.Severity] == annotationsOfAKind {
			more = append(more, p)
			continue
		}
		used[p.Severity]++
		b.WriteString(annotation(r.Root, p) + "\n")
	}
	if len(more) > 0 {
		wrong, warnings := Tally(more)
		fmt.Fprintf(&b, "::group::and %s more\n", counts(wrong, warnings))
		for _, p := range more {
			b.WriteString(Line(p) + "\n")
		}
		b.WriteString("::endgroup::\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func annotation(root string, p schema.Problem) string {
	command := "error"
	if p.Severity == schema.SeverityWarning {
		command = "warning"
	}
	properties := "file=" + property(view.Clean(root+p.File))
	if p.Line > 0 {
		properties += ",line=" + strconv.Itoa(p.Line)
		if p.Column > 0 {
			properties += ",col=" + strconv.Itoa(p.Column)
		}
	}
	properties += ",title=" + property(clip("gitopsd "+p.Rule, titleLimit))
	text := clip(view.Clean(p.Message), annotationLimit)
	if p.Hint != "" {
		text += "\n" + clip(view.Clean(p.Hint), annotationLimit)
	}
	return "::" + command + " " + properties + "::" + data(text)
}

// data and property escape as the toolkit of GitHub Actions does; the value of
// a property ends at a comma or a colon, too.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
