package apps

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

func pods(image string) *schema.Spec {
	kube, doc := "[Kube]\nYaml=/etc/edge.yaml\n", "spec: {containers: [{image: \""+image+"\"}]}"
	return &schema.Spec{
		Applications: map[string]*schema.Application{"web": {Quadlet: map[string]*schema.Content{"web.kube": {Content: &kube}}}},
		Files:        map[string]*schema.File{"/etc/edge.yaml": {Content: &doc}},
	}
}

// The document of a .kube file is a part of the application: its images are
// fetched before, and a change of it is one of the application.
func TestPodsOfADocument(t *testing.T) {
	w := stocked(t)
	for n, image := range []string{"reg/web:1", "reg/web:2", "reg/web:2"} {
		if err := w.agent().update(pods(image)); err != nil {
			t.Fatal(err)
		}
		if w.images[image] == "" {
			t.Errorf("%s was not fetched", image)
		}
		if want := min(n+1, 2); w.starts["web.service"] != want {
			t.Errorf("with %s it was started %d times, want %d", image, w.starts["web.service"], want)
		}
	}
	gone := pods("reg/web:1")
	gone.Files = nil
	torn := pods("\"")
	for what, spec := range map[string]*schema.Spec{"has no file": gone, "it is no YAML": torn} {
		err := w.agent().update(spec)
		if f := failure.From(err); f == nil || f.Class != schema.ClassPermanent || f.Element != "web" || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}

// When systemd has forgotten how to stop a unit, its pods are still there, and the
// containers that hold them together go with them only. That is so, too, where
// the unit of the name is one of another kind by now.
func TestPodsThatAreLeft(t *testing.T) {
	for name, next := range map[string]*schema.Spec{
		"dropped": none, "a container": specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "")}}),
	} {
		t.Run(name, func(t *testing.T) {
			w := stocked(t)
			if err := w.agent().update(pods("reg/web:1")); err != nil {
				t.Fatal(err)
			}
			w.left["web.service"] = "c1 p1\nc2 p1\nc3\n"
			var done []string
			w.step = func(what string) error {
				if strings.Contains(what, "stop") {
					done = append(done, what)
				}
				return nil
			}
			if err := w.agent().update(next); err != nil {
				t.Fatal(err)
			}
			// Without their document systemd could only kill them.
			if !slices.Equal(done, []string{"podman pod stop --ignore p1", "stop web.service"}) {
				t.Errorf("they were ended by %q", done)
			}
			if len(w.left) > 0 {
				t.Errorf("there is left %q", w.left)
			}
		})
	}
}

// A document that somebody has changed is not what runs.
func TestPodsAreNotTakenOverWithAnotherDocument(t *testing.T) {
	w := stocked(t)
	if err := w.agent().update(pods("reg/web:1")); err != nil {
		t.Fatal(err)
	}
	a := w.agent()
	r, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	delete(r.Apps, "web") // as if somebody else had started it
	if err := a.save(r); err != nil {
		t.Fatal(err)
	}
	if err := a.Prepare(context.Background(), pods("reg/web:1"), nil, []string{"/etc/edge.yaml"}); err != nil {
		t.Fatal(err)
	}
	if r, _ = a.load(); r.Apps["web"].Hash != "" {
		t.Error("it is taken over")
	}
}
