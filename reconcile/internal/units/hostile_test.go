package units

import (
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// What names lead elsewhere, or say more than a name, is refused before systemd
// is asked anything.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		"", ".service", "..", "../x.service", "/etc/x.service", "a/b.service", "a\nb.service", "a\x1b[2Jb.service", "a\x00.service", "--root=/x.service",
		"a b.service", "a*.service", "a;b.service", "$(a).service", "a\u202eb.service", "a", "a.target.wants", "@.service", strings.Repeat("a", 300) + ".service",
		`a\x2f..\x2fb`, "a%n.service", "gitopsd-agent.service",
	} {
		text := "[Service]\nExecStart=/x\n"
		specs := map[string]*schema.Spec{
			"unit":    {Units: map[string]*schema.Unit{name: {Body: schema.Body{Content: &text}}}},
			"drop-in": {Units: map[string]*schema.Unit{"a.service": {DropIns: map[string]*schema.Body{name + "/": body(text)}}}},
			"restart": {Files: map[string]*schema.File{"/etc/x": file("x", []string{name}, nil)}},
		}
		for what, spec := range specs {
			d := newDevice(t)
			root, _, c := d.open()
			err := c.Check(t.Context(), whole(spec), Plan{})
			root.Close()
			if f := failure.From(err); err == nil || f.Class != schema.ClassPermanent {
				t.Errorf("%s %q: %v", what, name, err)
			}
			if log := d.logged(); log != "" {
				t.Errorf("%s %q: systemd was told %s", what, name, log)
			}
		}
	}
}
