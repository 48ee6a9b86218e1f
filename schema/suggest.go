package schema

import "strings"

// nearest gives the one of the known words that was probably meant, or "".
// Half of the letters may differ at most, and a tie goes to the first.
func nearest(word string, known []string) string {
	const longest = 64 // letters; nothing that we know is longer
	if len(word) > longest {
		return ""
	}
	best, bestDistance := "", min(3, len(word)/2)+1
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return k
		}
		if len(k) > longest {
			continue
		}
		if d := editDistance(word, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours.
func editDistance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
