package preview

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gitopsd/gitopsd/schema"
)

// secretText stands for what is not shown.
const secretText = "(secret)"

var (
	// assigned is a name with a value behind it, as configuration files of
	// many kinds write it; a word at the beginning of a line, or an option,
	// also without a sign between.
	assigned = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*(=>|:=|=|:)\s*`)
	followed = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_.-]*)\s+[^\s=:]`)
	option   = regexp.MustCompile(`(?:--?|login\s+\S+\s+)([A-Za-z_][A-Za-z0-9_.-]*)\s+[^\s=:]`)
	// tokens are values that tell by their form what they are.
	tokens = regexp.MustCompile(`gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w+|glpat-[\w-]+|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]+|AGE-SECRET-KEY-\w+|` +
		`eyJ[A-Za-z0-9_-]{8,}\.eyJ[\w.-]*|\$(?:1|2[abxy]|5|6|7|y|gy)\$[^\s:"']+`)
	userInfo = regexp.MustCompile(`://[^/\s"'@]*:[^/\s"']*@`)
	// keyText is in a content of which no line can be shown: the lines of a
	// key say nothing by themselves.
	keyText = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY|AGE-SECRET-KEY-|PuTTY-User-Key-File`)
	// moreNames are names of secrets in files of programs.
	moreNames = regexp.MustCompile(`(?i)^(.*_)?(psk|pass|pwd|authorization|requirepass|cookie|secrets|tokens|passwords)$`)
	notWord   = regexp.MustCompile(`[^A-Za-z0-9]+`)
	harmless  = regexp.MustCompile(`^$|^/|^\$\{?[A-Za-z_]|^(true|false|none|file|null|[0-9]{1,4})$`)
)

// keyNames are endings of files that hold keys.
var keyNames = []string{".key", ".p12", ".pfx", ".jks", ".keytab", ".psk", ".age"}

// mask takes secrets out of what is shown. values are those of variables that
// look like secrets, in each form in which they may have been rendered into
// anything, the longest first: one may be a part of another.
type mask struct {
	values []string
	words  *regexp.Regexp // the short ones; nil = none
	all    bool           // that there are too many values to look for
}

// mostForms is how many forms of values are looked for in each line: a private
// key has some hundred.
const mostForms = 1000

// short is how long a value is, in bytes, that is looked for within words too.
// A shorter one only as a word of its own, or nothing would stay readable.
const short = 4

// maskOf is a mask of values. Templates write them whole, but what is shown is
// taken apart by line, and they can change their letters, quote them and take
// blanks off.
func maskOf(values []string) mask {
	forms := map[string]bool{}
	for _, value := range values {
		value = strings.TrimSpace(value)
		for _, v := range []string{value, strings.ToUpper(value), strings.ToLower(value)} {
			for line := range strings.Lines(v) {
				if line = strings.TrimSpace(line); isSpoken(line) {
					forms[line] = true
				}
				if len(forms) > mostForms {
					return mask{all: true}
				}
			}
			forms[v], forms[quoted(v)] = true, true
		}
		forms[strings.ToUpper(quoted(value))], forms[strings.ToLower(quoted(value))] = true, true
	}
	delete(forms, "")
	m := mask{values: slices.SortedFunc(maps.Keys(forms), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })}
	i, _ := slices.BinarySearchFunc(m.values, short-1, func(v string, n int) int { return n - len(v) })
	words := m.values[i:]
	m.values = m.values[:i]
	for i := range words {
		words[i] = regexp.QuoteMeta(strings.ToValidUTF8(words[i], "\ufffd")) // which matches what is none
	}
	if len(words) > 0 {
		m.words = regexp.MustCompile(`(^|\W)(?:` + strings.Join(words, "|") + `)(\W|$)`)
	}
	return m
}

// quoted is a value as templates quote it, without the quotes.
func quoted(value string) string {
	s := strconv.Quote(value)
	return s[1 : len(s)-1]
}

// isSpoken says whether a line may be a secret: a bracket alone is none.
func isSpoken(line string) bool {
	return len(strings.TrimSpace(line)) >= short || strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// key is equal where the masks are.
func (m mask) key() string {
	return fmt.Sprint(m.all, m.words) + "\x00" + strings.Join(m.values, "\x00")
}

// isSecret says whether what stands under a name must not be shown.
func isSecret(name, value string) bool {
	name = strings.Trim(notWord.ReplaceAllString(name, "_"), "_")
	return schema.SecretLike(name, value) || moreNames.MatchString(name) && !harmless.MatchString(value)
}

// secretPath says whether a file is known by its name to hold a secret.
func secretPath(file string) bool {
	base := path.Base(file)
	for _, end := range keyNames {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	name := strings.TrimSuffix(base, path.Ext(base))
	switch base {
	case "id_rsa", "id_ed25519", "id_ecdsa", "shadow", "gshadow", ".netrc", ".pgpass", ".htpasswd":
		return true
	}
	return isSecret(name, "x") || isSecret(base, "x")
}

// value is the value of a field.
func (m mask) value(name, value string) string {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if value != "" && isSecret(last, value) {
		return secretText
	}
	return m.text(value)
}

// text is a line of a text. Only the beginning of a long one is shown, and
// looked through for what has the form of a secret.
func (m mask) text(line string) string {
	if m.all {
		return secretText
	}
	for _, v := range m.values {
		line = strings.ReplaceAll(line, v, secretText)
	}
	for range 2 { // what stands between two words is a part of one of them
		if m.words != nil {
			line = m.words.ReplaceAllString(line, "${1}"+secretText+"${2}")
		}
	}
	line = clip(line, longestMasked)
	line = userInfo.ReplaceAllString(line, "://"+secretText+"@")
	line = tokens.ReplaceAllString(line, secretText)
	for _, form := range []*regexp.Regexp{assigned, followed, option} {
		for _, found := range form.FindAllStringSubmatchIndex(line, -1) {
			name, end := line[found[2]:found[3]], found[1]
			if form != assigned {
				end = found[3] + 1 // behind the name and a space
			}
			// The value may have spaces in it, so all that follows goes.
			if rest := strings.Trim(line[end:], " \t\"',;"); isSecret(name, rest) && rest != secretText {
				return line[:end] + secretText
			}
		}
	}
	return line
}

// hides says why the content of a file is not shown at all; "" = it may be.
func (m mask) hides(file string, contents ...[]byte) string {
	switch {
	case secretPath(file):
		return "its name is that of a secret"
	case m.all:
		return "variables that look like secrets have too many lines"
	}
	for _, c := range contents {
		if keyText.Match(c) {
			return "it holds a key"
		}
	}
	return ""
}

// LooksSecret says why the content of a file should be shown to nobody; "" = it
// may be.
func LooksSecret(file, content string) string {
	var m mask
	if why := m.hides(file, []byte(content)); why != "" {
		return why
	}
	for line := range strings.Lines(content) {
		if m.text(line) != line {
			return "it looks like it holds a secret"
		}
	}
	return ""
}
