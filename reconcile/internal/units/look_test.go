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
