package schema

import (
	"fmt"
	"slices"
	"strings"
)

// unitFolder is where the files of a spec's units are.
const unitFolder = "/etc/systemd/system/"

// unitFindings are the values that no systemd could do anything with.
func unitFindings(spec map[string]any, at string) []finding {
	var found []finding
	units, _ := spec["units"].(map[string]any)
	for _, name := range sortedKeys(units) {
		unit, isUnit := units[name].(map[string]any)
		if !isUnit {
			continue // null takes it away, whatever it is called
		}
		here := at + "/units/" + escapePointer(name)
		if msg, hint := unitNameProblem(name); msg != "" {
			found = append(found, finding{pointer: here, rule: ruleUnitName, atKey: true, msg: msg, hint: hint})
			continue
		}
		if why, hint := unitProtected(name, unit); why != "" {
			found = append(found, finding{pointer: here, rule: ruleUnitProtected, atKey: true, msg: fmt.Sprintf("%s is protected: %s", name, why), hint: hint})
		}
		dropIns, _ := unit["dropIns"].(map[string]any)
		for _, d := range sortedKeys(dropIns) {
			switch bare, isFile := strings.CutSuffix(d, ".conf"); {
			case dropIns[d] == nil:
			case isFile:
				found = append(found, finding{pointer: here + "/dropIns/" + escapePointer(d), rule: ruleUnitName, atKey: true,
					msg: fmt.Sprintf("the drop-in %s is named without .conf", quote(d)), hint: "write it as " + clip(bare)})
			case !dropInForm.MatchString(d):
				found = append(found, finding{pointer: here + "/dropIns/" + escapePointer(d), rule: ruleUnitName, atKey: true,
					msg: fmt.Sprintf("%s is no name for a drop-in", quote(d)), hint: "letters, digits and _.- are allowed"})
			}
		}
	}
	files, _ := spec["files"].(map[string]any)
	for _, p := range sortedKeys(files) {
		file, _ := files[p].(map[string]any)
		for _, field := range []string{"restart", "reload"} {
			names, _ := file[field].([]any)
			for i, v := range names {
				if name, ok := v.(string); ok {
					found = append(found, changeFindings(name, field, at+"/files/"+escapePointer(p)+"/"+field+"/"+itoa(i))...)
				}
			}
		}
	}
	return found
}

// changeFindings are those of a unit that a changed file restarts or reloads.
func changeFindings(name, field, at string) []finding {
	if msg, hint := unitNameProblem(name); msg != "" {
		return []finding{{pointer: at, rule: ruleUnitName, msg: msg, hint: hint}}
	}
	if isUnitTemplate(name) || strings.HasSuffix(name, ".slice") {
		return []finding{{pointer: at, rule: ruleUnitName, msg: fmt.Sprintf("%s cannot %s: it never runs itself", name, field), hint: "name each of the units that do"}}
	}
	if !MayRestart(name) {
		return []finding{{pointer: at, rule: ruleUnitProtected, msg: fmt.Sprintf("%s is protected: the device cannot do without it, not even for a moment", name)}}
	}
	return nil
}

// completeUnitFindings are those of a whole, merged spec: parts that cannot be
// had together.
func completeUnitFindings(spec map[string]any, at string) []finding {
	var found []finding
	units, _ := spec["units"].(map[string]any)
	files, _ := spec["files"].(map[string]any)
	directories, _ := spec["directories"].(map[string]any)
	for _, name := range sortedKeys(units) {
		unit, _ := units[name].(map[string]any)
		here := at + "/units/" + escapePointer(name)
		find := func(field, msg, hint string) {
			found = append(found, finding{pointer: here + field, rule: ruleUnitState, atKey: true, msg: msg, hint: hint})
		}
		masked := unit["state"] == UnitMasked
		switch {
		case masked && hasContent(unit):
			find("/state", name+" is masked, which takes the place of its file, and has content too", "remove one of them")
		case masked && unit["enabled"] == true:
			find("/enabled", name+" is masked, so that it cannot start with the device", "remove enabled or state")
		case isUnitTemplate(name) && unit["state"] != nil && !masked:
			find("/state", name+" is a template, which never runs itself", "give the state to an instance, such as "+strings.Replace(name, "@.", "@a.", 1))
		case strings.HasSuffix(name, ".slice") && unit["state"] == UnitStarted:
			find("/state", name+" is a slice, which comes and goes with what is in it", "remove state")
		}
		paths := map[string]string{} // by where its content stands
		if hasContent(unit) {
			paths[""] = unitFolder + name
		}
		dropIns, _ := unit["dropIns"].(map[string]any)
		for _, d := range sortedKeys(dropIns) {
			dropIn, _ := dropIns[d].(map[string]any)
			where := "/dropIns/" + escapePointer(d)
			if !hasContent(dropIn) {
				found = append(found, finding{pointer: here + where, rule: ruleContent, atKey: true,
					msg: fmt.Sprintf("the drop-in %s of %s has no content", quote(d), name), hint: "set content, contentBase64 or source"})
			}
			paths[where] = unitFolder + name + ".d/" + d + ".conf"
		}
		for _, where := range sortedKeys(paths) {
			p := paths[where]
			for _, group := range []map[string]any{files, directories} {
				if group[p] != nil {
					found = append(found, finding{pointer: here + where, rule: rulePathClash, atKey: true,
						msg: fmt.Sprintf("%s is made twice: the spec names that path too", quote(p)), hint: "keep it under units"})
				}
			}
		}
	}
	return found
}

// hasContent says whether one of the fields is set that give content.
func hasContent(entry map[string]any) bool {
	return slices.ContainsFunc(contentFields, func(f string) bool { return entry[f] != nil }) || entry["payload"] != nil
}

// enabledFindings are units of a whole spec that cannot be enabled, because no
// text of theirs says what starts them. What templates fill in, the device finds.
func (p *pass) enabledFindings(spec map[string]any) ([]finding, error) {
	var found []finding
	units, _ := spec["units"].(map[string]any)
	for _, name := range sortedKeys(units) {
		unit := mapOf(units[name])
		if unit["enabled"] != true || !hasContent(unit) {
			continue
		}
		installs, err := p.mayInstall(units, name)
		if err != nil {
			return nil, err
		}
		if !installs {
			found = append(found, finding{pointer: "/units/" + escapePointer(name) + "/enabled", rule: ruleUnitState, atKey: true,
				msg: name + " cannot be enabled: no [Install] section of it says what starts it", hint: "add [Install] with WantedBy=multi-user.target, or remove enabled"})
		}
	}
	return found, nil
}

// mayInstall says whether a text of a unit or of its template asks for links, as
// far as it is known here.
func (p *pass) mayInstall(units map[string]any, name string) (bool, error) {
	var entries []map[string]any
	for _, of := range []string{name, unitTemplateOf(name)} {
		unit := mapOf(units[of])
		entries = append(entries, unit)
		for _, dropIn := range mapOf(unit["dropIns"]) {
			entries = append(entries, mapOf(dropIn))
		}
	}
	for _, entry := range entries {
		if !hasContent(entry) {
			continue
		}
		text, err := p.textOf(entry)
		if err != nil {
			return false, err
		}
		if entry["template"] == true || text == nil || len(text) > maxTemplate || installs(string(text)) {
			return true, nil
		}
	}
	return false, nil
}

// installKeys ask for links in an [Install] section.
var installKeys = []string{"WantedBy", "RequiredBy", "UpheldBy", "Alias"}

func installs(text string) bool {
	for l := range unitLines(text, true) {
		if l.section == "Install" && l.value != "" && slices.Contains(installKeys, l.key) {
			return true
		}
	}
	return false
}
