package sweep

import (
	"os"
	"regexp"
	"testing"
)

// A sandbox that hides the boot id takes half of the clock's guard away, with
// no more than a warning.
func TestServiceShowsTheBootID(t *testing.T) {
	if _, boot, err := kernelUptime(); err != nil || boot == "" {
		t.Fatalf("the boot id is %q, %v", boot, err)
	}
	unit, err := os.ReadFile("../../packaging/gitopsd.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, hides := range []string{`ProcSubset=pid`, `(Inaccessible|TemporaryFileSystem)\w*=.*/proc`, `RootDirectory=`, `RootImage=`} {
		if found := regexp.MustCompile(`(?m)^` + hides + `.*$`).Find(unit); found != nil {
			t.Errorf("with %s the daemon cannot read %s", found, bootIDFile)
		}
	}
}
