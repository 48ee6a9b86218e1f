package reconcile

import (
	"os"
	"strings"
	"testing"
)

// FuzzLauncher: whatever agent.json says, there is an agent: a whole program of
// the folder of programs, or the one of the package.
func FuzzLauncher(f *testing.F) {
	program := fakeProgram("v1.5.0")
	sum := sumOf(program)
	for _, seed := range []string{
		`{"kept":{"version":"v1.5.0","sha256":"` + sum + `"}}`,
		`{"kept":{"version":"v1.5.0","sha256":"` + sum + `"},"trial":{"attempt":2,"starts":3}}`,
		`{"trial":{"version":"v1.5.0","sha256":"` + sum + `","attempt":2}}`,
		`{"trial":{"sha256":"` + strings.Repeat("0", 64) + `","attempt":2,"later":[]}}`,
		`{"kept":{"sha256":"../../../../bin"}}`, `{"trial":{"starts":-9}}`, "null", "[]", "", "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		d := newDevice(t)
		d.write(programPath(sum), string(program))
		d.write(programsFile, string(record))
		for range maxStarts + 2 {
			l, err := OpenLauncher(d.root, nil)
			if err != nil {
				t.Fatal(err)
			}
			one := l.Next()
			if one.Path != "" && (one.SHA256 != sum || one.Path != d.host(programPath(sum))) || one.Path == "" && one.SHA256 != "" {
				t.Errorf("%q: it starts %+v", record, one)
			}
			if one.Path != "" {
				l.Refused(one, os.ErrPermission)
				if again := l.Next(); again.Path != "" {
					t.Errorf("%q: what cannot be started is started again: %+v", record, again)
				}
			}
			l.Close()
		}
	})
}
