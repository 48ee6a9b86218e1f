package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// longestValue bounds a value of a field, in characters.
const longestValue = 160

// Sections of a spec that are treated as what they are; any other one is
// compared by its form.
const (
	sectionFiles        = "files"
	sectionUnits        = "units"
	sectionApplications = "applications"
	sectionHooks        = "hooks"
	sectionOS           = "os"
)

// element is one thing that a spec names.
type element struct {
	section, name string
	value         any
	of            string // pointer to the entry that it is a file of; "" = it is no such part
}

// elements takes a spec apart, by pointer. A section is a collection where every
// entry of it is a mapping, on both sides; hooks are collections of collections.
func elements(spec, other map[string]any) map[string]element {
	out := map[string]element{}
	add := func(section, name string, value any, keys ...string) {
		out[pointer(keys)] = element{section: section, name: name, value: value}
	}
	for section, v := range spec {
		entries, _ := v.(map[string]any)
		switch {
		case section == sectionHooks && entries != nil:
			for point, hooks := range entries {
				named, _ := hooks.(map[string]any)
				for name, hook := range named {
					add(section, point+"/"+name, hook, section, point, name)
				}
			}
		case isCollection(v) && isCollection(other[section]):
			for name, entry := range entries {
				alone, files := apart(section, entry)
				add(section, name, alone, section, name)
				of := pointer([]string{section, name})
				for _, f := range files {
					out[of+pointer(f.keys)] = element{section: section, name: name + f.name, value: f.value, of: of}
				}
			}
		default:
			add(section, "", v, section)
		}
	}
	return out
}

// part is a file of an entry that has more than one.
type part struct {
	name  string   // behind that of the entry
	keys  []string // where it stands in the entry
	value any
}

// apart takes the files of a unit or of an application off it: each has a
// content of its own.
func apart(section string, entry any) (alone any, files []part) {
	e, _ := entry.(map[string]any)
	rest := maps.Clone(e)
	take := func(key string, nameOf func(string) string) {
		list, _ := e[key].(map[string]any)
		if list == nil || !isCollection(list) {
			return
		}
		delete(rest, key)
		for name, v := range list {
			files = append(files, part{nameOf(name), []string{key, name}, v})
		}
	}
	switch section {
	case sectionUnits:
		take("dropIns", func(name string) string { return ".d/" + name + ".conf" })
	case sectionApplications:
		take("quadlet", func(name string) string { return "/" + name })
		compose, _ := e["compose"].(map[string]any)
		if compose == nil {
			break
		}
		delete(rest, "compose")
		if variables, has := compose["envFile"].(map[string]any); has {
			compose = maps.Clone(compose)
			delete(compose, "envFile")
			files = append(files, part{"/" + schema.ComposeEnvName, []string{"compose", "envFile"}, variables})
		}
		files = append(files, part{"/" + schema.ComposeFileName, []string{"compose"}, compose})
	}
	if files == nil {
		return entry, nil
	}
	return rest, files
}

// isCollection says whether every entry is a mapping; what is absent is not
// against it.
func isCollection(v any) bool {
	if v == nil {
		return true
	}
	entries, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, e := range entries {
		if _, ok := e.(map[string]any); !ok {
			return false
		}
	}
	return true
}

// pointer is a JSON pointer (RFC 6901).
func pointer(keys []string) string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// contentKeys are the ways in which a file has its content.
var contentKeys = []string{"content", "contentBase64", "payload", "secret"}

// hasText says whether an element may have the content of a file.
func (e element) hasText() bool {
	return e.section == sectionFiles || e.section == sectionUnits || e.of != ""
}

// leaves are the values of an element by name, each on one line. The content
// of a file is not among them.
func (e element) leaves() map[string]string {
	out := map[string]string{}
	collect(out, "", e.value)
	if e.hasText() {
		for _, k := range contentKeys {
			delete(out, k)
		}
	}
	return out
}

func collect(out map[string]string, at string, v any) {
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		for k, c := range m {
			name := k
			if at != "" {
				name = at + "." + k
			}
			collect(out, name, c)
		}
		return
	}
	if m, ok := v.(map[string]any); ok && len(m) == 0 && at == "" {
		return // it is there, which says enough
	}
	out[at] = valueText(v)
}

// valueText writes a value on one line.
func valueText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		words := make([]string, len(v))
		for i, w := range v {
			s, ok := w.(string)
			if !ok {
				return jsonText(v)
			}
			words[i] = s
			if s == "" || strings.ContainsAny(s, " \t\n\"'") {
				words[i] = strconv.Quote(s)
			}
		}
		return strings.Join(words, " ")
	case map[string]any:
		return jsonText(v)
	}
	return fmt.Sprint(v)
}

func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

func union[V any](a, b map[string]V) map[string]bool {
	all := make(map[string]bool, len(a)+len(b))
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}

// equal compares two values of JSON trees.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, equal)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b || valueText(a) == valueText(b) && isNumber(a) && isNumber(b)
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, int64, float64:
		return true
	}
	return false
}
