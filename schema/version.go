package schema

import (
	"fmt"
	"regexp"
	"strings"
)

// maxVersion bounds a version in bytes; a registry's tag may have 128.
const maxVersion = 128

var versionForm = regexp.MustCompile(`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))?` +
	`(-(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?` +
	`(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

var describedForm = regexp.MustCompile(`(^-|-)dirty$|(^-|-)[0-9]+-g[0-9a-f]+$`)

// isVersion says whether a version has an order: two or three numbers after an
// optional v, with what semver.org allows behind them. What `git describe`
// makes of a tree that is not tagged has none: it comes after its tag, and
// would be sorted before.
func isVersion(s string) bool {
	if len(s) > maxVersion {
		return false
	}
	m := versionForm.FindStringSubmatch(s)
	return m != nil && !describedForm.MatchString(m[5])
}

// numbers is a version without the v that may stand before it.
func numbers(v string) string { return strings.TrimPrefix(v, "v") }

const versionHint = "a version is two or three numbers, with or without a v: v1.5.0, 1.5 or v1.5.0-rc.1"

// releaseHint names the release that was probably meant, or the ones there are.
func releaseHint(version string, known []string) string {
	for _, k := range known {
		if numbers(k) == numbers(version) {
			return fmt.Sprintf("did you mean %s?", k)
		}
	}
	if len(known) == 0 {
		return "add the release first"
	}
	const shownReleases = 5 // the newest by name; enough to see a typing mistake
	return "the releases there are " + strings.Join(known[max(0, len(known)-shownReleases):], ", ")
}
