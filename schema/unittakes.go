package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// unitRelation is a key by which one unit has something done to others.
type unitRelation struct {
	does string // what the key does to each that it names
	hint string
	// spares says whether a unit may be named all the same, though the device
	// stands on it.
	spares func(standing) bool
}

func sparesAllButNeeded(st standing) bool { return st != needed }
func sparesNone(standing) bool            { return false }

// unitRelations are those that stop, replace or disable units, or have them fail
// (systemd.unit(5), systemd.socket(5)), by section and key. What a unit's own
// programs do, nobody can tell.
var unitRelations = map[string]unitRelation{
	"Unit Conflicts":        {"stops it", "remove it", sparesAllButNeeded},
	"Unit PropagatesStopTo": {"stops it", "remove it", sparesAllButNeeded},
	"Install Alias":         {"takes its place", "choose another name", sparesNone},
	"Install Also":          {"disables it together with this unit", "remove it", sparesAllButNeeded},
	"Install RequiredBy":    {"has it stop and fail with this unit", "write WantedBy= instead", sparesAllButNeeded},
	"Socket Service":        {"stops it while the socket starts", "name a service of your own", sparesAllButNeeded},
}

// maxTaken bounds what one text answers with.
const maxTaken = 5

// takenUnits are the lines of a text that take away from the device a unit that
// it or the agent stands on.
func takenUnits(form textForm, text string) []unitSlip {
	var slips []unitSlip
	for l := range unitLines(text, form.isUnit()) {
		relation, known := unitRelations[l.section+" "+l.key]
		if !l.isKey || !known {
			continue
		}
		for name := range strings.FieldsSeq(unquote.Replace(l.value)) {
			if st := standingOf(name); !ownUnit(name) && (st == 0 || relation.spares(st)) {
				continue
			}
			slips = append(slips, unitSlip{line: l.number, rule: ruleUnitProtected, hint: relation.hint,
				msg: fmt.Sprintf("%s is protected: %s= %s", clip(name), l.key, relation.does)})
		}
		if len(slips) >= maxTaken {
			return slips[:maxTaken]
		}
	}
	return slips
}

// unquote leaves what systemd reads of a word in quotes.
var unquote = strings.NewReplacer(`"`, "", "'", "")

// fileFormOf is the form of a text by its path on the device; ok = systemd reads
// it as a unit or a drop-in, or podman as a quadlet file or a drop-in.
func fileFormOf(p string) (form textForm, ok bool) {
	if below, isQuadlet := strings.CutPrefix(p, quadletRoot+"/"); isQuadlet {
		form.name = path.Base(below)
		if of, isDropIn := QuadletOf(path.Base(path.Dir(below)) + "/" + form.name); isDropIn {
			form.name, form.isDropIn = of, true
		}
		return form, IsQuadlet(form.name)
	}
	folder := systemdFolder.FindString(p)
	if folder == "" {
		return form, false
	}
	name, dropIn, nested := strings.Cut(p[len(folder):], "/")
	if form.name = name; nested {
		form.name, form.isDropIn = strings.CutSuffix(name, ".d")
		if !form.isDropIn || path.Ext(dropIn) != ".conf" {
			return form, false
		}
		if slices.Contains(unitTypes, "."+form.name) { // it is of all units of that type
			form.name = "." + form.name
		}
	}
	return form, slices.Contains(unitTypes, path.Ext(form.name))
}

// UnitTextProblem says why no device can have a text at a path, because it would
// stop or replace what the agent or the device stands on, or "". Validation finds
// it first; an agent asks too, before it changes anything.
func UnitTextProblem(p string, text []byte) string {
	form, ok := fileFormOf(p)
	if !ok {
		return ""
	}
	for _, s := range takenUnits(form, string(text)) {
		return fmt.Sprintf("line %d: %s", s.line, s.msg)
	}
	return ""
}
