package apps

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// compared is what an update would do, and that asking changes nothing.
func (w *world) compared(spec *schema.Spec) string {
	w.t.Helper()
	a := w.agent()
	before := slices.Clone(w.log)
	list, err := a.Compare(w.t.Context(), spec, nil, a.files.Ahead(whole(spec), nil))
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.Equal(w.log, before) {
		w.t.Errorf("comparing did %v", w.log[len(before):])
	}
	return fmt.Sprint(list)
}

func TestCompare(t *testing.T) {
	text := container("reg/web:1", "a")
	web := func(text string) *schema.Spec {
		return specOf(map[string]map[string]string{"web": {"web.container": text}})
	}
	w := stocked(t)
	for _, c := range []struct {
		what string
		do   func()
		spec *schema.Spec
		want string
	}{
		{"nothing is wanted", nil, none, "[]"},
		{"it is new", nil, web(text), "[{web create}]"},
		{"it runs already", func() { w.here("web/web.container", text) }, web(text), "[]"},
		{"it runs already, and is to be another one", nil, web(container("reg/web:2", "b")), "[{web create}]"},
		{"it is ours", func() { w.must(web(container("reg/web:2", "b"))) }, web(container("reg/web:2", "b")), "[]"},
		{"it is ours, and is to be another one", nil, web(text), "[{web change}]"},
		{"it is ours, ran before, and is dropped", nil, none, "[{web restore}]"},
	} {
		if c.do != nil {
			c.do()
		}
		if got := w.compared(c.spec); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
}

// What was there before, and is as it was, stays when it is dropped.
func TestCompareWhatWasThereBefore(t *testing.T) {
	text := container("reg/web:1", "a")
	w := stocked(t)
	w.here("web/web.container", text)
	w.must(specOf(map[string]map[string]string{"web": {"web.container": text}}))
	if got := w.compared(none); got != "[]" {
		t.Errorf("got %s", got)
	}
}
