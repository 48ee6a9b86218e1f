package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// toldEvents is how much of the history the text shows; the JSON has all
// that was read.
const toldEvents = 12

// WriteExplanation writes an explanation as text: one question a line.
func WriteExplanation(w io.Writer, e *Explanation, look Look) error {
	var b bytes.Buffer
	head := Clean(e.Device) + "  " + Clean(or(e.Version, "version unknown"))
	if e.Target != "" && e.Target != e.Version {
		head += " → " + Clean(e.Target)
	}
	text := head + "  " + answer(e) + ": " + Clean(e.Verdict.Code)
	text = look.hang(text, 2)
	fmt.Fprintln(&b, strings.Replace(text, answer(e), look.paint(answerColor(e), answer(e)), 1))
	for i, c := range e.Because {
		label := pick(i == 0, "because", "")
		text := Clean(c.Text)
		if c.File == "" {
			line(&b, label, text, look)
			continue
		}
		// A place that does not fit beside its text gets a line of its own.
		const apart = "   "
		place := where(c)
		if together := text + apart + place; look.Width == 0 || utf8.RuneCountInString(together) <= look.Width-labelWidth {
			line(&b, label, together, look)
			continue
		}
		line(&b, label, text, look)
		line(&b, "", place, look)
	}
	line(&b, "until", untilText(e), look)
	if l := e.Live; l != nil && l.Differs {
		line(&b, "next", Clean(nextText(l)), look)
	}
	line(&b, "passed", Clean(strings.Join(e.Passed, " · ")), look)
	if e.Standing != nil && groupsMatter(e.Verdict.Code) {
		head := e.Policy
		if e.Live == nil || e.Live.Differs {
			head += ", by the next sweep"
		}
		for i, text := range e.Standing.lines(head) {
			line(&b, pick(i == 0, "group", ""), Clean(text), look)
		}
	}
	for i, text := range e.tries() {
		line(&b, pick(i == 0, "tries", ""), Clean(text), look)
	}
	line(&b, "assigned", Clean(e.assignedText()), look)
	shown := e.History[:min(len(e.History), toldEvents)]
	for i, at := range stamps(shown) {
		event := shown[i]
		text := at + " " + Clean(event.Text)
		if event.Commit != "" {
			text += " (" + Short(event.Commit) + ")"
		}
		line(&b, pick(i == 0, "history", ""), text, look)
	}
	if more := len(e.History) - len(shown); more > 0 || e.Earlier {
		line(&b, pick(len(shown) == 0, "history", ""), "… more: "+Clean(look.again("gitopsd history "+e.Device)), look)
	}
	for _, l := range deviceLines(e) {
		line(&b, l.label, Clean(l.text), look)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// answer is whether the device moves, in a word.
func answer(e *Explanation) string {
	switch kind(e.Verdict.Code) {
	case planner.InFlight:
		return "NOW"
	case planner.Attention:
		return "NEEDS YOU"
	case planner.Wait:
		return "NOT NOW"
	}
	if e.Verdict.Code == string(planner.Current) {
		return "DONE"
	}
	return "LEFT ALONE"
}

func answerColor(e *Explanation) string {
	switch kind(e.Verdict.Code) {
	case planner.InFlight, planner.Wait:
		return colorBusy
	case planner.Attention:
		return colorBad
	}
	return colorGood
}

// untilText is what must happen, and when it can at the earliest.
func untilText(e *Explanation) string {
	text := Clean(strings.Join(e.Until, ", or "))
	if e.NotBefore != nil {
		text += ", not before " + Stamp(*e.NotBefore)
	}
	return text
}

// nextText is a verdict of the next sweep that is not on record.
func nextText(l *Live) string {
	text := "the next sweep would say " + l.Verdict.Code
	if l.Verdict.Target != "" {
		text += " (" + l.Verdict.Target + ")"
	}
	if why := or(l.Detail, l.Verdict.Reason); why != "" {
		text += ": " + why
	}
	if l.NotBefore != nil {
		text += ", not before " + Stamp(*l.NotBefore)
	}
	return text + "; " + l.Why
}

// groupsMatter says whether the rollout has to do with a verdict.
func groupsMatter(code string) bool {
	switch planner.Code(code) {
	case planner.Excluded, planner.Disabled, planner.BadInput, planner.BadPolicy:
		return false
	}
	return true
}

// tries are the attempts of the present target that did not go well, and what
// they halt. Of a device that is done the history has them.
func (e *Explanation) tries() []string {
	var list []string
	for i := range e.Attempts {
		a := &e.Attempts[i]
		if a.Version != e.Target || a.Outcome == "" || a.Outcome == schema.OutcomeOK || e.Verdict.Code == string(planner.Current) {
			continue
		}
		text := fmt.Sprintf("attempt %d %s", a.Attempt, did(a.Outcome, a.Version))
		if a.EndedAt != nil {
			text += " at " + Stamp(*a.EndedAt)
		}
		list = append(list, text)
	}
	for _, m := range e.Marks {
		if m.Halts {
			list = append(list, fmt.Sprintf("it is among those that halt %s, because it %s", m.Policy, did(m.Mark.Outcome, m.Version)))
		}
	}
	return list
}

// assignedText is what the device may act on.
func (e *Explanation) assignedText() string {
	a := e.Assignment
	switch {
	case a == nil:
		return ""
	case a.Version == "" && a.Recalled > 0:
		return fmt.Sprintf("nothing: attempt %d was recalled", a.Recalled)
	case a.Version == "":
		return ""
	}
	text := fmt.Sprintf("%s in attempt %d", a.Version, a.Attempt)
	if b := e.AssignedBecause; b != nil {
		if b.Wave != "" {
			text += ", wave " + b.Wave
		}
		if by := becauseText(b); by != "" {
			text += ", by " + by
		}
	}
	return text
}

func where(c Cause) string {
	file := c.File
	if c.Branch != "" {
		file = c.Branch + ":" + c.File
	}
	if c.Line == 0 {
		return Clean(file + ": " + defaultText(c))
	}
	return Clean(fmt.Sprintf("%s:%d %s", file, c.Line, c.Setting))
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// labelWidth is the column in which the answers begin.
const labelWidth = 9

// line writes one labelled line, and nothing where there is no text.
func line(b *bytes.Buffer, label, text string, look Look) {
	if text == "" {
		return
	}
	padded := fmt.Sprintf("%-*s", labelWidth, label)
	fmt.Fprintf(b, "%s%s\n", look.paint(colorHead, padded), look.hang(text, labelWidth))
}

// BytesText writes a size as people say it, in powers of a thousand.
func BytesText(n int64) string {
	const step = 1000
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	size, unit := float64(n), 0
	for size >= step && unit < len(units)-1 {
		size /= step
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}
