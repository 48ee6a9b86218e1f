package schema

import (
	"fmt"
	"maps"
	"regexp"
	"sort"
)

var (
	// secretName is glued to another word, too: MQTTPASSWORD, DBPASS. PASS alone
	// is what tests say.
	secretName = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|secret|api_?key|private_?key|access_?key|token|credentials?)([0-9]*$|_)` +
		`|([a-z0-9]_?pass|pwd|(^|_|root|db)pw)[0-9]*$`)
	passWord    = regexp.MustCompile(`(?i)(^|_)(by|com|low|high|band|all|over|under|multi|encom)_?pass[0-9]*$`) // which is no secret
	secretValue = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY|^gh[pousr]_[A-Za-z0-9]{20,}|^github_pat_|^glpat-|^AKIA[0-9A-Z]{16}$|^xox[abprs]-|^AGE-SECRET-KEY-|^eyJ[A-Za-z0-9_-]{8,}\.eyJ`)
	harmless    = regexp.MustCompile(`^$|^/|^\$|^(true|false|none|file|[0-9]{1,4})$`)
	camelHump   = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// SecretLike says whether what stands under a name looks like a secret: the
// name says so and the value could be one, or the value has the form of a known
// kind of token or key.
func SecretLike(name, value string) bool {
	if secretValue.MatchString(value) {
		return true
	}
	name = camelHump.ReplaceAllString(name, "${1}_${2}")
	return !harmless.MatchString(value) && secretName.MatchString(name) && !passWord.MatchString(name)
}

// SecretVars are the values of a device's variables that look like secrets,
// sorted: what was rendered for it may hold them under any name, or none.
func (f *Fleet) SecretVars(id string) []string {
	m := f.Member(id)
	if m == nil {
		return nil
	}
	vars := map[string]string{}
	if s := f.states[m]; s != nil && s.group != nil {
		maps.Copy(vars, s.group.vars)
	}
	if m.Device != nil {
		maps.Copy(vars, m.Device.Spec.Vars)
	}
	var secrets []string
	for name, value := range vars {
		if SecretLike(name, value) {
			secrets = append(secrets, value)
		}
	}
	sort.Strings(secrets)
	return secrets
}

// secretFindings warn of vars that look like a secret. They name the variable
// and never its value.
func secretFindings(vars map[string]string) []finding {
	var found []finding
	for name, value := range vars {
		if SecretLike(name, value) {
			found = append(found, finding{pointer: "/spec/vars/" + escapePointer(name), rule: ruleSecret, warning: true,
				msg:  fmt.Sprintf("the variable %s looks like a secret; whoever can read the repository can read it", quote(name)),
				hint: "make it the secret of a file, encrypted with gitopsd secret encrypt, or keep it on the device"})
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].pointer < found[j].pointer })
	return found
}
