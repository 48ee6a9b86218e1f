package main

import (
	"fmt"

	"github.com/gitopsd/gitopsd/internal/listing"
	"github.com/gitopsd/gitopsd/schema"
)

// problemText is a problem on one line, as compilers write it, with its hint.
func problemText(p schema.Problem) string { return listing.Line(p) }

// warningText is problemText without the word, for lists that are of warnings
// alone.
func warningText(p schema.Problem) string {
	p.Severity = schema.SeverityError
	return listing.Line(p)
}

// tally counts errors and warnings.
func tally(problems []schema.Problem) (wrong, warnings int) { return listing.Tally(problems) }

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
