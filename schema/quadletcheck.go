package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// quadletNeeds are the types of files of which podman's generator makes nothing
// without a section of their own (podman-systemd.unit(5)), and the keys of which
// it wants one. That of a .kube file is judged with its document.
var quadletNeeds = map[string][]string{
	".container": {"Image", "Rootfs"}, ".image": {"Image"}, ".kube": nil, ".build": nil,
}

// quadletRefers are the keys that name other quadlet files, by the types of
// those, as often as they stand in a file.
var quadletRefers = []struct{ key, kind string }{{"Volume", ".volume"}, {"Network", ".network"}}

// containerRefers are those of a .container file of which the last one counts.
// No version of podman goes on without the file that they name.
var containerRefers = []struct{ key, kind string }{{"Pod", ".pod"}, {"Image", ".image"}, {"Image", ".build"}}

// quadletFindings are the quadlet files of a whole spec of which podman can make
// no unit. What templates fill in, and what is only a matter of the version of
// podman, the device finds.
func (p *pass) quadletFindings(spec map[string]any) ([]finding, error) {
	var found []finding
	applications, _ := spec["applications"].(map[string]any)
	made := map[string]string{} // the application of each file
	for name, app := range applications {
		for file := range mapOf(mapOf(app)["quadlet"]) {
			made[file] = name
		}
	}
	used := map[string]bool{} // applications with a file that another one names
	sure := true              // used is all of them
	for _, name := range sortedKeys(applications) {
		quadlets := mapOf(mapOf(applications[name])["quadlet"])
		for _, file := range sortedKeys(quadlets) {
			if !IsQuadlet(file) {
				continue
			}
			texts, known, err := p.quadletTexts(quadlets, file)
			if err != nil {
				return nil, err
			}
			if sure = sure && known; !known {
				continue
			}
			at := "/applications/" + escapePointer(name) + "/quadlet/" + escapePointer(file)
			found = append(found, quadletFileFindings(file, texts, at)...)
			for _, r := range refersOf(file, texts) {
				if maker, isMade := made[r.file]; !isMade {
					found = append(found, r.missing(file, at, sortedKeys(made)))
				} else if maker != name {
					used[maker] = true
				}
			}
		}
	}
	for _, name := range sortedKeys(applications) {
		quadlets := mapOf(mapOf(applications[name])["quadlet"])
		runs := func(file string) bool { return slices.Contains(quadletsThatRun, path.Ext(file)) }
		if len(quadlets) > 0 && sure && !used[name] && !slices.ContainsFunc(sortedKeys(quadlets), runs) {
			found = append(found, finding{pointer: "/applications/" + escapePointer(name), rule: ruleNothingRuns, warning: true, atKey: true,
				msg: fmt.Sprintf("nothing of the application %s runs, and no other one names its files", quote(name)), hint: "add a .container, a .pod or a .kube file"})
		}
	}
	return found, nil
}

// quadletsThatRun are the types of quadlet files of which something runs.
var quadletsThatRun = []string{".container", ".pod", ".kube"}

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
	needs, isNeeded := quadletNeeds[path.Ext(file)]
	set := func(key string) bool { return lastValue(texts, section, key) != "" }
	switch unit := QuadletUnit(file, texts...); {
	case ownUnit(unit) || standingOf(unit) != 0:
		one.rule = ruleUnitProtected
		one.msg, one.hint = fmt.Sprintf("%s is protected: %s would take its place", unit, quote(file)), "give it another ServiceName="
	case isNeeded && !slices.Contains(iniSections(texts), section):
		one.msg = fmt.Sprintf("%s has no section [%s], and podman makes no unit of it", quote(file), section)
		one.hint = fmt.Sprintf("begin it with a line [%s]", section)
	case len(needs) > 0 && !slices.ContainsFunc(needs, set):
		one.msg = fmt.Sprintf("%s names no image: its section [%s] has no %s=", quote(file), section, strings.Join(needs, "= and no "))
		one.hint = "name one, such as Image=registry.example.com/web:1.4"
	default:
		return nil
	}
	return []finding{one}
}

// refer is a quadlet file that another one names.
type refer struct {
	file     string
	isNeeded bool
}

func refersOf(file string, texts [][]byte) []refer {
	var all []refer
	section := quadletSection(file)
	add := func(value, kind string, isNeeded bool) {
		other, _, _ := strings.Cut(value, ":")
		if path.Ext(other) == kind && !strings.ContainsAny(other, "/%$") {
			all = append(all, refer{other, isNeeded})
		}
	}
	for _, r := range quadletRefers {
		for _, v := range allValues(texts, section, r.key) {
			add(v, r.kind, false)
		}
	}
	if path.Ext(file) == ".container" {
		for _, r := range containerRefers {
			add(lastValue(texts, section, r.key), r.kind, true)
		}
	}
	return all
}

// missing tells of a file that no application has. The agent shows podman only
// those of applications; older versions of podman take a volume or a network
// that the device has already.
func (r refer) missing(file, at string, made []string) finding {
	f := finding{pointer: at, rule: ruleQuadletContent, atKey: true, hint: "add that file to the application",
		msg: fmt.Sprintf("%s names %s, which no application of the spec has", quote(file), quote(r.file))}
	if !r.isNeeded {
		f.rule, f.warning = ruleQuadletMissing, true
		f.hint += ", or leave it if the device has it already"
	}
	if near := misspelled(r.file, made); near != "" && path.Ext(near) == path.Ext(r.file) {
		f.hint = "did you mean " + near + "?"
	}
	return f
}
