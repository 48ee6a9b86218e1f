package schema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// noneHint says how to have none of what a field counts or lists.
func noneHint(name string) string {
	switch name {
	case "count":
		return "leave the pilot out to have none"
	case "minSuccess":
		return "a wave that may have nobody to wait for is optional: true"
	case "days":
		return "leave days out for every day"
	case "groupBy":
		return "name a label, such as site: devices with the same value of it are a group"
	}
	return ""
}

// typeHint says how a value of the wrong type was probably meant.
func typeHint(node map[string]any, value any, at *yaml.Node, name string) string {
	wanted := nodeTypes(node)
	if value == nil {
		return "give it a value, or leave the field out"
	}
	text, isText := value.(string)
	switch {
	case slices.Contains(wanted, "string") && at.Kind == yaml.ScalarNode && at.Value != "":
		return stringHint(node, value, at, name)
	case isCount(wanted):
		return likeExample(node)
	case slices.Contains(wanted, "boolean") && isText:
		return boolHint(text)
	case slices.Contains(wanted, "array") && at.Kind == yaml.ScalarNode:
		return listHint(name, at.Value)
	case slices.Contains(wanted, "array") && at.Kind == yaml.MappingNode:
		return "write it as a list: - before the first field of each item"
	case slices.Contains(wanted, "object") && (at.Kind == yaml.ScalarNode || at.Kind == yaml.SequenceNode):
		return exampleOf(node, name)
	case (slices.Contains(wanted, "integer") || slices.Contains(wanted, "number")) && isText:
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return "write it without quotes: " + clip(text)
		}
	}
	return ""
}

// stringHint is for what was read as a number or the like.
func stringHint(node map[string]any, value any, at *yaml.Node, name string) string {
	if _, isNumber := number(value); isNumber {
		if name == "mode" {
			return modeHint(at.Value)
		}
		if hint := unitHint(node, at.Value); hint != "" {
			return hint
		}
		if hint := calendarHint(node, at.Value); hint != "" {
			return hint
		}
		if !fitsPattern(node, at.Value) && fitsPattern(node, at.Value+"%") {
			return "did you mean " + quote(at.Value+"%") + "?"
		}
	}
	if !fitsPattern(node, at.Value) {
		return likeExample(node)
	}
	return "quote it: " + quote(at.Value)
}

// boolHint takes the words of YAML 1.1, which are strings today.
func boolHint(text string) string {
	switch strings.ToLower(text) {
	case "true", "false":
		return "write it without quotes: " + strings.ToLower(text)
	case "yes", "on", "y", "1":
		return "did you mean true?"
	case "no", "off", "n", "0":
		return "did you mean false?"
	}
	return ""
}

// listHint writes a single value as the list that is wanted. A command is a
// list of its words, because no shell takes it apart.
func listHint(name, value string) string {
	items := []string{value}
	if name == "run" {
		items = strings.Fields(value)
		if strings.ContainsAny(value, "|&;<>$`*?\"'\\(){}") {
			items = []string{"/bin/sh", "-c", value}
		}
	}
	if len(items) == 0 || len(value) > maxQuoted {
		return "write it as a list"
	}
	for i := range items {
		items[i] = strconv.Quote(items[i])
	}
	return "write it as a list: [" + strings.Join(items, ", ") + "]"
}

// exampleOf shows a mapping where a plain value stands.
func exampleOf(node map[string]any, name string) string {
	b, ok := firstExample(node, nil)
	if !ok || name == "" {
		return ""
	}
	if _, err := strconv.Atoi(name); err == nil { // an item of a list
		return "for example " + b
	}
	return fmt.Sprintf("for example %s: %s", name, b)
}

// modeHint guesses what an unquoted mode was meant to be: 0644 and 644 as it
// is read by people, 420 as the decimal form that some tools print.
func modeHint(literal string) string {
	digits := strings.TrimPrefix(strings.TrimPrefix(literal, "0o"), "0")
	if n, err := strconv.ParseInt(digits, 8, 32); err == nil && n >= 0o600 && n <= 0o7777 {
		return fmt.Sprintf("did you mean %q?", fmt.Sprintf("%04o", n))
	}
	if n, err := strconv.ParseInt(literal, 10, 32); err == nil && n >= 0o400 && n <= 0o777 && n&0o022 == 0 {
		return fmt.Sprintf("did you mean %q?", fmt.Sprintf("%04o", n))
	}
	return `a mode is a quoted octal string; did you mean "0644"?`
}

// shortDays are days, a unit that durations do not have: not every day has 24
// hours.
var shortDays = regexp.MustCompile(`^([0-9]{1,4})d$`)

// unitHint is for lengths of time that lack their unit, or have one that is
// written otherwise.
func unitHint(node map[string]any, text string) string {
	if fitsPattern(node, text) || !fitsPattern(node, "1h30m") || fitsPattern(node, "x") {
		return ""
	}
	if m := shortDays.FindStringSubmatch(text); m != nil {
		days, _ := strconv.Atoi(m[1])
		return fmt.Sprintf("there are no days; did you mean %q?", fmt.Sprintf("%dh", 24*days))
	}
	if fitsPattern(node, text+"s") {
		return "it lacks its unit; did you mean " + quote(text+"s") + "?"
	}
	return ""
}

func formHint(node map[string]any, value any, name string) string {
	if name == "mode" {
		return `a mode is a quoted octal string such as "0644"`
	}
	text, ok := value.(string)
	if !ok {
		return ""
	}
	if hint := unitHint(node, text); hint != "" {
		return hint
	}
	if hint := calendarHint(node, text); hint != "" {
		return hint
	}
	if _, err := strconv.Atoi(text); err == nil && slices.Contains(nodeTypes(node), "integer") {
		return "write it without quotes: " + clip(text)
	}
	if strings.HasSuffix(text, "%") && slices.Contains(nodeTypes(node), "integer") {
		return "a percentage is a whole number from 0% to 100%"
	}
	if pattern, _ := node["pattern"].(string); strings.HasPrefix(pattern, "^/") && !strings.HasPrefix(text, "/") {
		return "write it absolute, from the root of the file system: it begins with /"
	}
	if hint := labelFormHint(node, text); hint != "" {
		return hint
	}
	return likeExample(node)
}

// nameHint is for keys that people choose, such as the names of applications,
// hooks and variables.
func nameHint(node map[string]any, name string) string {
	for _, meant := range []string{strings.ToLower(name), strings.Join(strings.Fields(name), "-"),
		strings.ReplaceAll(strings.ToLower(name), "_", "-"), strings.ReplaceAll(name, "-", "_")} {
		if fitsPattern(node, meant) {
			return "did you mean " + quote(meant) + "?"
		}
	}
	switch upper, dash := fitsPattern(node, "A_B"), fitsPattern(node, "a-b"); {
	case upper && dash:
		return "it has letters, digits, dots, dashes and underscores, and begins with a letter or digit"
	case upper:
		return "it has letters, digits and underscores, and begins with a letter"
	case dash:
		return "it has lower-case letters, digits and dashes, at most 63, with a letter or digit at both ends"
	}
	return ""
}

// labelFormHint is for values of labels, the only texts that may hold all of
// these characters and no space.
func labelFormHint(node map[string]any, text string) string {
	if !fitsPattern(node, "a.b_c-D") || fitsPattern(node, "a b") {
		return ""
	}
	if dashed := strings.Join(strings.Fields(text), "-"); fitsPattern(node, dashed) {
		return "did you mean " + quote(dashed) + "?"
	}
	return "a label has letters from a to z, digits, dashes, dots and underscores, at most 63, with a letter or digit at both ends"
}

// isCount says whether a field takes a count or a percentage.
func isCount(types []string) bool {
	return slices.Contains(types, "integer") && slices.Contains(types, "string")
}

func likeExample(node map[string]any) string {
	b, ok := firstExample(node, func(v any) bool { _, text := v.(string); return text })
	if !ok {
		if b, ok = firstExample(node, nil); !ok {
			return ""
		}
	}
	if isCount(nodeTypes(node)) {
		return "write a count, or a percentage like " + b
	}
	return "write it like " + b
}

// firstExample is the JSON of the first example of a field that is of use.
func firstExample(node map[string]any, use func(any) bool) (string, bool) {
	examples, _ := node["examples"].([]any)
	for _, e := range examples {
		if use != nil && !use(e) {
			continue
		}
		if b, err := json.Marshal(e); err == nil && len(b) <= maxQuoted {
			return string(b), true
		}
	}
	return "", false
}

// fitsPattern says whether a string would have the form of a field.
func fitsPattern(node map[string]any, text string) bool {
	pattern, _ := node["pattern"].(string)
	if pattern == "" {
		return true
	}
	form, err := regexp.Compile(pattern)
	return err == nil && form.MatchString(text)
}
