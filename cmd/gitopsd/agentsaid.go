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
// below its first line. Lines that are the same as the one before are counted.
func saidText(message string) string {
	_, below, found := strings.Cut(strings.TrimSpace(message), "\n")
	if !found {
		return ""
	}
	lines := strings.Split(below, "\n")
	var shown []string
	for len(lines) > 0 && len(shown) < saidShown {
		last := lines[len(lines)-1]
		same := 0
		for same < len(lines) && lines[len(lines)-1-same] == last {
			same++
		}
		lines = lines[:len(lines)-same]
		if same > 1 {
			last += fmt.Sprintf(" (%d times)", same)
		}
		shown = append(shown, last)
	}
	if n := len(lines); n > 0 {
		shown = append(shown, fmt.Sprintf("… %d more before: -o json has them", n))
	}
	slices.Reverse(shown)
	return strings.Join(shown, "\n")
}
