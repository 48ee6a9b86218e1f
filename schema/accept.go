package schema

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// shape is a schema in the form in which values are compared with it fastest.
// It only says yes: whatever it does not accept is looked at by the library,
// which alone refuses, and alone says why. So a keyword that is not known here
// costs time, and no correctness.
type shape struct {
	unsure bool // a keyword is not known here: nothing is accepted
	types  typeSet
	values []any // that are allowed; nil = all
	// Of numbers.
	minimum, maximum float64
	// Of texts, in characters.
	minLength, maxLength int
	pattern              *regexp.Regexp
	isTime               bool
	// Of lists.
	minItems, maxItems int
	items              *shape
	// Of mappings.
	minEntries, maxEntries int
	required               []string
	fields                 map[string]*shape
	others                 *shape // what other keys may hold; nil = anything
	closed                 bool   // there are no other keys
	names                  *shape // what keys must be; nil = anything
	// also is the definition that the schema refers to; nil = none.
	also *shape
}

// typeSet is a set of JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
	typeAny = typeNull | typeBoolean | typeInteger | typeNumber | typeString | typeArray | typeObject
)

var typeSets = map[string]typeSet{"null": typeNull, "boolean": typeBoolean, "integer": typeInteger,
	"number": typeNumber | typeInteger, "string": typeString, "array": typeArray, "object": typeObject}

// shapes makes shapes of the schemas of one document.
type shapes struct {
	defs     map[string]any
	made     map[string]*shape // by the name of the definition
	patterns *patterns
}

func newShape(raw map[string]any, known *patterns) *shape {
	defs, _ := raw["$defs"].(map[string]any)
	return (&shapes{defs: defs, made: map[string]*shape{}, patterns: known}).of(raw)
}

// patterns are the compiled ones of all kinds, which have most of them in
// common; one with a count takes a hundred kilobytes.
type patterns struct {
	mu    sync.Mutex
	known map[string]*regexp.Regexp
}

// of is nil for what does not compile.
func (p *patterns) of(text string) *regexp.Regexp {
	p.mu.Lock()
	defer p.mu.Unlock()
	compiled, ok := p.known[text]
	if !ok {
		compiled, _ = regexp.Compile(text) // nil beside an error
		if p.known == nil {
			p.known = map[string]*regexp.Regexp{}
		}
		p.known[text] = compiled
	}
	return compiled
}

func (b *shapes) of(node any) *shape {
	s := &shape{types: typeAny, minimum: math.Inf(-1), maximum: math.Inf(1),
		maxLength: math.MaxInt, maxItems: math.MaxInt, maxEntries: math.MaxInt}
	n, ok := node.(map[string]any)
	if !ok {
		s.unsure = true
		return s
	}
	for keyword, v := range n {
		b.keyword(s, keyword, v)
	}
	return s
}

func (b *shapes) keyword(s *shape, keyword string, v any) {
	number, _ := v.(float64)
	switch keyword {
	case "$schema", "$id", "$defs", "title", "description", "examples":
	case "$ref":
		name, _ := v.(string)
		s.also = b.definition(strings.TrimPrefix(name, defsPrefix))
	case "type":
		s.types = 0
		for _, name := range nodeTypesWithNull(v) {
			s.types |= typeSets[name]
		}
	case "const":
		s.values = []any{v}
	case "enum":
		s.values, _ = v.([]any)
	case "minimum":
		s.minimum = number
	case "maximum":
		s.maximum = number
	case "minLength":
		s.minLength = int(number)
	case "maxLength":
		s.maxLength = int(number)
	case "pattern":
		text, _ := v.(string)
		s.pattern = b.patterns.of(text)
		s.unsure = s.unsure || s.pattern == nil
	case "format":
		s.isTime = v == "date-time"
		s.unsure = s.unsure || !s.isTime
	case "minItems":
		s.minItems = int(number)
	case "maxItems":
		s.maxItems = int(number)
	case "items":
		s.items = b.of(v)
	case "minProperties":
		s.minEntries = int(number)
	case "maxProperties":
		s.maxEntries = int(number)
	case "required":
		names, _ := v.([]any)
		for _, name := range names {
			text, _ := name.(string)
			s.required = append(s.required, text)
		}
	case "properties":
		fields, _ := v.(map[string]any)
		s.fields = make(map[string]*shape, len(fields))
		for name, field := range fields {
			s.fields[name] = b.of(field)
		}
	case "additionalProperties":
		if open, isBool := v.(bool); isBool {
			s.closed = !open
		} else {
			s.others = b.of(v)
		}
	case "propertyNames":
		s.names = b.of(v)
	default:
		s.unsure = true
	}
}

func nodeTypesWithNull(v any) []string {
	if name, one := v.(string); one {
		return []string{name}
	}
	var names []string
	list, _ := v.([]any)
	for _, name := range list {
		text, _ := name.(string)
		names = append(names, text)
	}
	return names
}

// definition is made once, so that one which holds itself has an end.
func (b *shapes) definition(name string) *shape {
	if s, ok := b.made[name]; ok {
		return s
	}
	s := &shape{}
	b.made[name] = s
	*s = *b.of(b.defs[name])
	return s
}

// accepts says whether a value surely is of this shape.
func (s *shape) accepts(v any) bool {
	if s.unsure || s.also != nil && !s.also.accepts(v) {
		return false
	}
	if s.values != nil && (!isText(v) || !slices.Contains(s.values, v)) {
		return false
	}
	switch v := v.(type) {
	case nil:
		return s.types&typeNull != 0
	case bool:
		return s.types&typeBoolean != 0
	case int64:
		return s.types&typeInteger != 0 && float64(v) >= s.minimum && float64(v) <= s.maximum
	case float64:
		return s.types&typeNumber != 0 && v >= s.minimum && v <= s.maximum
	case string:
		return s.types&typeString != 0 && s.acceptsText(v)
	case []any:
		return s.types&typeArray != 0 && s.acceptsList(v)
	case map[string]any:
		return s.types&typeObject != 0 && s.acceptsMapping(v)
	}
	return false
}

// isText keeps what cannot be compared by == away from the allowed values.
// Numbers are among it: the schema holds those as float64.
func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func (s *shape) acceptsText(v string) bool {
	if s.minLength > 0 || len(v) > s.maxLength {
		if n := utf8.RuneCountInString(v); n < s.minLength || n > s.maxLength {
			return false
		}
	}
	if s.isTime && !isPlainTime(v) {
		return false
	}
	return s.pattern == nil || s.pattern.MatchString(v)
}

// isPlainTime knows the form in which this program writes times; the library
// decides on all others.
func isPlainTime(v string) bool {
	const form = "2006-01-02T15:04:05Z"
	_, err := time.Parse(form, v)
	return err == nil && len(v) == len(form)
}

func (s *shape) acceptsList(v []any) bool {
	if len(v) < s.minItems || len(v) > s.maxItems {
		return false
	}
	if s.items == nil {
		return true
	}
	for _, item := range v {
		if !s.items.accepts(item) {
			return false
		}
	}
	return true
}

func (s *shape) acceptsMapping(v map[string]any) bool {
	if len(v) < s.minEntries || len(v) > s.maxEntries {
		return false
	}
	for _, name := range s.required {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	for key, value := range v {
		if s.names != nil && !s.names.accepts(key) {
			return false
		}
		switch field, known := s.fields[key]; {
		case known:
			if !field.accepts(value) {
				return false
			}
		case s.closed, s.others != nil && !s.others.accepts(value):
			return false
		}
	}
	return true
}
