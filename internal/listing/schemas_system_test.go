//go:build system

package listing_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The fast test reads the schema of JUnit by itself; here a program does that
// knows all of XML Schema.
func TestSystemJUnitFollowsItsSchema(t *testing.T) {
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		if os.Getenv("GITOPSD_NO_SKIP") != "" {
			t.Fatal("the program xmllint is missing (Debian: libxml2-utils)")
		}
		t.Skip("the program xmllint is missing (Debian: libxml2-utils)")
	}
	dir := t.TempDir()
	check := func(name, text string) ([]byte, error) {
		file := filepath.Join(dir, name+".xml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return exec.CommandContext(t.Context(), xmllint, "--nonet", "--noout", "--schema", "testdata/junit-4.xsd", file).CombinedOutput()
	}
	for name, r := range results() {
		if out, err := check(name, all(t, r)["junit"]); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if _, err := check("wrong", `<testsuites><testsuite name="x"/></testsuites>`); err == nil {
		t.Error("a suite without a number of tests passes")
	}
}
