package planner

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

// maxVersionLength bounds what is looked at: versions come from devices, and
// a tag of a container registry may have 128 characters.
const maxVersionLength = 128

// parseVersion reads a version that has an order, or gives nil.
//
// The rules: an optional "v"; two or three numbers without leading zeros
// (1.10 is 1.10.0; one number alone may be a date or a hash, so it has no
// order); pre-releases as semver.org orders them (rc.9 < rc.10, but rc10 <
// rc9, because without the dot they are words); build metadata says nothing.
// What `git describe` makes of an untagged or changed tree has no order
// either: it follows its tag, and semver would put it before.
func parseVersion(s string) *semver.Version {
	if len(s) > maxVersionLength {
		return nil
	}
	s = strings.TrimPrefix(s, "v")
	core, rest := s, ""
	if i := strings.IndexAny(s, "-+"); i >= 0 {
		core, rest = s[:i], s[i:]
	}
	switch strings.Count(core, ".") {
	case 1:
		core += ".0"
	case 2:
	default:
		return nil
	}
	v, err := semver.StrictNewVersion(core + rest)
	if err != nil || isDescribed(v.Prerelease()) {
		return nil
	}
	return v
}

// isDescribed tells the suffixes of `git describe --dirty`: -3-gdeadbee,
// -dirty, and both.
func isDescribed(pre string) bool {
	if pre == "dirty" || strings.HasSuffix(pre, "-dirty") {
		return true
	}
	i := strings.LastIndex(pre, "-g")
	if i < 0 || !isAll(pre[i+2:], "0123456789abcdef") {
		return false
	}
	count := pre[:i]
	count = count[strings.LastIndexByte(count, '-')+1:]
	return isAll(count, "0123456789")
}

func isAll(s, chars string) bool {
	return s != "" && strings.Trim(s, chars) == ""
}

// versions remembers what it parsed: a fleet has few versions.
type versions map[string]*semver.Version

func (c versions) parse(s string) *semver.Version {
	v, ok := c[s]
	if !ok {
		v = parseVersion(s)
		c[s] = v
	}
	return v
}

// same says whether two versions are one: the same text, or equal in order.
func (c versions) same(a, b string) bool {
	if a == b {
		return a != ""
	}
	va, vb := c.parse(a), c.parse(b)
	return va != nil && vb != nil && va.Compare(vb) == 0
}
