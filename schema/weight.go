package schema

import "bytes"

// maxWeight bounds [weight]. The parser holds all nodes of a document, 160
// bytes each with what belongs to them, before it gives any of them away;
// 1 MiB can hold a million. A document with maxNodes values weighs at most
// three fifths of this, so that what is refused here is beyond that too, or
// repeats within its texts what divides values outside of them: half a million
// times, which is no text that a person keeps in a document.
const maxWeight = 500_000

// weight is at least the number of nodes that the parser would make of a
// document, found without it: whatever divides two values is counted wherever
// it stands. Comments count because the parser keeps them too.
func weight(data []byte) int {
	n := 4 + bytes.Count(data, []byte("\n"))
	n += 2 * bytes.Count(data, []byte(",")) // an entry, and the value that it may lack
	n += 2 * bytes.Count(data, []byte("["))
	n += 2 * bytes.Count(data, []byte("{"))
	n += 2 * countIndicators(data, '?')
	n += countIndicators(data, '-')
	n += countIndicators(data, ':')
	for i := range data {
		if data[i] == '#' && (i == 0 || isBlank(data[i-1])) {
			n += 2
		}
	}
	return n
}

// countIndicators counts a character where it divides values: before a blank,
// before the end of a flow, or, as JSON writes a colon, behind a quote or a
// bracket.
func countIndicators(data []byte, c byte) int {
	n := 0
	for i := range data {
		if data[i] != c {
			continue
		}
		switch {
		case i+1 == len(data), isBlank(data[i+1]), bytes.IndexByte([]byte(",[]{}"), data[i+1]) >= 0,
			c == ':' && i > 0 && bytes.IndexByte([]byte("\"']}"), data[i-1]) >= 0:
			n++
		}
	}
	return n
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
