package failure

import (
	"regexp"
	"strings"
)

// causeWidth is what a person sees of a cause, in characters: with what it
// happened to it fits into a reason, which is cut.
const causeWidth = 160

// causal is a line in which a program tells what ended it, as Go, Python, Java,
// podman and the common loggers write one.
var causal = regexp.MustCompile(`(^|[\s"'\[(])(?:(?i:panic|fatal|error|fatal error|critical)\]?:\s|[\w.]*(?:Error|Exception):\s|(?:ERROR|FATAL|CRITICAL|PANIC|EMERG|error|fatal|emerg)[\]"]|level=(?i:error|fatal|panic)\b|"level":\s?"(?i:error|fatal|panic))|^(?:\S+ \| )?(?:ERROR|FATAL|CRITICAL|PANIC)\b`)

// Cause is the line of a program's output that tells best what was wrong: the
// last that looks like it, else the last one.
func Cause(output string) string {
	last, cause := "", ""
	for line := range strings.SplitSeq(output, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if last = line; causal.MatchString(line) {
			cause = line
		}
	}
	if cause == "" {
		cause = last
	}
	return cause
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
