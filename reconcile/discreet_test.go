package reconcile

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/secrets"
)

// What programs have read they tell: the hooks of an update, of which the last
// fails, in its last line, in a long one that is cut, and below. Nothing of it is
// kept, reported or logged, whether the agent was started before or after the
// secret was opened.
func TestSecret_ProgramsTellIt(t *testing.T) {
	const tells = `p="$GITOPSD_ROOT/etc/edge/password"; for n in 1 2 3; do echo "refused for $(cat $p)"; done
echo "mqtt-login=$(cat $p)"; printf '%0200d %s %0100d\n' 0 "$(cat $p)" 0; exit 1`
	for name, c := range map[string]struct {
		point   string
		prepare func(d *secretDevice)
	}{
		"of the update":                   {"afterUpdating", func(*secretDevice) {}},
		"of the one before":               {"beforeUpdating", func(*secretDevice) {}},
		"of the one before, without keys": {"beforeUpdating", (*secretDevice).loseKey},
	} {
		d := onFirst(t)
		c.prepare(d)
		spec := filesSpec(map[string]string{"/etc/edge/beside": "two\n"}, hook(c.point, "/bin/sh", "-c", tells))
		if c.point == "afterUpdating" {
			spec = d.spec(plainTwo, "two\n", hook(c.point, "/bin/sh", "-c", tells))
		}
		d.assign(2, "v1.1.0", spec)
		res := d.wantOnce(1)
		d.shown.WriteString(res.Summary)
		d.silent()
		f := d.control.last().Failures
		if len(f) == 0 || f[0].Component != "hooks" || strings.Count(f[0].Message, "[secret]") < 5 {
			t.Errorf("%s: %+v", name, f)
		}
		if !strings.Contains(d.log.String(), "[secret]") {
			t.Errorf("%s: the log has\n%s", name, d.log.String())
		}
	}
}

// Whatever a logger was given before it is used is told as little.
func TestLogIsDiscreet(t *testing.T) {
	var texts secrets.Texts
	texts.Remember([]byte("marlin-swims-deep\n"))
	var out strings.Builder
	log := slog.New(&discreet{Handler: slog.NewTextHandler(&out, nil), texts: &texts})
	log.With("error", errors.New("refused marlin-swims-deep")).WithGroup("of").With("said", "marlin-swims-deep").Warn("it ends", "line", "marlin-swims-deep")
	if got := out.String(); strings.Contains(got, "marlin") || strings.Count(got, "[secret]") != 3 {
		t.Errorf("the log has %s", got)
	}
}
