package schema

import (
	"archive/zip"
	"go/build"
	"path/filepath"

	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWeekdays(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "0123456",
		"Mon":                 "1",
		"monday Tue WED":      "123",
		"Mon-Fri":             "12345",
		"Fri-Mon":             "0156",
		"Sunday-Saturday":     "0123456",
		"Sun-Sun":             "0",
		"Mon-Wed Tue-Thu":     "1234",
		"Mon Mon":             "1",
		"none":                "",
		"Mon-none":            "",
		"Tues":                "",
		"Mon-Tue-Wed":         "",
		"sat-SUN":             "06",
		"Thursday-Fri Sunday": "045",
	} {
		w := Window{Days: strings.Fields(text)}
		var got strings.Builder
		for _, d := range w.Weekdays() {
			got.WriteByte(byte('0' + d))
		}
		if got.String() != want {
			t.Errorf("%q is %q, want %q", text, got.String(), want)
		}
	}
}

// What the schema takes for a day is one, and the other way round.
func TestDaysOfTheSchema(t *testing.T) {
	accepted := func(text string) bool {
		doc := "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec: {windows: [{days: ['" + text + "'], start: '22:00', duration: 1h, timeZone: UTC}]}\n"
		return len(Decode("p.yaml", []byte(doc), &Policy{})) == 0
	}
	names := []string{"Mon", "mon", "MONDAY", "Tue", "tuesday", "Wed", "Wednesday", "Thu", "Thursday", "Fri", "friday", "Sat", "Saturday", "Sun", "SUNDAY", "Tues", "Mo", "", "Monda", "x", "1"}
	for _, a := range names {
		for _, text := range []string{a, a + "-Sun", "Sun-" + a, a + " - Sun"} {
			_, _, ok := dayRange(text)
			if got := accepted(text); got != ok {
				t.Errorf("%q: the schema says %t, the reader %t", text, got, ok)
			}
		}
	}
}

func TestStartOfDay(t *testing.T) {
	for text, want := range map[string]time.Duration{"00:00": 0, "22:30": 22*time.Hour + 30*time.Minute, "23:59": 24*time.Hour - time.Minute} {
		if got := (&Window{Start: text}).StartOfDay(); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// Every zone of the list is one, whatever the host has, and only one spelling
// of it is.
func TestZones(t *testing.T) {
	names := strings.Fields(zoneNames)
	if !slices.IsSorted(names) || len(names) < 500 {
		t.Fatalf("%d names, sorted: %t", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		if loc, err := location(name); err != nil || loc.String() != name {
			t.Errorf("%s: %v, %v", name, loc, err)
		}
	}
	if zip, err := zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip")); err == nil {
		var compiledIn []string
		for _, f := range zip.File {
			if !strings.HasSuffix(f.Name, "/") && f.Name != "Factory" {
				compiledIn = append(compiledIn, f.Name)
			}
		}
		slices.Sort(compiledIn)
		if diff := cmp.Diff(compiledIn, names); diff != "" {
			t.Errorf("zones.txt is not what the toolchain compiles in:\n%s", diff)
		}
	} else {
		t.Logf("the list is not compared with the toolchain's: %v", err)
	}
	for _, name := range []string{"", "Local", "right/UTC", "posix/UTC", "Factory", "local", "utc", "europe/berlin", "../UTC", "/etc/localtime", "Europe/../UTC", "Europe//Berlin", "Europe/Berlin/", "Europe", "posixrules", "zone.tab", "tzdata.zi", "\x00", "UTC\n", strings.Repeat("a/", 5000)} {
		if loc, err := location(name); err == nil {
			t.Errorf("%q is the zone %s", name, loc)
		}
	}
}

// The zones of a fleet are loaded once, and stay while something names them.
func TestLocations(t *testing.T) {
	policy := func(zone string) string {
		return "apiVersion: gitopsd.dev/v1alpha1\nkind: Policy\nmetadata: {name: gateways}\nspec: {selector: {matchLabels: {role: gateway}}, targetVersion: v1.5.0, windows: [{start: '22:00', duration: 1h, timeZone: " + zone + "}]}\n"
	}
	l := &Loader{}
	load := func(zone string) *Fleet {
		f, err := l.Load(repoOf(ruleFleet).with("policies/gateways.yaml", policy(zone)))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, again := load("Europe/Berlin"), load("Europe/Berlin")
	if loc := first.Location("Europe/Berlin"); loc == nil || loc.String() != "Europe/Berlin" || loc != again.Location("Europe/Berlin") {
		t.Errorf("the zone is %v, then %v", loc, again.Location("Europe/Berlin"))
	}
	if loc := first.Location("UTC"); loc != nil {
		t.Errorf("a zone that no window names is %v", loc)
	}
	if f := load("Europe/Berln"); f.Valid() || f.Location("Europe/Berln") != nil || len(l.zones) != 0 {
		t.Errorf("an unknown zone is %v, with the problems %s; %d are kept", f.Location("Europe/Berln"), lines(f.Problems), len(l.zones))
	}
}
