package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

func TestReportHasApplicationsThatDoNotRunFirst(t *testing.T) {
	var all []schema.ApplicationState
	for n := range maxApplications + 1 {
		all = append(all, schema.ApplicationState{Name: fmt.Sprintf("app-%03d", n), State: schema.ApplicationRunning})
	}
	all[maxApplications].State = schema.ApplicationFailed
	got := reported(all)
	if len(got) != maxApplications || got[0].Name != all[maxApplications].Name || got[1].Name != "app-000" {
		t.Errorf("got %d of them, first %+v", len(got), got[:2])
	}
	if got := reported(all[:2]); len(got) != 2 || got[0].Name != "app-000" {
		t.Errorf("few are changed: %+v", got)
	}
}

// A file that a spec writes and one of its applications brings would be
// written by whoever comes last.
func TestFileOfAnApplicationIsNamedTwice(t *testing.T) {
	text := "[Container]\n"
	p := schema.QuadletFolder("web", "") + "/web.container"
	spec := &schema.Spec{
		Files:        map[string]*schema.File{p: {Content: &text}},
		Applications: map[string]*schema.Application{"web": {Quadlet: map[string]*schema.Content{"web.container": {Content: &text}}}},
	}
	if f := failure.From(twice(spec)); f == nil || f.Class != schema.ClassPermanent || f.Element != p {
		t.Errorf("got %v", f)
	}
	unit := schema.ComposeUnit("shop")
	spec.Applications["shop"] = &schema.Application{Compose: &schema.Compose{Body: schema.Body{Content: &text}}}
	spec.Units = map[string]*schema.Unit{unit: {Body: schema.Body{Content: &text}}}
	spec.Files = nil
	if f := failure.From(twice(spec)); f == nil || f.Element != "/etc/systemd/system/"+unit {
		t.Errorf("a unit: got %v", f)
	}
	delete(spec.Units, unit)
	if err := twice(spec); err != nil {
		t.Error(err)
	}
	if set := wholeSet(spec); set.Files[p] == nil || len(spec.Files) != 0 {
		t.Errorf("the whole set is %v, the spec's own files %v", set.Files, spec.Files)
	}
}

// A device without podman is given no containers, and says so before anything
// changes.
func TestApplicationsWithoutPodmanAreRefused(t *testing.T) {
	for need, app := range map[string]tree{
		"applications.quadlet": {"quadlet": tree{"web.container": tree{"content": "[Container]\nImage=example.com/web:1\n"}}},
		"applications.compose": {"compose": tree{"content": "services: {web: {image: \"example.com/web:1\"}}\n"}},
	} {
		d := onV1(t)
		d.assign(2, "v1.1.0", tree{"applications": tree{"web": app}})
		d.wantOnce(1, need)
		if r := d.control.last(); r.Outcome != schema.OutcomeRefused || r.Begun {
			t.Errorf("%s: the report is %+v", need, r)
		}
	}
}

// The agent may be killed when an update has succeeded, and before containers
// that it took over count as its own: they do from its next start on.
func TestTakenOverContainersAreOursFromTheNextStartOn(t *testing.T) {
	d := onV1(t)
	d.write("/var/lib/gitopsd/apps.json", `{"format": 1, "apps": {"shop": {"hash": "h", "taken": "h", "units": [{"name": "compose-shop.service", "kind": "compose", "object": "shop"}]}}}`)
	a := d.agent()
	defer a.Close()
	a.resume(t.Context())
	if is := d.content("/var/lib/gitopsd/apps.json"); !strings.Contains(is, "compose-shop") || strings.Contains(is, "taken") {
		t.Errorf("the record is %s", is)
	}
}
