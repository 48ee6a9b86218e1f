package schema

import (
	"fmt"
	"path"
	"strings"
)

// eachCondition calls back for every path of the conditions of a spec's hooks,
// with the keys that lead to it.
func eachCondition(spec map[string]any, visit func(keys []string, wanted string)) {
	hooks, _ := spec["hooks"].(map[string]any)
	for _, point := range sortedKeys(hooks) {
		named, _ := hooks[point].(map[string]any)
		for _, name := range sortedKeys(named) {
			hook, _ := named[name].(map[string]any)
			for i, wanted := range conditionPaths(hook) {
				visit([]string{"hooks", point, name, "if", "changed", itoa(i)}, wanted)
			}
		}
	}
}

func conditionPaths(hook map[string]any) []string {
	condition, _ := hook["if"].(map[string]any)
	list, _ := condition["changed"].([]any)
	paths := make([]string, len(list))
	for i, v := range list {
		paths[i], _ = v.(string)
	}
	return paths
}

// conditionValues are the paths that no update can ever change.
func conditionValues(hook map[string]any, at string) []finding {
	var found []finding
	for i, p := range conditionPaths(hook) {
		if p == "" || p == "/" { // no text, which the schema tells; whatever is changed
			continue
		}
		if rule, msg, hint := devicePath(p, false); msg != "" {
			found = append(found, finding{pointer: at + "/if/changed/" + itoa(i), rule: rule, msg: msg, hint: hint})
		}
	}
	return found
}

// conditionFindings tell for every path of a condition whether the merged spec
// of a device has something there that can change. What none of the devices
// has is worth a warning, and only that: a release may well restart with a
// condition what a part of its devices gets by an overlay. See [pass.met].
func conditionFindings(spec map[string]any, at string) []finding {
	var found []finding
	eachCondition(spec, func(keys []string, wanted string) {
		f := finding{pointer: at + joinPointer(keys...), rule: ruleConditionMet, warning: true}
		if !canChange(spec, wanted) {
			f.rule = ruleCondition
			f.msg = fmt.Sprintf("the spec has nothing at or below %s, whose change the hook %s waits for", quote(wanted), quote(keys[2]))
			f.hint = "look for a slip in the path; if only the removal of a former file matters, this is right"
		}
		found = append(found, f)
	})
	return found
}

// canChange says whether a spec has something at a path or below it.
func canChange(spec map[string]any, p string) bool {
	for _, group := range []string{"files", "directories"} {
		entries, _ := spec[group].(map[string]any)
		for have := range entries {
			if liesWithin(have, p) {
				return true
			}
		}
	}
	for _, made := range []struct{ field, folder string }{
		{"units", path.Clean(unitFolder)}, {"applications", quadletRoot},
		{"applications", path.Clean(composeFolder)},
	} {
		if entries, _ := spec[made.field].(map[string]any); len(entries) > 0 && (liesWithin(p, made.folder) || liesWithin(made.folder, p)) {
			return true
		}
	}
	return false
}

func liesWithin(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, path.Clean(folder)+"/")
}
