package preview

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// longestValue bounds a value of a field, in characters.
const longestValue = 160

// Sections of a spec that are treated as what they are; any other one is
// compared by its form.
const (
	sectionFiles = "files"
	sectionHooks = "hooks"
	sectionOS    = "os"
)

// element is one thing that a spec names.
type element struct {
	section, name string
	keys          []string // where it stands
	value         any
}

// elements takes a spec apart. A section is a collection where every entry of
// it is a mapping, on both sides; hooks are collections of collections.
func elements(spec, other map[string]any) map[string]element {
	out := map[string]element{}
	add := func(section, name string, value any, keys ...string) {
		out[pointer(keys)] = element{section: section, name: name, keys: keys, value: value}
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
				add(section, name, entry, section, name)
			}
		default:
			add(section, "", v, section)
		}
	}
	return out
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
var contentKeys = []string{"content", "contentBase64", "payload"}

// leaves are the values of an element by name, each on one line. The content
// of a file is not among them.
func (e element) leaves() map[string]string {
	out := map[string]string{}
	collect(out, "", e.value)
	if e.section == sectionFiles {
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

// comparison compares what one device should be with what it should have been.
type comparison struct {
	from, to Side
	mask     mask
	lines    int                  // of a difference that are shown
	brief    bool                 // what is gone is only named
	origins  [2]map[string]string // of the two sides, by pointer; nil = not asked for
}

// changes lists the elements that differ, sorted by pointer.
func (c *comparison) changes() []Change {
	before, after := elements(c.from.Spec, c.to.Spec), elements(c.to.Spec, c.from.Spec)
	list := []Change{}
	for _, at := range slices.Sorted(maps.Keys(union(before, after))) {
		a, had := before[at]
		b, has := after[at]
		if had && has && equal(a.value, b.value) {
			continue
		}
		list = append(list, c.change(at, a, b, had, has))
	}
	return list
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

func (c *comparison) change(at string, a, b element, had, has bool) Change {
	e := b
	ch := Change{Pointer: at, Op: Changed, Fields: []Field{}}
	switch {
	case !had:
		ch.Op = Added
	case !has:
		ch.Op, e = Removed, a
	}
	ch.Section, ch.Name = e.section, e.name
	if c.brief && !has {
		return ch
	}
	from, to := a.leaves(), b.leaves()
	if !had {
		from = nil
	}
	if !has {
		to = nil
	}
	for _, name := range slices.Sorted(maps.Keys(union(from, to))) {
		x, y := from[name], to[name]
		_, inFrom := from[name]
		_, inTo := to[name]
		if inFrom == inTo && x == y {
			continue
		}
		f := Field{Name: name, From: c.shown(name, x), To: c.shown(name, y)}
		if c.origins[0] != nil && inFrom {
			f.FromOrigin = originOf(c.origins[0], at, name)
		}
		if c.origins[1] != nil && inTo {
			f.ToOrigin = originOf(c.origins[1], at, name)
		}
		ch.Fields = append(ch.Fields, f)
	}
	if e.section == sectionFiles {
		ch.Content = c.content(a, b)
		if ch.Content != nil && c.origins[1] != nil {
			ch.Content.FromOrigin, ch.Content.ToOrigin = contentOrigin(c.origins[0], at), contentOrigin(c.origins[1], at)
		}
	}
	return ch
}

// shown is a value as it may be shown: on one line, without secrets.
func (c *comparison) shown(name, value string) string {
	value = c.mask.value(name, clip(value, longestMasked))
	value = strings.ReplaceAll(strings.ReplaceAll(value, "\r", ""), "\n", "⏎")
	return clip(value, longestValue)
}

// originOf is where the value of a field was written. A list has one origin
// for each of its entries; the first says it.
func originOf(origins map[string]string, at, name string) string {
	where := at
	if name != "" {
		where += pointer(strings.Split(name, "."))
	}
	for _, p := range []string{where, where + "/0", at} {
		if o := origins[p]; o != "" {
			return o
		}
	}
	return ""
}

func contentOrigin(origins map[string]string, at string) string {
	for _, k := range contentKeys {
		if o := origins[at+"/"+k]; o != "" {
			return o
		}
	}
	return ""
}

// content compares the content of a file; nil where it is the same.
func (c *comparison) content(a, b element) *Content {
	from, fromKey := contentOf(a, c.from)
	to, toKey := contentOf(b, c.to)
	if fromKey == toKey {
		return nil
	}
	from.load(c.from)
	to.load(c.to)
	if from.read && to.read && from.err == nil && to.err == nil && string(from.data) == string(to.data) {
		return nil // written in another way
	}
	return contentChange(b.orName(a), from.source, to.source, c.mask, c.lines)
}

func (e element) orName(o element) string {
	if e.name == "" {
		return o.name
	}
	return e.name
}

// pending is a content that may have to be read yet.
type pending struct {
	source
	digest string // of the payload; "" = the data is here
}

// contentOf finds the content of a file, and a key that is equal where the
// contents are.
func contentOf(e element, side Side) (pending, string) {
	none := pending{source: source{size: -1}}
	file, _ := e.value.(map[string]any)
	if file == nil {
		return none, ""
	}
	if text, ok := file["content"].(string); ok {
		return pending{source: source{size: int64(len(text)), data: []byte(text), read: true}}, "text " + text
	}
	if encoded, ok := file["contentBase64"].(string); ok {
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
		return pending{source: source{size: int64(len(data)), data: data, read: true, err: err}}, "text " + string(data)
	}
	digest, ok := file["payload"].(string)
	if !ok {
		return none, ""
	}
	return pending{source: source{size: side.size(digest)}, digest: digest}, "payload " + digest
}

// load reads a payload that is not too large for it.
func (p *pending) load(side Side) {
	switch {
	case p.digest == "" || p.size > largestRead:
		return
	case side.Read == nil:
		p.err = errors.New("nobody can read it")
		return
	}
	p.data, p.err = side.Read(p.digest)
	if p.err == nil {
		p.read, p.size = true, int64(len(p.data))
	}
}
