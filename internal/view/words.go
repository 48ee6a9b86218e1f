package view

import (
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/gitopsd/gitopsd/schema"
)

// minutes is how a time is written with its date: as in the reasons of the
// planner, which stand in git.
const minutes = "2006-01-02T15:04Z"

// Stamp writes a time with its date, in UTC.
func Stamp(t time.Time) string { return t.UTC().Format(minutes) }

// clock writes a time with its date only where the day is another one than
// that of the reference.
func clock(t, reference time.Time) string {
	if t.IsZero() {
		return ""
	}
	t, reference = t.UTC(), reference.UTC()
	if t.Format(time.DateOnly) == reference.Format(time.DateOnly) {
		return t.Format("15:04Z")
	}
	return Stamp(t)
}

// spoken is a code as words: "NeverSeen" is "never seen".
func spoken(code string) string {
	var b strings.Builder
	for i, r := range code {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// did is an outcome as what a device or an attempt did with a version.
func did(o schema.Outcome, version string) string {
	switch o {
	case schema.OutcomeLost:
		return "was lost on the way to " + version
	case schema.OutcomeDeferred, schema.OutcomeUnreached:
		return "of " + version + " was recalled as " + string(o)
	case schema.OutcomeExhausted:
		return "used up its tries of " + version
	}
	return strings.TrimSpace(string(o) + " " + version)
}

var (
	// reported is how the daemon introduces what a device said.
	reported = regexp.MustCompile(`^(?:the device|it came back and) reports that it failed: `)
	// program is how the agent tells what a program of the spec said.
	program = regexp.MustCompile(`^(?:hooks )?(\S+): (.+) \(\S+ ended with (exit code \d+)\)$`)
)

// said is the message of a failure on one line, with what somebody wrote for
// the reader first, and then where it happened: a narrow terminal, and a
// reader in a hurry, see the beginning.
func said(message, stage string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	line = reported.ReplaceAllString(line, "")
	if m := program.FindStringSubmatch(line); m != nil {
		return m[2] + " (" + m[1] + ", " + m[3] + ")"
	}
	switch {
	case line == "":
		return stageText(stage)
	case stage == "" || strings.Contains(line, stage):
		return line
	}
	return line + " (" + stageText(stage) + ")"
}

// stageText is a stage of an update as words; an agent may name others.
func stageText(stage string) string {
	switch stage {
	case "PRE-CHECK":
		return "before the update"
	case "RECONCILE":
		return "while it was updated"
	case "POST-ACTION":
		return "after the update"
	case "ROLLBACK":
		return "while it was put back"
	}
	return stage
}
