package apps

import (
	"fmt"
	"slices"
	"strings"
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
	if did := acts(w.log[len(before):]); len(did) > 0 {
		w.t.Errorf("comparing did %v", did)
	}
	said := []string{}
	for _, c := range list {
		said = append(said, strings.TrimSpace(c.Name+" "+c.Do+" "+c.Why))
	}
	return fmt.Sprint(said)
}

// acts leaves out what only looks.
func acts(log []string) []string {
	return slices.DeleteFunc(slices.Clone(log), func(line string) bool { return strings.HasPrefix(line, "podman ps ") })
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
		{"it is new", nil, web(text), "[web create]"},
		{"it runs already", func() { w.here("web/web.container", text) }, web(text), "[]"},
		{"it runs already, and is to be another one", nil, web(container("reg/web:2", "b")), "[web create]"},
		{"it is ours", func() { w.must(web(container("reg/web:2", "b"))) }, web(container("reg/web:2", "b")), "[]"},
		{"it is ours, and does not run", func() { delete(w.running, "web.service") }, web(container("reg/web:2", "b")), "[web change web.service is inactive]"},
		{"it is ours, and is to be another one", nil, web(text), "[web change]"},
		{"it is ours, ran before, and is dropped", nil, none, "[web restore]"},
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
