package apps

import (
	"maps"
	"slices"
	"testing"
)

// A drop-in of a quadlet file is a part of the application like the file, and
// may have another image pulled.
func TestDropIns(t *testing.T) {
	w := stocked(t)
	const at = "web.container.d/10-more.conf"
	with := func(files map[string]string) map[string]map[string]string {
		files["web.container"] = container("reg/none:1", "a")
		return map[string]map[string]string{"web": files}
	}
	other := specOf(with(map[string]string{at: "[Container]\nImage=reg/web:1\n"}))
	w.must(other)
	w.must(other)
	if w.starts["web.service"] != 1 || !maps.Equal(w.images, map[string]string{"reg/web:1": "w1"}) {
		t.Errorf("it was started %d times, and the images are %v", w.starts["web.service"], w.images)
	}
	w.must(specOf(with(map[string]string{at: "[Container]\nImage=reg/web:2\n"})))
	w.registry["reg/none:1"] = "n1"
	w.must(specOf(with(map[string]string{})))
	if w.starts["web.service"] != 3 {
		t.Errorf("it was started %d times, want once for each change", w.starts["web.service"])
	}
	a := w.agent()
	if made := slices.Sorted(maps.Keys(Units(one, nil))); !slices.Equal(made, []string{"db.service", "web-network.service", "web.service"}) {
		t.Errorf("the units that it makes are %q", made)
	}
	if a.Anew("web.service") {
		t.Error("what is as wanted will be started anew")
	}
	drift, err := a.files.Drift(whole(one), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Prepare(t.Context(), one, nil, drift); err != nil {
		t.Fatal(err)
	}
	if !a.Anew("web.service") || !a.Anew("db.service") || a.Anew("other.service") {
		t.Error("it is not known what will be started anew")
	}
}
