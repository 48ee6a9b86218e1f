package apps

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// What an application said in an earlier attempt, or as it was stopped, is not
// why it does not work now.
func TestWordsSinceTheSwitch(t *testing.T) {
	w := stocked(t)
	w.must(one)
	var stopped time.Duration
	w.step = func(what string) error {
		if what == "stop web.service" {
			stopped = units.Clock()
		}
		return nil
	}
	err := w.agent().update(bad)
	if len(w.asked) != 1 || !slices.Equal(w.asked[0].Units, []string{"web.service"}) || stopped == 0 || w.asked[0].Since <= stopped {
		t.Errorf("stopped at %v, the words of %+v were asked for", stopped, w.asked)
	}
	if f := failure.From(err); f.Output != "said by web.service" {
		t.Errorf("the words are %q", f.Output)
	}
}

// One that runs and is not well by its health check has words of its own, too.
func TestWordsOfWhatRunsUnwell(t *testing.T) {
	unwell := &schema.Health{Command: []string{"bad"}, Timeout: span(5 * time.Second)}
	for name, c := range map[string]struct {
		spec *schema.Spec
		want string
	}{
		"a quadlet":      {specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", "")}}), "said by web.service"},
		"two of them":    {specOf(map[string]map[string]string{"web": {"web.container": container("reg/web:1", ""), "db.container": container("reg/web:1", "")}}), "said by db.service and web.service"},
		"a compose file": {composeSpec(map[string]string{"web": services("reg/web:1")}), "nothing works here"},
		"of two":         {composeSpec(map[string]string{"web": services("reg/web:1", "reg/web:1")}), "web_s0_1 | nothing works here\nweb_s1_1 | nothing works here"},
	} {
		t.Run(name, func(t *testing.T) {
			w := stocked(t)
			c.spec.Applications["web"].Health = unwell
			err := w.agent().update(c.spec)
			if err == nil || sorted(failure.From(err).Output) != c.want || !strings.Contains(err.Error(), "not well") {
				t.Fatalf("got %v\nwant it with %q", err, c.want)
			}
			if slices.ContainsFunc(w.asked, func(of units.Starts) bool { return len(of.Running) == 0 || slices.Contains(of.Running, "") }) {
				t.Errorf("asked for %+v, and not for what was said before the switch by what ran then", w.asked)
			}
		})
	}
}

// sorted are lines, whose order podman does not promise.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
