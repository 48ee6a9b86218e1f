package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// quadletNeeds are the keys of which podman's generator wants one
// (podman-systemd.unit(5)). That of a .kube file is judged with its document.
var quadletNeeds = map[string][]string{".container": {"Image", "Rootfs"}, ".image": {"Image"}}

// quadletRefers are the keys that name other quadlet files, by the types of
// those.
var quadletRefers = map[string]string{"Volume": ".volume", "Network": ".network", "Pod": ".pod"}

// quadletFindings are the quadlet files of a whole spec of which podman can make
// no unit. What templates fill in, and what is only a matter of the version of
// podman, the device finds.
func (p *pass) quadletFindings(spec map[string]any) ([]finding, error) {
	var found []finding
	applications, _ := spec["applications"].(map[string]any)
	made := map[string]bool{}
	for _, app := range applications {
		quadlets, _ := mapOf(app)["quadlet"].(map[string]any)
		for file := range quadlets {
			made[file] = true
		}
	}
	for _, name := range sortedKeys(applications) {
		quadlets, _ := mapOf(applications[name])["quadlet"].(map[string]any)
		for _, file := range sortedKeys(quadlets) {
			if !IsQuadlet(file) {
				continue
			}
			texts, known, err := p.quadletTexts(quadlets, file)
			if err != nil {
				return nil, err
			}
			if !known {
				continue
			}
			at := "/applications/" + escapePointer(name) + "/quadlet/" + escapePointer(file)
			found = append(found, quadletFileFindings(file, texts, at)...)
			found = append(found, referFindings(file, texts, at, made)...)
		}
	}
	return found, nil
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// quadletTexts are those of a quadlet file and of its drop-ins; they are not
// known where a template fills one of them in.
func (p *pass) quadletTexts(quadlets map[string]any, file string) (texts [][]byte, known bool, err error) {
	for _, one := range append([]string{file}, dropInsOf(file, sortedKeys(quadlets))...) {
		entry := mapOf(quadlets[one])
		if entry["template"] == true {
			return nil, false, nil
		}
		text, err := p.textOf(entry)
		if err != nil {
			return nil, false, err
		}
		if text == nil { // a missing source has its own problem
			return nil, false, nil
		}
		texts = append(texts, text)
	}
	return texts, true, nil
}

func quadletFileFindings(file string, texts [][]byte, at string) []finding {
	section := quadletSection(file)
	one := finding{pointer: at, rule: ruleQuadletContent, atKey: true}
	sections := iniSections(texts)
	needs := quadletNeeds[path.Ext(file)]
	set := func(key string) bool { return lastValue(texts, section, key) != "" }
	switch {
	case !slices.Contains(sections, section):
		one.msg = fmt.Sprintf("%s has no section [%s], and podman makes no unit of it", quote(file), section)
		one.hint = fmt.Sprintf("begin it with a line [%s]", section)
		for _, s := range sections {
			if Nearest(s, []string{section}) != "" {
				one.hint = fmt.Sprintf("did you mean [%s] where it says %s?", section, quote("["+s+"]"))
			}
		}
	case len(needs) > 0 && !slices.ContainsFunc(needs, set):
		one.msg = fmt.Sprintf("%s names no image: its section [%s] has no %s=", quote(file), section, strings.Join(needs, "= and no "))
		one.hint = "name one, such as Image=registry.example.com/web:1.4"
	default:
		return nil
	}
	return []finding{one}
}

// referFindings tell of other quadlet files that a file names and no application
// of the spec has: the device may have them, or not.
func referFindings(file string, texts [][]byte, at string, made map[string]bool) []finding {
	var found []finding
	for _, key := range sortedKeys(quadletRefers) {
		for _, text := range texts {
			for _, v := range iniValues(string(text), quadletSection(file), key) {
				other, _, _ := strings.Cut(v, ":")
				if path.Ext(other) != quadletRefers[key] || made[other] || strings.ContainsAny(other, "/%$") {
					continue
				}
				found = append(found, finding{pointer: at, rule: ruleQuadletMissing, warning: true, atKey: true,
					msg:  fmt.Sprintf("%s names %s, which no application of the spec has", quote(file), quote(other)),
					hint: "add that file to the application, or leave it if the device has it already"})
			}
		}
	}
	return found
}

// iniSections are the names of a file's sections, in their order.
func iniSections(texts [][]byte) []string {
	var names []string
	for _, text := range texts {
		for _, line := range iniLines(string(text)) {
			if name, ok := strings.CutPrefix(line, "["); ok {
				names = append(names, strings.TrimSuffix(name, "]"))
			}
		}
	}
	return names
}
