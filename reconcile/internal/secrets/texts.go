package secrets

import (
	"cmp"
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	// shortest is what is looked for at least, in bytes: less stands in any
	// text by chance.
	shortest = 6
	// maxTexts bounds what is remembered, in bytes. A hundred of the largest
	// secrets have room; beyond it the oldest go.
	maxTexts = 8 << 20
)

// struck is what stands in the place of a line of a secret.
const struck = "[secret]"

// Texts are what was in secrets, to be taken out of what programs say: they
// have read them, and tell everything. They are in memory only. The zero value
// knows none, and so does nil. Texts may be used by any number of goroutines.
type Texts struct {
	mu     sync.Mutex
	order  [][sha256.Size]byte // of the texts, the newest last
	texts  map[[sha256.Size]byte]string
	size   int
	pieces map[string][]string // by how they begin, the longest first; nil = to be made anew
}

// Remember has a secret taken out of everything from now on.
func (t *Texts) Remember(plain []byte) {
	if t == nil || len(plain) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := sha256.Sum256(plain)
	if t.texts[sum] != "" {
		t.order = append(slices.DeleteFunc(t.order, func(s [sha256.Size]byte) bool { return s == sum }), sum)
		return
	}
	if t.texts == nil {
		t.texts = map[[sha256.Size]byte]string{}
	}
	t.texts[sum], t.order = string(plain), append(t.order, sum)
	for t.size += len(plain); t.size > maxTexts; t.order = t.order[1:] {
		t.size -= len(t.texts[t.order[0]])
		delete(t.texts, t.order[0])
	}
	t.pieces = nil
}

// Strike takes every line of a secret out of a text, and its value where it is
// a setting.
func (t *Texts) Strike(text string) string {
	if t == nil {
		return text
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.texts) == 0 {
		return text
	}
	if t.pieces == nil {
		t.cut()
	}
	var out strings.Builder
	done := 0
	for i := 0; i+shortest <= len(text); {
		n := t.at(text[i:])
		if n == 0 {
			i++
			continue
		}
		out.WriteString(text[done:i] + struck)
		i += n
		done = i
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// at is how long the piece is with which a text begins; 0 = with none.
func (t *Texts) at(text string) int {
	for _, p := range t.pieces[text[:shortest]] {
		if strings.HasPrefix(text, p) {
			return len(p)
		}
	}
	return 0
}

// cut makes the pieces of all texts.
func (t *Texts) cut() {
	t.pieces = map[string][]string{}
	for _, text := range t.texts {
		for line := range strings.SplitSeq(text, "\n") {
			for _, p := range piecesOf(line) {
				if len(p) >= shortest {
					t.pieces[p[:shortest]] = append(t.pieces[p[:shortest]], p)
				}
			}
		}
	}
	for begin, p := range t.pieces {
		slices.SortFunc(p, func(x, y string) int { return cmp.Or(len(y)-len(x), strings.Compare(x, y)) })
		t.pieces[begin] = slices.Compact(p)
	}
}

// marks stand around a value in the usual forms of configuration.
const marks = " \t\r\"',;"

// setting is a name with its value, of which a line may have several.
var setting = regexp.MustCompile(`\w["']?\s*[=:]\s*(?:"([^"]*)"|'([^']*)'|([^\s"',;&{}\[\]]+))`)

// piecesOf are what of a line is told by whoever has read it: all of it, and the
// values behind the names of settings. The first may be of several words.
func piecesOf(line string) []string {
	line = strings.TrimSpace(line)
	pieces := []string{line, strings.Trim(line, marks)}
	for _, sign := range []string{"=", ": "} {
		if _, value, found := strings.Cut(line, sign); found {
			pieces = append(pieces, strings.TrimSpace(value), strings.Trim(value, marks))
		}
	}
	if strings.Count(line, "=")+strings.Count(line, ":") < 2 {
		return pieces
	}
	for _, one := range setting.FindAllStringSubmatch(line, -1) {
		pieces = append(pieces, one[1]+one[2]+one[3])
	}
	return pieces
}
