package main

import (
	"fmt"
	"slices"
	"strings"
)

// saidShown is how many lines of what a program wrote are shown; the JSON has
// all, and what else there is to tell stays in sight.
const saidShown = 10

// saidText is the end of what a program wrote, which a failure's message has
// below its first line. Lines that repeat, one or some by turns, are counted.
func saidText(message string) string {
	_, below, found := strings.Cut(strings.TrimSpace(message), "\n")
	if !found {
		return ""
	}
	lines := strings.Split(below, "\n")
	var shown []string
	for len(lines) > 0 && len(shown) < saidShown {
		n, times := repeated(lines, saidShown-len(shown))
		turn := slices.Clone(lines[len(lines)-n:])
		lines = lines[:len(lines)-n*times]
		switch {
		case times > 1 && n > 1:
			turn[n-1] += fmt.Sprintf(" (these %d lines %d times)", n, times)
		case times > 1:
			turn[0] += fmt.Sprintf(" (%d times)", times)
		}
		shown = append(turn, shown...)
	}
	if n := len(lines); n > 0 {
		shown = append([]string{fmt.Sprintf("… %d more before: -o json has them", n)}, shown...)
	}
	return strings.Join(shown, "\n")
}

// repeated says how many of the last lines repeat, at most so many, and how
// often they are there: what leaves the fewest lines to read.
func repeated(lines []string, most int) (n, times int) {
	n, times = 1, 1
	for of := 1; of <= min(most, len(lines)); of++ {
		turn, same := lines[len(lines)-of:], 1
		for end := len(lines) - of; end >= of && slices.Equal(lines[end-of:end], turn); end -= of {
			same++
		}
		if of*(same-1) > n*(times-1) {
			n, times = of, same
		}
	}
	return n, times
}
