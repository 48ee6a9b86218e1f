package main

import (
	"fmt"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// problemText is a problem on one line, as compilers write it, with its hint.
func problemText(p schema.Problem) string {
	var b strings.Builder
	b.WriteString(clean(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, ":%d", p.Column)
		}
	}
	b.WriteString(": ")
	if p.Severity == schema.SeverityWarning {
		b.WriteString("warning: ")
	}
	b.WriteString(clean(p.Message))
	if p.Rule != "" {
		fmt.Fprintf(&b, " [%s]", p.Rule)
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, " (%s)", clean(p.Hint))
	}
	return b.String()
}

// tally counts errors and warnings.
func tally(problems []schema.Problem) (wrong, warnings int) {
	for _, p := range problems {
		if p.Severity == schema.SeverityError {
			wrong++
		} else {
			warnings++
		}
	}
	return wrong, warnings
}

// were is plural with the verb.
func were(n int, noun string) string {
	if n == 1 {
		return plural(n, noun) + " was"
	}
	return plural(n, noun) + " were"
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
