package schema

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The folders of a fleet repository.
const (
	dirPolicies = "policies"
	dirReleases = "releases"
	dirOverlays = "overlays"
	dirDevices  = "devices"
	dirPayloads = "files" // also the name of payload folders beside documents
	fleetName   = "fleet"
	brakeName   = "brake"
	extension   = ".yaml"
	releaseFile = "release.yaml"
)

// placed says what a path of a fleet repository is.
type placed struct {
	kind Kind   // "" = no document
	name string // that the document must have: its file name
	line string // of a release
	rule string // "" = in its right place
	msg  string
	hint string
}

// place finds out what a path is, by its name alone.
func place(p string) placed {
	top, rest, below := strings.Cut(p, "/")
	if !below {
		return placeRoot(top)
	}
	if msg := hostilePath(p); msg != "" && isFleetFolder(top) {
		return placed{rule: rulePath, msg: msg, hint: "rename it"}
	}
	switch top {
	case dirPolicies:
		return placeFlat(rest)
	case dirReleases:
		return placeRelease(rest)
	case dirOverlays:
		return placeNested(rest, KindOverlay)
	case dirDevices:
		return placeNested(rest, KindDevice)
	case dirPayloads:
		return placed{}
	}
	if near := Nearest(top, []string{dirPolicies, dirReleases, dirOverlays, dirDevices}); near != "" && isDocumentName(path.Base(p)) {
		return placed{rule: ruleMisplaced, msg: fmt.Sprintf("nothing is read from the folder %s", quote(top)), hint: fmt.Sprintf("did you mean %s/?", near)}
	}
	return placed{}
}

// placeRoot knows the one document at the root, and what could be taken for it.
func placeRoot(base string) placed {
	if !isDocumentName(base) {
		return placed{}
	}
	switch name := strings.ToLower(strings.TrimSuffix(base, path.Ext(base))); {
	case base == fleetName+extension:
		return placed{kind: KindFleet, name: fleetName}
	case name == fleetName:
		return placed{rule: ruleExtension, msg: "the document for the whole fleet is read from fleet.yaml", hint: "rename it to \"fleet.yaml\""}
	case name == brakeName:
		return placed{rule: ruleMisplaced, msg: "the brake is not read from this branch, so it would have no effect", hint: "push it as brake.yaml to the branch gitopsd/brake"}
	}
	return placed{}
}

// homeOf says where documents of a kind are read from; "" = not from here.
func homeOf(kind Kind) string {
	dir := map[Kind]string{KindPolicy: dirPolicies, KindRelease: dirReleases, KindOverlay: dirOverlays, KindDevice: dirDevices}[kind]
	switch {
	case dir != "":
		return fmt.Sprintf("documents of the kind %s lie below %s/", kind, dir)
	case kind == KindFleet:
		return "the document of the kind Fleet is fleet.yaml"
	}
	return ""
}

func isFleetFolder(top string) bool {
	return top == dirPolicies || top == dirReleases || top == dirOverlays || top == dirDevices || top == dirPayloads
}

func placeFlat(rest string) placed {
	if strings.Contains(rest, "/") {
		if isDocumentName(path.Base(rest)) {
			return placed{rule: ruleMisplaced, msg: "a policy lies directly in policies/", hint: "move it up"}
		}
		return placed{}
	}
	return asDocument(KindPolicy, rest)
}

func placeRelease(rest string) placed {
	parts := strings.Split(rest, "/")
	switch {
	case len(parts) == 1:
		if isDocumentName(parts[0]) {
			return placed{rule: ruleMisplaced, msg: "a release lies in the folder of its line, as releases/<line>/<version>.yaml", hint: "move it there"}
		}
		return placed{}
	case len(parts) == 2:
		d := asDocument(KindRelease, parts[1])
		d.line = parts[0]
		return d
	case len(parts) == 3 && strings.TrimSuffix(parts[2], path.Ext(parts[2])) == "release":
		d := asDocument(KindRelease, parts[2])
		d.line, d.name = parts[0], parts[1]
		return d
	}
	return placed{} // payloads of a release
}

func placeNested(rest string, kind Kind) placed {
	folders := strings.Split(rest, "/")
	for _, f := range folders[:len(folders)-1] {
		if f == dirPayloads {
			return placed{}
		}
	}
	return asDocument(kind, folders[len(folders)-1])
}

// asDocument takes a file name for a document, or says why it is none.
func asDocument(kind Kind, base string) placed {
	if name, ok := strings.CutSuffix(base, extension); ok {
		return placed{kind: kind, name: name}
	}
	if isDocumentName(base) {
		return placed{rule: ruleExtension, msg: fmt.Sprintf("only %s files are read here", extension),
			hint: "rename it to " + quote(strings.TrimSuffix(base, path.Ext(base))+extension)}
	}
	if base == "README" || strings.HasSuffix(base, ".md") || strings.HasPrefix(base, ".") {
		return placed{}
	}
	return placed{rule: ruleStrayFile, msg: "this is no document, and no document names it as source",
		hint: "remove it, or move it into a folder named files"}
}

// isDocumentName says whether somebody probably meant a document.
func isDocumentName(base string) bool {
	switch strings.ToLower(path.Ext(base)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// hostilePath says what is wrong with a path as such. A tree of git can hold
// any bytes; these would end up in refs, messages and on devices.
func hostilePath(p string) string {
	switch {
	case len(p) > maxPath:
		return fmt.Sprintf("the path has more than %d bytes", maxPath)
	case !utf8.ValidString(p):
		return "the path is not UTF-8"
	case strings.Contains(p, `\`):
		return "the path holds a backslash"
	case strings.IndexFunc(p, func(c rune) bool { return unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp) }) >= 0:
		return "the path holds a control character"
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return fmt.Sprintf("the path holds the part %q", part)
		case strings.EqualFold(part, ".git"):
			return "the path leads into .git"
		}
	}
	return ""
}

// maxPath is the longest path in bytes; PATH_MAX of Linux.
const maxPath = 4096

// idForm is a DNS label (RFC 1123); a git ref may end in it as it is.
var idForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

const idHint = "lower-case letters, digits and dashes, at most 63, with a letter or digit at both ends"
