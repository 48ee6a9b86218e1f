package schema

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxUnitName is the longest name of a unit, in bytes; UNIT_NAME_MAX of
// systemd with its final NUL.
const maxUnitName = 255

var (
	// unitTypes are those that have files. Devices and scopes have none.
	unitTypes = []string{".service", ".socket", ".timer", ".path", ".target", ".mount", ".automount", ".swap", ".slice"}
	// unitForm is what systemd takes as a name, before its type; what follows
	// the first @ is the instance.
	unitForm   = regexp.MustCompile(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\@-]*)?$`)
	dropInForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$`)
)

// unitNameProblem says what is wrong with the name of a unit.
func unitNameProblem(name string) (msg, hint string) {
	kind := path.Ext(name)
	switch {
	case len(name) > maxUnitName:
		return fmt.Sprintf("the unit name has more than %d bytes", maxUnitName), ""
	case strings.Contains(name, "/"):
		return fmt.Sprintf("%s is a path, no unit name", quote(name)), "name the unit alone, such as edge.service"
	case kind == "":
		return fmt.Sprintf("%s is no unit name: it has no type", quote(name)), "add it, such as in " + clip(name) + ".service"
	case !slices.Contains(unitTypes, kind):
		return fmt.Sprintf("%s is no unit name: %s is no type of unit that has a file", quote(name), quote(kind[1:])), "the types are " + unitTypeWords()
	case !unitForm.MatchString(strings.TrimSuffix(name, kind)):
		return fmt.Sprintf("%s is no unit name", quote(name)), `letters, digits and :_.\- are allowed, and one @ before the instance`
	}
	return "", ""
}

func unitTypeWords() string {
	return strings.ReplaceAll(strings.Join(unitTypes, ", "), ".", "")
}

// isUnitTemplate says whether a unit is only the pattern of its instances.
func isUnitTemplate(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, path.Ext(name)), "@")
}

// unitTemplateOf is the template of an instance, "" for any other name.
func unitTemplateOf(name string) string {
	prefix, instance, found := strings.Cut(name, "@")
	if kind := path.Ext(name); found && instance != kind {
		return prefix + "@" + kind
	}
	return ""
}

// UnitProblem says why no device can have a unit of a spec as it is, or "".
// Validation finds it first; an agent asks too, because nobody but itself keeps
// it from being stopped by what it was assigned.
func UnitProblem(name string, u *Unit) string {
	if msg, _ := unitNameProblem(name); msg != "" {
		return msg
	}
	if ownUnit(name) || (standingOf(name) != 0 && u != nil && (u.IsSet() || u.Enabled != nil || u.State != "")) {
		return "it is protected: the agent or the device stands on it"
	}
	if u == nil {
		return ""
	}
	for _, d := range sortedKeys(u.DropIns) {
		if !dropInForm.MatchString(d) {
			return fmt.Sprintf("%s is no name for a drop-in", quote(d))
		}
	}
	return ""
}

// UnitChangeProblem says why no changed file can restart or reload a unit, or
// "".
func UnitChangeProblem(name string) string {
	for _, f := range changeFindings(name, "restart", "") {
		return f.msg
	}
	return ""
}
