package schema

import (
	"reflect"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// field is one field of a document's type, as its tag has it.
type field struct {
	index    int
	embedded bool       // its own fields stand in its place
	name     string     // "" = it is no part of the document
	omit     string     // "omitempty", "omitzero" or ""
	key      *yaml.Node // the name as it is written; nobody changes it
}

// fields are those of every type that was asked for: reading a tag costs more
// than reading or writing what it names, and a fleet has many documents of few
// types.
var fields sync.Map // reflect.Type → []field

func fieldsOf(t reflect.Type) []field {
	if known, ok := fields.Load(t); ok {
		return known.([]field) //nolint:forcetypeassert // nothing else is stored
	}
	all := make([]field, t.NumField())
	for i := range all {
		sf := t.Field(i)
		name, omit, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "-" {
			name = ""
		}
		all[i] = field{index: i, embedded: sf.Anonymous, name: name, omit: omit, key: yamlString(name)}
	}
	fields.Store(t, all)
	return all
}

// leftOut follows the tags as encoding/json does.
func (f *field) leftOut(v reflect.Value) bool {
	switch f.omit {
	case "omitzero":
		return v.IsZero()
	case "omitempty":
		switch v.Kind() {
		case reflect.Map, reflect.Slice, reflect.String:
			return v.Len() == 0
		case reflect.Struct:
			return false
		default:
			return v.IsZero()
		}
	}
	return false
}
