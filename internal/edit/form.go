package edit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// Form is what is known of the documents of a kind: in which order its fields
// are documented, so that a new one stands where a reader looks for it, and
// which it cannot do without. The zero value knows nothing: what is new comes
// last, and nothing has to stay.
type Form struct {
	order    map[string][]string // fields by the path of what holds them, such as "spec"
	required []string            // fields of the document itself
}

// FormOf is the form of a kind; v is of its Go type, such as schema.Policy{}.
func FormOf(kind schema.Kind, v any) (Form, error) {
	data, err := schema.JSONSchema(kind)
	if err != nil {
		return Form{}, err
	}
	var published struct {
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(data, &published); err != nil {
		return Form{}, fmt.Errorf("read the schema of %s: %w", kind, err)
	}
	form := Form{order: map[string][]string{}, required: published.Required}
	form.learn(reflect.TypeOf(v), nil)
	return form, nil
}

// learn notes the fields of a type, which stand in the order of the
// documentation; a printed JSON Schema has lost that.
func (f *Form) learn(t reflect.Type, path []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	at := strings.Join(path, "/")
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		f.order[at] = append(f.order[at], name)
		f.learn(field.Type, append(slices.Clone(path), name))
	}
}

// rank is the place of a field in the documentation; -1 = it is not there.
func (f Form) rank(path []string, field string) int {
	return slices.Index(f.order[strings.Join(path, "/")], field)
}

// needs says whether the document has to have what is at a path.
func (f Form) needs(path []string) bool {
	return len(path) == 1 && slices.Contains(f.required, path[0])
}
