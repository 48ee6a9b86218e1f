package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/gitopsd/gitopsd/schema"
)

// releasesOf lists the releases of a line, newest first, with their files.
// Those whose version has no order come last.
func (t *workTree) releasesOf(line string) (versions []string, files map[string]string) {
	files = map[string]string{}
	for _, e := range t.entries {
		rest, ok := strings.CutPrefix(e.Path, "releases/"+line+"/")
		if !ok {
			continue
		}
		name, inFolder := strings.CutSuffix(rest, "/release.yaml")
		if !inFolder {
			if name, ok = strings.CutSuffix(rest, ".yaml"); !ok {
				continue
			}
		}
		if _, twice := files[name]; twice || strings.Contains(name, "/") {
			continue
		}
		files[name] = e.Path
		versions = append(versions, name)
	}
	slices.SortStableFunc(versions, func(a, b string) int { return -compareVersions(a, b) })
	return versions, files
}

// lines are the release lines.
func (t *workTree) lines() []string {
	var lines []string
	for _, e := range t.entries {
		if rest, ok := strings.CutPrefix(e.Path, "releases/"); ok {
			if line, _, below := strings.Cut(rest, "/"); below && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// parseVersion reads a version for its order; nil = it has none.
func parseVersion(s string) *semver.Version {
	v, err := semver.NewVersion(strings.TrimPrefix(s, "v"))
	if err != nil {
		return nil
	}
	return v
}

// compareVersions orders versions; what has no order is before all others.
func compareVersions(a, b string) int {
	x, y := parseVersion(a), parseVersion(b)
	switch {
	case x == nil && y == nil:
		return strings.Compare(a, b)
	case x == nil:
		return -1
	case y == nil:
		return 1
	}
	return x.Compare(y)
}

// sameVersion says whether two spellings are of one version: v1.1.0 and 1.1.0.
func sameVersion(a, b string) bool {
	return a == b || parseVersion(a) != nil && parseVersion(b) != nil && parseVersion(a).String() == parseVersion(b).String()
}

// older says whether a version is surely older than another.
func older(a, b string) bool {
	return parseVersion(a) != nil && parseVersion(b) != nil && compareVersions(a, b) < 0
}

// lineOf is the release line of a policy.
func lineOf(p *schema.Policy) string { return or(p.Spec.ReleaseLine, p.Metadata.Name) }

// nearReleases are the versions that a mistyped one may mean, or all.
func nearReleases(version string, versions []string) []string {
	const typos = 2
	var begun, near []string
	for _, v := range versions {
		if strings.HasPrefix(strings.TrimPrefix(v, "v"), strings.TrimPrefix(version, "v")) {
			begun = append(begun, v)
		}
		if schema.EditDistance(v, version, typos) <= typos {
			near = append(near, v)
		}
	}
	switch {
	case len(begun) > 0:
		return begun
	case len(near) > 0:
		return near
	}
	return versions
}

// noSource is for a release that was to be copied, or gone back to, and is not
// there: to make it is no answer.
func (t *workTree) noSource(line, version string) error {
	versions, _ := t.releasesOf(line)
	err := fmt.Errorf("the line %s has no release %s", line, version)
	near := nearReleases(version, versions)
	switch {
	case len(versions) == 0:
		return withHint(err, "it has none; a release is releases/%s/<version>.yaml", line)
	case len(near) == 1:
		return withHint(err, "did you mean %s?", near[0])
	}
	return withHint(err, "it has %s", some(near))
}

// noRelease is for a version that a line does not have.
func (t *workTree) noRelease(line, version string) error {
	versions, _ := t.releasesOf(line)
	err := fmt.Errorf("the line %s has no release %s", line, version)
	for _, v := range versions {
		if strings.TrimPrefix(v, "v") == strings.TrimPrefix(version, "v") {
			return withHint(err, "did you mean %s?", v)
		}
	}
	if len(versions) == 0 {
		return withHint(err, "it has none; a release is releases/%s/<version>.yaml", line)
	}
	near := nearReleases(version, versions)
	if parseVersion(version) == nil {
		return withHint(err, "it has %s", some(near))
	}
	return withHint(err, "it has %s; gitopsd release new %s %s --from %s makes it", some(near), line, shellWord(version), versions[0])
}
