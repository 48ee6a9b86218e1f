package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder whose names alone were listed has the problems of one that was read
// for its content ids.
func TestNamesAreEnoughForProblems(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range bigFleet(40).files {
		write(name, text)
	}
	write("devices/a/gw-00001.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: gw-00001}\n")
	write("devices/a/broken.yaml", "a: [\n")
	write("devices/a/empty.yaml", "")
	write("devices/a/huge.yaml", strings.Repeat("# x\n", maxDocument/4)+"\n")
	write("devices/a/long.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: long, labels: {role: gateway}}\n"+
		strings.Repeat("# x\n", maxPlainDocument/4)+"spec: {vars: {a: 1}}\n")
	write("devices/a/sources.yaml", "apiVersion: gitopsd.dev/v1alpha1\nkind: Device\nmetadata: {name: sources}\nspec:\n  desired:\n    files:\n"+
		"      /a: {source: ./big}\n      /b: {source: ./link}\n      /c: {source: ./none}\n      /d: {source: ./nested/x}\n")
	write("devices/a/nested/.git/HEAD", "ref: refs/heads/main\n")
	write("devices/a/stray", "x")
	write("devices/a/big", "")
	if err := os.Truncate(filepath.Join(dir, "devices/a/big"), maxPayload+1); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"devices/a/link", "devices/link.yaml", "devices/a/stray-link"} {
		if err := os.Symlink("/etc/passwd", filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	read, err := DirSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := load(t, read)
	names, err := DirNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	sameProblemsOnly(t, names, want)
	for _, rule := range []string{ruleDuplicateID, ruleSyntax, ruleEmpty, ruleTooLarge, ruleType, ruleSourceSize, ruleSourceKind, ruleSourceMissing, ruleStrayFile, ruleNotRegular} {
		if !strings.Contains(lines(want.Problems), " "+rule+": ") {
			t.Errorf("nothing in this folder breaks the rule %s:\n%s", rule, lines(want.Problems))
		}
	}
}

// What reads ahead ends with the Load, also where that cannot go on.
func TestReadersEndWithTheLoad(t *testing.T) {
	src := bigFleet(1000)
	src.files["devices/site-50/odd.yaml"] = "a: [\n" // not read ahead
	src.fail = "devices/site-50/odd.yaml"
	if _, err := (&Loader{ProblemsOnly: true, Readers: 4}).Load(src); err == nil || !strings.Contains(err.Error(), errFake.Error()) {
		t.Fatalf("got %v", err)
	}
	before := src.reads.Load()
	if before == 0 || before > 1000 {
		t.Errorf("%d reads", before)
	}
	src.fail = ""
	got, err := (&Loader{ProblemsOnly: true, Readers: 4}).Load(src)
	if err != nil || got.Valid() || len(got.Devices) != 1001 {
		t.Fatalf("%v, %d devices:\n%s", err, len(got.Devices), lines(got.Problems))
	}
}

// What surely fits is what would not have been tried as an assignment.
func TestWhatSurelyFits(t *testing.T) {
	sure := 0
	for _, text := range []string{"x", `"`, `":`, "\x01", ":", "ä\u2028", strings.Repeat(`":`, 400), strings.Repeat("\x01", 1000), strings.Repeat("<", 17_000)} {
		for n := 1; n < 2000; n *= 3 {
			files := map[string]any{}
			for i := range n {
				files[text+itoa(i)] = map[string]any{"content": text, "list": []any{text, int64(1) << 52, 1.5e300, true, nil}}
			}
			spec := map[string]any{"files": files}
			if !surelyFits(spec) {
				continue
			}
			sure++
			out, err := canonicalJSON(spec)
			if err != nil || len(out) > largeSpec || strings.Count(string(out), `":`) >= largeMap {
				t.Errorf("%d times %.20q: %d bytes, %d colons, %v", n, text, len(out), strings.Count(string(out), `":`), err)
			}
		}
	}
	if sure < 10 {
		t.Errorf("only %d are sure", sure)
	}
}

// Devices with equal labels share a member, but the first ones of them, which a
// problem may name, and what is wrong with one of them is said of it alone.
func TestDevicesThatAreAlikeShareAMember(t *testing.T) {
	src := bigFleet(1000)
	src.files["devices/site-50/odd.yaml"] = "a: [\n"
	fleet, err := (&Loader{ProblemsOnly: true, Readers: 2}).Load(src)
	if err != nil {
		t.Fatal(err)
	}
	members := map[*Member]bool{}
	byLabels := map[*Device]map[*Member]bool{}
	for _, m := range fleet.Devices {
		members[m] = true
		if byLabels[m.Device] == nil {
			byLabels[m.Device] = map[*Member]bool{}
		}
		byLabels[m.Device][m] = true
	}
	for d, own := range byLabels {
		if len(own) > maxNamed {
			t.Errorf("%d members of devices with the labels %v", len(own), d.Metadata.Labels)
		}
	}
	if most := maxNamed * len(byLabels); len(fleet.Devices) != 1001 || len(members) > most || len(members) < len(byLabels) {
		t.Errorf("%d devices have %d members, at most %d are wanted", len(fleet.Devices), len(members), most)
	}
}
