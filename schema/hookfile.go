package schema

import (
	"fmt"
	"maps"
	"reflect"
	"sync"
)

// DecodeHook reads one hook from a strict YAML document of its own, checked as
// hooks of a spec are: the devices' own hooks have the same fields and no
// apiVersion. The hook is nil when there are problems.
func DecodeHook(file string, data []byte) (*Hook, []Problem) {
	doc, problems := readDocument(data)
	if doc == nil {
		return nil, inFile(file, problems)
	}
	var h Hook
	problems, formed := checkedFill(doc, hookKind(), reflect.ValueOf(&h).Elem())
	if formed {
		tree, _ := doc.value.(map[string]any)
		for _, f := range hookValues(tree, "") {
			problems = append(problems, doc.place(f))
		}
	}
	if hasErrors(problems) {
		return nil, inFile(file, problems)
	}
	return &h, nil
}

// hookKind is the form of a hook's own document, which is no kind: nothing
// outside of a device ever reads one.
var hookKind = sync.OnceValue(func() *compiledKind {
	c := &compiledKind{patterns: &patterns{}, tree: hookSchema}
	raw, err := hookSchema()
	if err != nil {
		panic("schema: " + err.Error()) // what is embedded is wrong: tests compile it
	}
	c.shape = newShape(raw, c.patterns)
	return c
})

func hookSchema() (map[string]any, error) {
	shared, err := readSchema("defs.json")
	if err != nil {
		return nil, err
	}
	defs, _ := shared["$defs"].(map[string]any)
	hook, ok := defs["hook"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no definition of a hook")
	}
	tree, used := maps.Clone(hook), map[string]any{}
	if err := collectRefs(tree, defs, used); err != nil {
		return nil, err
	}
	tree["$id"], tree["$defs"] = "https://gitopsd.dev/schemas/v1alpha1/hook.json", used
	return tree, nil
}
