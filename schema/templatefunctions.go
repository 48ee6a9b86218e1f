package schema

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"text/template"
)

// templateFunctions is all that a template can call. None of them loops over
// anything but its argument, and each result is bounded.
var templateFunctions = template.FuncMap{
	"index":      indexValue,
	"has":        hasValue,
	"default":    defaultValue,
	"quote":      quoteValue,
	"lower":      func(s string) (string, error) { return bounded(strings.ToLower(s)) },
	"upper":      func(s string) (string, error) { return bounded(strings.ToUpper(s)) },
	"trim":       strings.TrimSpace,
	"trimPrefix": func(prefix, s string) string { return strings.TrimPrefix(s, prefix) },
	"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
	"hasPrefix":  func(prefix, s string) bool { return strings.HasPrefix(s, prefix) },
	"hasSuffix":  func(suffix, s string) bool { return strings.HasSuffix(s, suffix) },
	"contains":   func(part, s string) bool { return strings.Contains(s, part) },
}

// Of the functions that text/template brings along only these are allowed;
// print, html and the like can make much of little.
var builtinFunctions = map[string]bool{"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true,
	"and": true, "or": true, "not": true, "len": true}

// TemplateFunctions lists what templates can call, sorted.
func TemplateFunctions() []string {
	var names []string
	for name := range templateFunctions {
		names = append(names, name)
	}
	for name := range builtinFunctions {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// indexValue is for names that are no identifiers, such as labels with dots.
// Unlike the built-in one it does not make up a value for a key that is
// missing.
func indexValue(m map[string]string, key string) (string, error) {
	v, ok := m[key]
	if !ok {
		return "", fmt.Errorf("there is no %s", quote(key))
	}
	return v, nil
}

func hasValue(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

func defaultValue(fallback, value string) string {
	if value == "" {
		return fallback
	}
	return value
}

func quoteValue(s string) (string, error) { return bounded(strconv.Quote(s)) }

var errResultTooLong = fmt.Errorf("the result of a function has more than %d bytes", maxFunctionResult)

func bounded(s string) (string, error) {
	if len(s) > maxFunctionResult {
		return "", errResultTooLong
	}
	return s, nil
}
