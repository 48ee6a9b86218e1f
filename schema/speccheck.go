package schema

import (
	"encoding/base64"
	"fmt"
	"path"
	"reflect"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// protectedPaths are places on a device that a spec cannot manage: what the
// kernel makes, and the agent's own state, configuration and programs. What
// lies below them is protected too.
var (
	kernelPaths    = []string{"/proc", "/sys", "/dev"}
	agentPaths     = []string{"/run/gitopsd", "/var/lib/gitopsd", "/etc/gitopsd", "/usr/lib/gitopsd", "/usr/bin/gitopsd"}
	protectedPaths = slices.Concat(kernelPaths, agentPaths)
)

// valueFindings checks each value of a spec, or of a part of one, by itself.
func valueFindings(spec map[string]any, at string) []finding {
	var found []finding
	for _, group := range []string{"files", "directories"} {
		entries, _ := spec[group].(map[string]any)
		for _, p := range sortedKeys(entries) {
			here := at + "/" + group + "/" + escapePointer(p)
			if rule, msg, hint := devicePath(p, group == "files"); msg != "" && entries[p] != nil {
				found = append(found, finding{pointer: here, rule: rule, msg: msg, hint: hint, atKey: true})
			}
		}
	}
	eachContent(spec, func(keys []string, entry map[string]any) {
		found = append(found, contentFindings(entry, at+joinPointer(keys...))...)
	})
	if os, _ := spec["os"].(map[string]any); os != nil {
		image, _ := os["image"].(string)
		if odd := oddRune(image); odd != "" {
			found = append(found, finding{pointer: at + "/os/image", rule: ruleForm, msg: fmt.Sprintf("the image %s holds %s", quote(image), odd)})
		}
	}
	found = append(found, typedFindings(spec, at)...)
	found = append(found, unitFindings(spec, at)...)
	found = append(found, hookFindings(spec, at)...)
	found = append(found, resourceFindings(spec, at)...)
	found = append(found, applicationFindings(spec, at)...)
	found = append(found, programFindings(spec, at)...)
	found = append(found, splitFindings(spec, at)...)
	if requires, _ := spec["requires"].(map[string]any); requires != nil {
		if v, _ := requires["minAgentVersion"].(string); v != "" && !isVersion(v) {
			found = append(found, finding{pointer: at + "/requires/minAgentVersion", rule: ruleVersion, msg: fmt.Sprintf("%s is no version", quote(v)), hint: versionHint})
		}
	}
	return found
}

// writtenFindings are those of a spec as people write it, where the image and
// the URL of the agent's program are templates and paths are none.
func writtenFindings(spec map[string]any, at string) []finding {
	found := valueFindings(spec, at)
	eachContent(spec, func(keys []string, entry map[string]any) {
		found = append(found, textFindings(keys, entry, at+joinPointer(keys...))...)
	})
	for _, always := range alwaysTemplates {
		if text, _ := valueAt(spec, always).(string); text != "" {
			if _, err := compileTemplate(text); err != nil {
				found = append(found, templateFinding(err, at+joinPointer(always...)))
			}
		}
	}
	for _, group := range []string{"files", "directories"} {
		entries, _ := spec[group].(map[string]any)
		for _, p := range sortedKeys(entries) {
			if strings.Contains(p, "{{") && entries[p] != nil {
				found = append(found, finding{pointer: at + "/" + group + "/" + escapePointer(p), rule: ruleTemplatePath, atKey: true, warning: true,
					msg: fmt.Sprintf("the device path %s is no template; its braces stay as they stand", quote(p)), hint: "give each device or site its path in a part of its own"})
			}
		}
	}
	return found
}

// typedFindings are the values that have the form that a schema can ask for
// and still cannot be read: durations and sizes out of range.
func typedFindings(spec map[string]any, at string) []finding {
	if !hasTyped(spec) {
		return nil
	}
	var s Spec
	var f filler
	f.fill(reflect.ValueOf(&s).Elem(), spec, at)
	var found []finding
	for _, p := range f.problems {
		if !p.unknown {
			found = append(found, finding{pointer: p.pointer, rule: ruleForm, msg: p.err.Error()})
		}
	}
	for field, size := range quantitiesOf(s.Resources) {
		if _, err := ParseQuantity(size); err != nil {
			found = append(found, finding{pointer: at + "/resources/" + field, rule: ruleForm, msg: err.Error()})
		}
	}
	return found
}

// hasTyped says whether a spec holds more than files and directories: of
// those, a schema says all about the form of each value.
func hasTyped(spec map[string]any) bool {
	for group := range spec {
		if group != "files" && group != "directories" {
			return true
		}
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// devicePath says what is wrong with a path on the device.
func devicePath(p string, isFile bool) (rule, msg, hint string) {
	switch {
	case !strings.HasPrefix(p, "/"):
		return ruleDevicePath, fmt.Sprintf("the device path %s is not absolute", quote(p)), "begin it with /"
	case oddRune(p) != "":
		return ruleDevicePath, fmt.Sprintf("the device path %s holds %s", quote(p), oddRune(p)), "type it anew"
	case path.Clean(p) != p:
		return ruleDevicePath, fmt.Sprintf("the device path %s is not in its shortest form", quote(p)), "write it as " + quote(path.Clean(p))
	case len(p) >= maxPath:
		return ruleDevicePath, fmt.Sprintf("the device path has more than %d bytes", maxPath-1), ""
	case p == "/":
		return ruleProtected, "the root of a device cannot be managed", ""
	}
	for part := range strings.SplitSeq(p[1:], "/") {
		if len(part) > maxName {
			return ruleDevicePath, fmt.Sprintf("a part of the device path has more than %d bytes", maxName), ""
		}
	}
	for _, protected := range protectedPaths {
		if p == protected || strings.HasPrefix(p, protected+"/") {
			return ruleProtected, fmt.Sprintf("%s is protected: the agent manages nothing below %s", quote(p), protected), "choose another place"
		}
		if isFile && strings.HasPrefix(protected, p+"/") {
			return ruleProtected, fmt.Sprintf("%s cannot be a file: %s lies below it", quote(p), protected), "choose another place"
		}
	}
	if why, hint := unitFileProtected(p); why != "" {
		return ruleProtected, fmt.Sprintf("%s is protected: %s", quote(p), why), hint
	}
	return "", "", ""
}

// oddRune says what in a name nobody can see, or what makes it look like
// another one: control characters, and those that set the direction of text or
// join and divide it. "" = nothing.
func oddRune(s string) string {
	for _, c := range s {
		switch {
		case unicode.IsControl(c):
			return "a control character"
		case unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp):
			return fmt.Sprintf("the invisible character %U", c)
		}
	}
	return ""
}

// maxName is the longest part of a path in bytes; NAME_MAX of Linux.
const maxName = 255

// contentFindings are those of what has content, wherever it stands.
func contentFindings(file map[string]any, at string) []finding {
	var found []finding
	if set := contentsOf(file); len(set) > 1 {
		found = append(found, finding{pointer: at + "/" + set[1], rule: ruleContent, atKey: true,
			msg: fmt.Sprintf("it can have one content, not %s", strings.Join(set, " and ")), hint: "keep one of them"})
	}
	isTemplate := file["template"] == true
	if text, ok := file["content"].(string); ok && isTemplate {
		if _, err := compileTemplate(text); err != nil {
			found = append(found, templateFinding(err, at+"/content"))
		}
	}
	if encoded, ok := file["contentBase64"].(string); ok {
		data, err := decodeBase64(encoded)
		switch {
		case err != nil:
			found = append(found, finding{pointer: at + "/contentBase64", rule: ruleBase64, msg: "this is no base64: " + err.Error(), hint: "standard alphabet, with padding; line breaks are allowed"})
		case isTemplate:
			if _, err := compileTemplate(string(data)); err != nil {
				err.line = 0 // of the decoded text, which nobody sees
				found = append(found, templateFinding(err, at+"/contentBase64"))
			}
		}
	}
	return append(found, sealedFindings(file, at)...)
}

// contentsOf lists the contents that an entry has; one is what it should have.
func contentsOf(file map[string]any) []string {
	const most = 5
	set := make([]string, 0, most)
	for _, field := range contentFields {
		if file[field] != nil {
			set = append(set, field)
		}
	}
	if file["payload"] != nil {
		set = append(set, "payload")
	}
	return set
}

func decodeBase64(s string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(s)
}

func templateFinding(err *templateError, at string) finding {
	return finding{pointer: at, rule: err.rule, msg: "template: " + err.msg, hint: err.hint, line: err.line}
}

// completeFindings checks what only a whole, merged spec has to have.
func completeFindings(spec map[string]any, at string) []finding {
	var found []finding
	files, _ := spec["files"].(map[string]any)
	directories, _ := spec["directories"].(map[string]any)
	for _, p := range sortedKeys(files) {
		file, _ := files[p].(map[string]any)
		if len(contentsOf(file)) == 0 {
			found = append(found, finding{pointer: at + "/files/" + escapePointer(p), rule: ruleContent, atKey: true,
				msg: fmt.Sprintf("the file %s has no content", quote(p)), hint: "set content, contentBase64, source or secret"})
		}
		if file["template"] == true && file["secret"] != nil {
			found = append(found, sealedFindings(file, at+"/files/"+escapePointer(p))...)
		}
		if _, both := directories[p]; both {
			found = append(found, finding{pointer: at + "/files/" + escapePointer(p), rule: rulePathClash, atKey: true,
				msg: fmt.Sprintf("%s is both a file and a directory", quote(p)), hint: "remove one of them"})
		}
	}
	for _, group := range []map[string]any{files, directories} {
		for _, p := range sortedKeys(group) {
			for parent := path.Dir(p); len(parent) > 1; parent = path.Dir(parent) {
				if _, isFile := files[parent]; isFile {
					found = append(found, finding{pointer: at + "/files/" + escapePointer(parent), rule: rulePathClash, atKey: true,
						msg: fmt.Sprintf("%s is a file, but %s lies below it", quote(parent), quote(p)), hint: "remove one of them"})
				}
			}
		}
	}
	found = append(found, completeUnitFindings(spec, at)...)
	if os, ok := spec["os"].(map[string]any); ok && os["image"] == nil {
		found = append(found, finding{pointer: at + "/os", rule: ruleIncomplete, msg: "os has no image", hint: "set image"})
	}
	found = append(found, completeResources(spec, at)...)
	found = append(found, wholeApplications(spec, at)...)
	found = append(found, wholeProgram(spec, at)...)
	hooks, _ := spec["hooks"].(map[string]any)
	for _, point := range sortedKeys(hooks) {
		named, _ := hooks[point].(map[string]any)
		for _, name := range sortedKeys(named) {
			if hook, ok := named[name].(map[string]any); ok && hook["run"] == nil {
				found = append(found, finding{pointer: at + "/hooks/" + point + "/" + escapePointer(name), rule: ruleIncomplete, atKey: true,
					msg: fmt.Sprintf("the hook %s has nothing to run", quote(name)), hint: "set run, or null to remove the hook"})
			}
		}
	}
	return found
}
