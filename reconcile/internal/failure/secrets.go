package failure

import (
	"regexp"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

var (
	// setting is a name with its value, as programs write them.
	setting = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)(["']?\s*[=:]\s*["']?)([^\s"',;&]+)`)
	// bearer is what stands behind the word in a header.
	bearer = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/._~=-]{8,}`)
	// userInfo is the part of a URL that lets somebody in.
	userInfo = regexp.MustCompile(`(://)[^\s/@]+@`)
	// word may be a token by its form alone.
	word = regexp.MustCompile(`[A-Za-z0-9_.-]{16,}`)
)

const removed = "[removed]"

// WithoutSecrets takes out of a program's words what looks like a secret: they
// go into a report, which many can read.
func WithoutSecrets(text string) string {
	text = userInfo.ReplaceAllString(text, "$1"+removed+"@")
	text = bearer.ReplaceAllString(text, "$1 "+removed)
	text = withoutSettings(text, settingDepth)
	return word.ReplaceAllStringFunc(text, func(s string) string {
		if schema.SecretLike("", s) {
			return removed
		}
		return s
	})
}

// settingDepth is how many settings may stand in one another's values; a
// hostile text has thousands.
const settingDepth = 8

// withoutSettings looks into values, too: "Error: password=…" is one.
func withoutSettings(text string, depth int) string {
	return setting.ReplaceAllStringFunc(text, func(s string) string {
		m := setting.FindStringSubmatch(s)
		switch {
		case schema.SecretLike(strings.ReplaceAll(m[1], "-", "_"), m[3]):
			return m[1] + m[2] + removed
		case depth > 0:
			return m[1] + m[2] + withoutSettings(m[3], depth-1)
		}
		return s
	})
}
