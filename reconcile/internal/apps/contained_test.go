package apps

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// B83: what podman itself starts again, and what its own check does not like,
// is not healthy, though its unit runs all the time.
func TestB83_ContainersOfUnitsThatRun(t *testing.T) {
	const other = "id9|else||else.service|exited|1|0|Exited (1)\n"
	pod, quadlet := pods("reg/web:1"), specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "")}})
	for name, c := range map[string]struct {
		spec  *schema.Spec
		shown func(look int) string
		want  string
	}{
		"running":     {pod, func(int) string { return "id1|edge-web||web.service|running|0|0|Up 2 seconds\n" }, ""},
		"its service": {pod, func(int) string { return "id1|a-service||web.service|running|0|0|Up 1 second\n" }, ""},
		"ended well":  {pod, func(int) string { return "id1|edge-job||web.service|exited|0|0|Exited (0)\n" }, ""},
		"restarted": {pod, func(look int) string {
			return fmt.Sprintf("id1|edge-web||web.service|running|0|%d|Up 1 second\n", look)
		}, "the container edge-web was restarted"},
		"ended":     {pod, func(int) string { return "id1|edge-web||web.service|exited|3|0|Exited (3)\n" }, "the container edge-web has ended with 3"},
		"created":   {pod, func(int) string { return "id1|edge-web||web.service|created|0|0|Created\n" }, "the container edge-web is created"},
		"unhealthy": {quadlet, func(int) string { return "id1|web||web.service|running|0|0|Up 9 seconds (unhealthy)\n" }, "the container web is unhealthy"},
		"too late":  {quadlet, func(int) string { return "id1|web||web.service|running|0|0|Up 9 seconds (starting)\n" }, "the container web is starting"},
		"healthy":   {quadlet, func(int) string { return "id1|web||web.service|running|0|0|Up 9 seconds (healthy)\n" }, ""},
		"by systemd": {quadlet, func(int) string { // which knows better than a look of a moment ago
			return "id1|web||web.service|exited|1|0|Exited (1)\n"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := stocked(t)
			w.contains = func(look int) string { return other + c.shown(look) }
			c.spec.Applications["web"].Health = &schema.Health{Timeout: span(5 * time.Second), StableFor: span(2 * time.Second)}
			err := w.agent().update(c.spec)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || failure.From(err).Class != schema.ClassPermanent || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// What the report tells of it is no reason to start anything, and podman is
// asked once for all.
func TestContainersAreTold(t *testing.T) {
	w := stocked(t)
	spec := specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "")}, "db": {"db.container": container("reg/db@sha256:d1", "")}})
	w.must(spec)
	w.contains = func(int) string { return "id1|web||web.service|running|0|0|Up 9 seconds (unhealthy)\n" }
	w.contents = 0
	states, err := w.agent().States(context.Background(), spec)
	if err != nil || states[1].State != schema.ApplicationRunning || states[1].Reason != "the container web is unhealthy" || states[0].Reason != "" {
		t.Errorf("they are %+v, %v", states, err)
	}
	if w.contents != 1 {
		t.Errorf("podman was asked %d times", w.contents)
	}
	if got, err := w.agent().Repair(context.Background(), spec, false); err != nil || len(got) > 0 {
		t.Errorf("repaired is %q, %v", got, err)
	}
}
