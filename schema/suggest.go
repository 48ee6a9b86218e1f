package schema

import "strings"

// longestWord bounds the words that are compared, in bytes: no name that we
// know is longer, and the cost is the product of two of them.
const longestWord = 64

// Nearest gives the one of the known words that was probably meant, or "".
// Half of the letters may differ at most, and three; the beginning of a word
// stands for it. A tie goes to the first.
func Nearest(word string, known []string) string {
	const least = 2 // letters of a beginning
	best, most := "", min(3, len(word)/2)
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return k
		}
		d := EditDistance(word, k, most)
		if len(word) >= least && strings.HasPrefix(k, word) {
			d = 1
		}
		if d <= most {
			best, most = k, d-1
		}
	}
	return best
}

// EditDistance counts insertions, deletions, replacements and swaps of
// neighbours between two words; above most it is most+1, and so it is for
// words of more than 64 bytes.
func EditDistance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most || len(a) > longestWord || len(b) > longestWord {
		return most + 1
	}
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
	return min(prev[len(b)], most+1)
}
