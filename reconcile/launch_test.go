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

// Who starts an agent beside one that runs is told that by it; the start is none
// of the program on trial, which would be given up for it.
func TestStartBesideAnAgentIsNotCounted(t *testing.T) {
	p := onPackage(t)
	p.write(programsFile, `{"trial":{"version":"v1.5.0","sha256":"`+sumOf(fakeProgram("v1.5.0"))+`","attempt":2,"starts":1}}`)
	p.write(programPath(sumOf(fakeProgram("v1.5.0"))), string(fakeProgram("v1.5.0")))
	a := p.agent()
	before := p.content(programsFile)
	for range maxStarts {
		l, err := OpenLauncher(p.root, nil)
		if err != nil {
			t.Fatal(err)
		}
		if one := l.Next(); one != (Launch{}) {
			t.Errorf("it starts %+v", one)
		}
		l.Close()
	}
	if got := p.content(programsFile); got != before {
		t.Errorf("the record is %s, was %s", got, before)
	}
	a.Close()
	l, err := OpenLauncher(p.root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if one := l.Next(); one.Path == "" || !strings.Contains(p.content(programsFile), `"starts":2`) {
		t.Errorf("alone it starts %+v with %s", one, p.content(programsFile))
	}
}
