package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/planner"
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
	fmt.Fprintf(&b, "%s  %s: %s\n", head, answer(e, look), Clean(e.Verdict.Code))
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
	line(&b, "until", Clean(strings.Join(e.Until, ", or ")), look)
	line(&b, "passed", Clean(strings.Join(e.Passed, " · ")), look)
	shown := e.History[:min(len(e.History), toldEvents)]
	for i, at := range stamps(shown) {
		event := shown[i]
		text := at + " " + Clean(event.Text)
		if event.Commit != "" {
			text += " (" + Short(event.Commit) + ")"
		}
		line(&b, pick(i == 0, "history", ""), text, look)
	}
	if more := len(e.History) - len(shown); more > 0 {
		line(&b, "", fmt.Sprintf("… %d more: %s", more, Clean(look.again("gitopsd explain "+e.Device+" -o json"))), look)
	}
	line(&b, "device", deviceLine(e), look)
	_, err := w.Write(b.Bytes())
	return err
}

func answer(e *Explanation, look Look) string {
	switch kind(e.Verdict.Code) {
	case planner.InFlight:
		return look.paint(colorBusy, "NOW")
	case planner.Attention:
		return look.paint(colorBad, "NEEDS YOU")
	case planner.Wait:
		return look.paint(colorBusy, "NOT NOW")
	}
	return look.paint(colorGood, "LEFT ALONE")
}

func where(c Cause) string {
	if c.Line == 0 {
		return Clean(c.File + ": " + c.Setting + ", so its default holds")
	}
	return fmt.Sprintf("%s:%d %s", Clean(c.File), c.Line, Clean(c.Setting))
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

// deviceLine says what the device itself tells.
func deviceLine(e *Explanation) string {
	var parts []string
	if o := e.Observed; o != nil {
		parts = append(parts, string(o.Phase))
		if o.Reason != "" {
			parts[0] += ": " + said(o.Reason, "")
		}
		switch {
		case o.Online:
			parts = append(parts, "online")
		case o.OfflineSince != nil:
			parts = append(parts, "offline since "+o.OfflineSince.UTC().Format(time.RFC3339))
		default:
			parts = append(parts, "offline")
		}
		if o.Busy {
			parts = append(parts, "busy")
		}
		if o.Held != "" {
			parts = append(parts, "held there: "+o.Held)
		}
		if o.Problem != "" {
			parts = append(parts, "its newest report was refused: "+o.Problem)
		}
	}
	if r := e.Report; r != nil {
		switch n := len(r.Drift); n {
		case 0:
			parts = append(parts, "no drift")
		case 1:
			parts = append(parts, "drift: "+r.Drift[0])
		default:
			parts = append(parts, fmt.Sprintf("drift: %s and %d more", r.Drift[0], n-1))
		}
		if r.FreeDisk > 0 {
			parts = append(parts, bytesText(r.FreeDisk)+" free")
		}
	}
	return Clean(strings.Join(parts, " · "))
}

// bytesText writes a size as people say it, in powers of a thousand.
func bytesText(n int64) string {
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
