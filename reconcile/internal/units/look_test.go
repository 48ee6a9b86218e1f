package units

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// What would be restarted is known before anything is, and is what then is.
func TestAffected(t *testing.T) {
	d := base(t)
	s := oldSpec()
	s.Files["/etc/more"] = file("more", []string{"user.service", "still.service"}, nil) // still.service does not run
	d.must(s)
	d.logged()
	root, fc, uc := d.open()
	defer root.Close()
	next := whole(oldSpec())
	got, err := uc.Affected(t.Context(), next, fc.Ahead(next, nil))
	if err != nil || fmt.Sprint(got) != "[{try-restart user.service}]" {
		t.Errorf("without a file it is %v, %v", got, err)
	}
	none := whole(&schema.Spec{})
	if got, err = uc.Affected(t.Context(), none, fc.Ahead(none, nil)); err != nil || fmt.Sprint(got) != "[{try-restart own.service} {try-restart user.service}]" {
		t.Errorf("without a spec it is %v, %v", got, err)
	}
	if log := d.logged(); log != "" {
		t.Errorf("looking did %s", log)
	}
	d.must(&schema.Spec{})
	if log := d.logged(); !strings.Contains(log, "restart own.service, try-restart user.service") {
		t.Errorf("then it was %s", log)
	}
}

// Drop-ins of what the device stands on count from its next start on: who would
// restart it with them would stop the agent too.
func TestDropInsOfEssentialUnits(t *testing.T) {
	d := newDevice(t)
	for _, name := range []string{"sysinit.target", "systemd-journald.service"} {
		d.put("usr/lib/systemd/system/"+name, "[Unit]\n")
		if err := d.systemd.Do(t.Context(), Job{Start, name}); err != nil {
			t.Fatal(err)
		}
	}
	d.logged()
	more := map[string]*schema.Body{"a": body("[Unit]\nWants=edge.service\n")}
	d.must(&schema.Spec{Units: map[string]*schema.Unit{"sysinit.target": {DropIns: more}, "systemd-journald.service": {DropIns: more}}})
	root, fc, uc := d.open()
	defer root.Close()
	none := whole(&schema.Spec{})
	if list, err := uc.Affected(t.Context(), none, fc.Ahead(none, nil)); err != nil || fmt.Sprint(list) != "[{try-restart systemd-journald.service}]" {
		t.Errorf("%v %v", list, err)
	}
	d.must(none)
	if got, want := d.logged(), "reload, try-restart systemd-journald.service, reload, try-restart systemd-journald.service"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
