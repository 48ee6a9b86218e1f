package preview

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

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
// look like secrets: they may have been rendered into anything.
type mask struct {
	values []string
	// older says that what is compared with was rendered with values that are not
	// at hand: where one of values stands now, nothing of before is shown.
	older bool
}

// key is equal where the masks are.
func (m mask) key() string { return fmt.Sprint(m.older) + "\x00" + strings.Join(m.values, "\x00") }

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

// text is a line of a text.
func (m mask) text(line string) string {
	for _, v := range m.values {
		line = m.without(line, v)
	}
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

// without takes the value of a variable out of a line. A short one is only
// looked for as a word of its own, or nothing would stay readable.
func (m mask) without(line, value string) string {
	const short = 4
	switch {
	case value == "" || !strings.Contains(line, value):
		return line
	case len(value) >= short:
		return strings.ReplaceAll(line, value, secretText)
	}
	word, err := regexp.Compile(`(^|\W)` + regexp.QuoteMeta(value) + `(\W|$)`)
	if err != nil {
		return secretText
	}
	return word.ReplaceAllString(line, "${1}"+secretText+"${2}")
}

// replaces says whether a text has a secret value now, and may have had one
// before that nobody here knows.
func (m mask) replaces(now string) bool {
	return m.older && slices.ContainsFunc(m.values, func(v string) bool { return m.without(now, v) != now })
}

// hides says why the content of a file is not shown at all; "" = it may be.
func (m mask) hides(file string, contents ...[]byte) string {
	if secretPath(file) {
		return "its name is that of a secret"
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
