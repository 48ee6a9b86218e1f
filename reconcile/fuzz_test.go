package reconcile

import (
	"encoding/json"
	"os"
	"path"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// FuzzState: whatever a state file says, the agent goes on, and a file that
// says nothing at all does not keep the device from its next spec.
func FuzzState(f *testing.F) {
	files := []string{installFile, currentFile, attemptsFile, desiredFile, pendingFile, managedFile, programsFile}
	for i, seed := range []string{
		`{"id":"3f6c","sequence":9}`,
		`{"version":"v1.0.0","attempt":1,"generation":1,"spec":{"files":{}}}`,
		`{"format":1,"direction":"forward","ended":[{"attempt":1,"outcome":"ok"}],"work":{}}`,
		`{"version":"v1.1.0","attempt":9223372036854775807,"spec":{"files":{"/etc/../../x":{"content":"x"}}}}`,
		`{"image":"x","deadline":"2026-11-29T10:00:00Z"}`,
		`{"files":{"/etc/edge/edge.conf":null}}`,
		`{"kept":{"version":"v1.5.0","sha256":"../x"},"trial":{"attempt":-1,"starts":9}}`,
	} {
		f.Add(uint8(i), []byte(seed))
		f.Add(uint8(i), []byte(seed[:len(seed)/2]))
		f.Add(uint8(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		d := onV1(t)
		file := files[int(which)%len(files)]
		if err := os.WriteFile(d.host(file), data, 0o600); err != nil {
			t.Fatal(err)
		}
		d.once()
		d.once()
		d.assign(9, "v1.1.0", v2(nil))
		d.once()
		d.once()
		r := d.control.last()
		if r.InstallID == "" {
			t.Errorf("%s %q: it lost its name", path.Base(file), data)
		}
		if json.Valid(data) {
			return // what it says may well be a reason not to go
		}
		if r.Current.Version != "v1.1.0" || r.Outcome != schema.OutcomeOK || d.content("/etc/edge/edge.conf") != "version=2\n" {
			t.Errorf("%s %q: %+v\n%s", path.Base(file), data, r, d.snapshot())
		}
	})
}
