package failure

import (
	"cmp"
	"regexp"
	"strings"
)

// causeWidth is what a person sees of a cause, in characters: with what it
// happened to it fits into a reason, which is cut.
const causeWidth = 160

// causal is a line in which a program tells what ended it, as Go, Python, Java,
// podman and the common loggers write one.
var causal = regexp.MustCompile(`(^|[\s"'\[(])(?:(?i:panic|fatal|error|fatal error|critical)\]?:\s|[\w.]*(?:Error|Exception):\s|(?:ERROR|FATAL|CRITICAL|PANIC|EMERG|error|fatal|emerg)[\]"]|level=(?i:error|fatal|panic)\b|"level":\s?"(?i:error|fatal|panic))|^(?:\S+ \| )?(?:ERROR|FATAL|CRITICAL|PANIC)\b`)

// warning is what podman writes beside an error, or before it tries again, with
// the error that made it do so.
var warning = regexp.MustCompile(`^(?:\S+ \| )?(?:time=\S+ )?level=warning\b`)

// Cause is the line of a program's output that tells best what was wrong: the
// last that looks like it, else the last one. A warning is it only where there
// is nothing else.
func Cause(output string) string {
	warned, last, cause := "", "", ""
	for line := range strings.SplitSeq(output, "\n") {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case warning.MatchString(line):
			warned = line
		case causal.MatchString(line):
			last, cause = line, line
		default:
			last = line
		}
	}
	return cmp.Or(cause, last, warned)
}

// shortCause keeps the beginning, which names what was tried, and the end, where
// an error that wraps others has the innermost.
func shortCause(s string) string {
	r := []rune(s)
	if len(r) <= causeWidth {
		return s
	}
	return string(r[:causeWidth/4]) + "…" + string(r[len(r)-causeWidth*3/4:])
}
