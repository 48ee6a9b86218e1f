package schema

import (
	"fmt"
	"regexp"
	"sort"
)

var (
	secretName  = regexp.MustCompile(`(?i)(^|_)(passw(or)?d|passphrase|secret|api_?key|private_?key|access_?key|auth_?token|token|credentials?)([0-9]*$|_)`)
	secretValue = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY|^gh[pousr]_[A-Za-z0-9]{20,}|^github_pat_|^glpat-|^AKIA[0-9A-Z]{16}$|^xox[abprs]-|^AGE-SECRET-KEY-|^eyJ[A-Za-z0-9_-]{8,}\.eyJ`)
	harmless    = regexp.MustCompile(`^$|^/|^\$|^(true|false|none|file|[0-9]{1,4})$`)
	camelHump   = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// secretFindings warn of vars that look like a secret. They name the variable
// and never its value.
func secretFindings(vars map[string]string) []finding {
	var found []finding
	for name, value := range vars {
		snake := camelHump.ReplaceAllString(name, "${1}_${2}")
		if secretValue.MatchString(value) || secretName.MatchString(snake) && !harmless.MatchString(value) {
			found = append(found, finding{pointer: "/spec/vars/" + escapePointer(name), rule: ruleSecret, warning: true,
				msg:  fmt.Sprintf("the variable %s looks like a secret; whoever can read the repository can read it", quote(name)),
				hint: "keep secrets on the device and name the file that holds them"})
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].pointer < found[j].pointer })
	return found
}
