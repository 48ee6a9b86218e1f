package schema

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	shellFlag = regexp.MustCompile(`^-[a-z]*c$`)
	// positional is how a script reads the arguments behind it.
	positional = regexp.MustCompile(`\$\{?[#!]?[0-9@*#]|\b(shift|getopts)\b`)
	// plainQuoted is what the shell takes as it stands, to the end of the
	// script where the closing quote is missing.
	plainQuoted = regexp.MustCompile(`'[^']*('|$)`)
)

// splitFindings warn of hooks that give a shell more than its script uses:
// most often a comma has cut the script in two, and only its first half runs.
func splitFindings(spec map[string]any, at string) []finding {
	var found []finding
	hooks, _ := spec["hooks"].(map[string]any)
	for _, point := range sortedKeys(hooks) {
		named, _ := hooks[point].(map[string]any)
		for _, name := range sortedKeys(named) {
			hook, _ := named[name].(map[string]any)
			run, _ := hook["run"].([]any)
			if extra := unusedArguments(run); extra > 0 {
				found = append(found, finding{rule: ruleSplit, warning: true,
					pointer: fmt.Sprintf("%s/hooks/%s/%s/run/%d", at, point, escapePointer(name), extra),
					msg:     "the script before this never uses it; has a comma cut the script in two?",
					hint:    "write the script as one quoted item, on a line of its own"})
			}
		}
	}
	return found
}

// unusedArguments is the index of the first argument behind a shell's script
// that the script does not use; 0 = there is none.
func unusedArguments(run []any) int {
	words := make([]string, len(run))
	for i, v := range run {
		words[i], _ = v.(string)
	}
	if len(words) == 0 {
		return 0
	}
	switch path.Base(words[0]) {
	case "sh", "ash", "bash", "dash", "ksh", "zsh":
	default:
		return 0
	}
	flag := 1
	for flag < len(words) && strings.HasPrefix(words[flag], "-") && !shellFlag.MatchString(words[flag]) {
		flag++
	}
	script := flag + 1
	if script >= len(words) || !shellFlag.MatchString(words[flag]) || len(words) == script+1 {
		return 0
	}
	if positional.MatchString(plainQuoted.ReplaceAllString(words[script], "")) {
		return 0
	}
	return script + 1
}
