package schema

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// ownVariables is how the variables begin that the agent sets for hooks.
const ownVariables = "GITOPSD_"

// hookFindings are the values with which no hook can be started, on whatever
// device: it would be found there only after the files were changed.
func hookFindings(spec map[string]any, at string) []finding {
	var found []finding
	hooks, _ := spec["hooks"].(map[string]any)
	for _, point := range sortedKeys(hooks) {
		named, _ := hooks[point].(map[string]any)
		for _, name := range sortedKeys(named) {
			hook, _ := named[name].(map[string]any)
			found = append(found, hookValues(hook, at+"/hooks/"+point+"/"+escapePointer(name))...)
		}
	}
	return found
}

func hookValues(hook map[string]any, at string) []finding {
	var found []finding
	add := func(where, msg, hint string) {
		found = append(found, finding{pointer: at + where, rule: ruleHook, msg: msg, hint: hint})
	}
	run, _ := hook["run"].([]any)
	for i, v := range run {
		switch word, isText := v.(string); {
		case !isText:
		case i == 0 && word == "":
			add("/run/0", "the hook names no program", "begin run with the program's path")
		case strings.ContainsRune(word, 0):
			add("/run/"+itoa(i), fmt.Sprintf("the argument %s holds a NUL, and no program can be given one", quote(word)), "")
		}
	}
	env, _ := hook["env"].(map[string]any)
	for _, k := range sortedKeys(env) {
		switch v, _ := env[k].(string); {
		case env[k] == nil:
		case strings.HasPrefix(k, ownVariables):
			add("/env/"+escapePointer(k), fmt.Sprintf("the variable %s is the agent's own", clip(k)), "choose a name that does not begin with "+ownVariables)
			found[len(found)-1].atKey = true
		case strings.ContainsRune(v, 0):
			add("/env/"+escapePointer(k), fmt.Sprintf("the variable %s holds a NUL, and no program can be given one", clip(k)), "")
		}
	}
	if text, ok := hook["timeout"].(string); ok {
		if d, err := time.ParseDuration(text); err == nil && d == 0 {
			add("/timeout", fmt.Sprintf("the timeout %s gives the hook no time at all", clip(text)), "leave it out for the default of 10s")
		}
	}
	if dir, ok := hook["workDir"].(string); ok {
		switch odd := oddRune(dir); {
		case odd != "":
			add("/workDir", fmt.Sprintf("the folder %s holds %s", quote(dir), odd), "")
		case hasDotDot(dir):
			add("/workDir", fmt.Sprintf("the folder %s does not stay below the device's root", quote(dir)), "write it as "+quote(path.Join("/", dir)))
		}
	}
	return append(found, conditionValues(hook, at)...)
}

func hasDotDot(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
