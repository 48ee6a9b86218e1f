package schema

import (
	"fmt"
	"strings"
)

// applicationSet is what the applications of one merged spec have together:
// the unit of each file, and no place twice.
type applicationSet struct {
	at     string
	files  map[string]any
	placed map[string]string // those of files that are a unit's file, by the unit
	units  map[string]any
	makers map[string]string // of each unit
	found  []finding
}

// wholeApplications checks what only merged applications have to have.
func wholeApplications(spec map[string]any, at string) []finding {
	applications, _ := spec["applications"].(map[string]any)
	if len(applications) == 0 {
		return nil
	}
	s := &applicationSet{at: at, makers: map[string]string{}, placed: map[string]string{}}
	s.files, _ = spec["files"].(map[string]any)
	for _, p := range sortedKeys(s.files) {
		if unit := UnitOfFile(p); unit != "" && s.files[p] != nil {
			s.placed[unit] = p
		}
	}
	s.units, _ = spec["units"].(map[string]any)
	for _, name := range sortedKeys(applications) {
		app, _ := applications[name].(map[string]any)
		s.application(name, app, at+"/applications/"+escapePointer(name))
	}
	return s.found
}

func (s *applicationSet) add(f finding) { s.found = append(s.found, f) }

func (s *applicationSet) application(name string, app map[string]any, here string) {
	quadlets, _ := app["quadlet"].(map[string]any)
	compose, _ := app["compose"].(map[string]any)
	folder, _ := app["folder"].(string)
	if why := quadletFolderProblem(name, folder); why != "" && len(quadlets) > 0 {
		s.add(finding{pointer: here, rule: ruleApplication, atKey: true, msg: why, hint: "choose another name, or another folder"})
	}
	switch {
	case len(quadlets) > 0 && len(compose) > 0:
		s.add(finding{pointer: here + "/compose", rule: ruleApplication, atKey: true,
			msg: fmt.Sprintf("the application %s is made of quadlet and of compose", quote(name)), hint: "keep one of them, and set the other to null"})
	case len(quadlets) == 0 && len(compose) == 0:
		s.add(finding{pointer: here, rule: ruleApplication, atKey: true,
			msg: fmt.Sprintf("the application %s has nothing to run", quote(name)), hint: "set quadlet or compose, or null to remove the application"})
	}
	for _, file := range sortedKeys(quadlets) {
		entry, _ := quadlets[file].(map[string]any)
		place := here + "/quadlet/" + escapePointer(file)
		if !hasContent(entry) {
			s.add(finding{pointer: place, rule: ruleContent, atKey: true,
				msg: fmt.Sprintf("the quadlet file %s has no content", quote(file)), hint: "set content, contentBase64 or source"})
		}
		if of, isDropIn := QuadletOf(file); !isDropIn {
			text, _ := entry["content"].(string) // what a template or a payload says, the device knows
			unit, maker := QuadletUnit(file, []byte(text)), fmt.Sprintf("%s of the application %s", quote(file), quote(name))
			s.unit(unit, place, maker, "rename one of the files")
			if p := s.placed[unit]; p != "" { // systemd would take that one
				s.add(finding{pointer: s.at + "/files/" + escapePointer(p), rule: ruleQuadletClash, atKey: true,
					msg: fmt.Sprintf("the unit %s is made by %s too", unit, maker), hint: "rename one of them, or write a drop-in"})
			}
		} else if quadlets[of] == nil {
			s.add(finding{pointer: place, rule: ruleQuadletFile, atKey: true,
				msg: fmt.Sprintf("the drop-in %s has no quadlet file %s beside it", quote(file), quote(of)), hint: "remove it too, or put it into the application that has the file"})
		}
		s.path(QuadletFolder(name, folder)+"/"+file, name)
	}
	if len(compose) > 0 {
		if folder != "" {
			s.add(finding{pointer: here + "/folder", rule: ruleApplication, atKey: true,
				msg: fmt.Sprintf("the application %s has a folder for quadlets and is made of compose", quote(name)), hint: "remove folder"})
		}
		s.compose(name, compose, here+"/compose")
	}
	health, _ := app["health"].(map[string]any)
	var set []string
	for _, check := range healthChecks {
		if health[check] != nil {
			set = append(set, check)
		}
	}
	if len(set) > 1 {
		s.add(finding{pointer: here + "/health/" + set[1], rule: ruleHealth, atKey: true,
			msg: fmt.Sprintf("the health of an application is one check, not %s", strings.Join(set, " and ")), hint: "keep one of them, and set the others to null"})
	}
}

func (s *applicationSet) compose(name string, compose map[string]any, place string) {
	if !hasContent(compose) {
		s.add(finding{pointer: place, rule: ruleContent, atKey: true,
			msg: fmt.Sprintf("the application %s has no compose file", quote(name)), hint: "set content, contentBase64 or source"})
	}
	if envFile, _ := compose["envFile"].(map[string]any); envFile != nil {
		if !hasContent(envFile) {
			s.add(finding{pointer: place + "/envFile", rule: ruleContent, atKey: true,
				msg: "the file of variables has no content", hint: "set content, contentBase64 or source"})
		}
		if env, _ := compose["env"].(map[string]any); len(env) > 0 {
			s.add(finding{pointer: place + "/envFile", rule: ruleComposeEnv, atKey: true,
				msg: fmt.Sprintf("the variables of the application %s are in env and in envFile", quote(name)), hint: "keep one of them, and set the other to null"})
		}
	}
	s.unit(ComposeUnit(name), place, "the application "+quote(name), "rename the application or the file")
	for _, p := range ComposePaths(name) {
		s.path(p, name)
	}
	boot, _ := s.units["multi-user.target"].(map[string]any)
	if dropIns, _ := boot["dropIns"].(map[string]any); dropIns["compose-"+name] != nil {
		s.add(finding{pointer: s.at + "/units/multi-user.target/dropIns/compose-" + name, rule: rulePathClash, atKey: true,
			msg: fmt.Sprintf("%s is a file of the application %s too", quote(ComposeBoot(name)), quote(name)), hint: "rename it"})
	}
}

// unit notes that an application makes a unit.
func (s *applicationSet) unit(unit, place, maker, hint string) {
	if other, taken := s.makers[unit]; taken {
		s.add(finding{pointer: place, rule: ruleQuadletClash, atKey: true,
			msg: fmt.Sprintf("the unit %s is made by %s too", unit, other), hint: hint})
	}
	if own, _ := s.units[unit].(map[string]any); own != nil {
		s.made(unit, own, maker)
	}
	s.makers[unit] = maker
}

// path notes that an application writes a file.
func (s *applicationSet) path(p, name string) {
	if s.files[p] != nil {
		s.add(finding{pointer: s.at + "/files/" + escapePointer(p), rule: rulePathClash, atKey: true,
			msg: fmt.Sprintf("%s is a file of the application %s too", quote(p), quote(name)), hint: "remove one of them"})
	}
}

// made is for a unit of the spec that an application makes too: that starts it
// and judges it, and only drop-ins can be added.
func (s *applicationSet) made(name string, unit map[string]any, maker string) {
	here := s.at + "/units/" + escapePointer(name)
	if hasContent(unit) {
		s.add(finding{pointer: here, rule: ruleQuadletClash, atKey: true,
			msg: fmt.Sprintf("the unit %s is made by %s too", name, maker), hint: "rename one of them, or leave its content out"})
	}
	for _, field := range []string{"enabled", "state"} {
		if unit[field] != nil {
			s.add(finding{pointer: here + "/" + field, rule: ruleUnitState, atKey: true,
				msg: fmt.Sprintf("the unit %s is made by %s, which is started with the application", name, maker), hint: "leave it out; an [Install] section in the quadlet file starts it with the device"})
		}
	}
}
