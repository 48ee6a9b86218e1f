package view

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/schema"
)

func fleetText(t *testing.T, st Status, look Look) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteFleet(&b, NewFleet("main", st), look); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wantText(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("want %q in\n%s", w, got)
		}
	}
}

// Until its report speaks of the attempt, a device's phase is of another one.
func TestFleetTextToldButNotBegun(t *testing.T) {
	st := halted()
	st.Fleet.Rollouts[1].InFlight = []schema.InFlight{{Device: "gw-2", Attempt: 4, Version: "v1.5.0", Since: *at(-3)}}
	st.Devices["devices/oslo/gw-2.yaml"] = status("gw-2", "Upgrading", "to v1.5.0", func(d *schema.DeviceStatus) {
		d.Observed.Attempt = 3
		d.Attempts = []schema.Attempt{{Attempt: 4, Version: "v1.5.0", AssignedAt: *at(-3)}}
	})
	wantText(t, fleetText(t, st, Look{}), "MOVING\ngw-2  v1.5.0 told to go at 11:57Z, not begun\n")
}

// A device that waits for its next try says after what.
func TestFleetTextMovingSaysWhy(t *testing.T) {
	st := halted()
	st.Devices["devices/oslo/gw-2.yaml"] = status("gw-2", "Upgrading", "to v1.5.0", func(d *schema.DeviceStatus) {
		d.Observed.Attempt, d.Observed.Phase, d.Observed.Since = 4, schema.PhaseDegraded, *at(-8)
		d.Observed.Reason = "a retry is due after applications edge: no image"
		d.Attempts = []schema.Attempt{{Attempt: 4, Version: "v1.5.0", AssignedAt: *at(-9)}}
	})
	wantText(t, fleetText(t, st, Look{}), "MOVING\ngw-2  v1.5.0 Degraded since 11:52Z: a retry is due after applications edge: no image\n")
}

// The columns add up, and say what the lists below them say.
func TestFleetTextCountsEveryDevice(t *testing.T) {
	st := halted()
	st.Fleet.Rollouts[1].Attention = 0 // as a daemon of another mind counts
	st.Devices["devices/gw-7.yaml"] = status("gw-7", "Newer", "newer", nil)
	st.Devices["devices/gw-8.yaml"] = status("gw-8", "Duplicate", "two installations report", nil)
	st.Devices["devices/gw-9.yaml"] = status("gw-9", "Excluded", "no policy selects it", func(d *schema.DeviceStatus) { d.Policy = "" })
	wantText(t, fleetText(t, st, Look{}),
		"gateways  v1.5.0  HALTED  1/8   0       3        2          2\n",
		"gw-8  Duplicate: two installations report\n",
		"WAITING  2 halted · 1 never seen\n",
		"LEFT ALONE  1 excluded · 1 held · 1 newer\n")
	for path, d := range st.Devices {
		if d.Verdict.Code != "Current" {
			delete(st.Devices, path)
		}
	}
	if text := fleetText(t, st, Look{}); strings.Contains(text, "LEFT ALONE") {
		t.Errorf("nobody is left alone in\n%s", text)
	}
}

func TestFleetTextSaysWhatWasNotSwept(t *testing.T) {
	st := halted()
	st.Head = st.Fleet.SourceCommit
	if text := fleetText(t, st, Look{}); strings.Contains(text, "not swept") {
		t.Errorf("everything was swept:\n%s", text)
	}
	st.Head = "bbbbbbbbbbbb"
	wantText(t, fleetText(t, st, Look{}), "\nmain is at bbbbbbb, which was not swept yet\n")
	st.Ahead = 1
	wantText(t, fleetText(t, st, Look{}), "\nmain is at bbbbbbb, which was not swept yet: 1 commit ahead\n")
	st.Ahead = 3
	wantText(t, fleetText(t, st, Look{}), "not swept yet: 3 commits ahead\n")
}

func TestHoldsThatTheVerdictDoesNotNameAreTold(t *testing.T) {
	st := halted()
	st.Holds = map[string]string{"devices/gw-1.yaml": "disk being replaced", "devices/gw-5.yaml": "disk"}
	st.Devices["devices/gw-1.yaml"].Observed.Held = "on the bench"
	wantText(t, fleetText(t, st, Look{}), "ALSO HELD  gw-1: disk being replaced · gw-1: on the bench (on the device)\n")

	e := Explain(Question{Path: "devices/gw-1.yaml", Status: st, Source: func(file, field string) (string, int) {
		if file == "devices/gw-1.yaml" && field == "hold" {
			return `hold: {reason: "disk being replaced"}`, 9
		}
		return field + " is not set", 0
	}})
	var b bytes.Buffer
	if err := WriteExplanation(&b, e, Look{}); err != nil {
		t.Fatal(err)
	}
	wantText(t, b.String(),
		"         also held: disk being replaced   devices/gw-1.yaml:9 hold: {reason: \"disk being replaced\"}\n",
		"         also held: on the bench (on the device)\n")
}

// The brake's hold stands in the brake, and a hold that stands nowhere has no
// place.
func TestAlsoHeldByTheBrakeNamesTheBrake(t *testing.T) {
	st := halted()
	st.Holds = map[string]string{"devices/gw-1.yaml": "by the brake: stop!"}
	nothing := func(_, field string) (string, int) { return field + " is not set", 0 }
	q := Question{Path: "devices/gw-1.yaml", Status: st, Source: nothing, Brake: []byte("devices:\n  gw-1: stop!\n")}
	wantText(t, explainText(t, q), "also held: by the brake: stop!   gitopsd/brake:brake.yaml:2 gw-1: stop!\n")
	q.Brake = nil
	wantText(t, explainText(t, q), "also held: by the brake: stop!\n")
}

// What a person has to copy works on the fleet that was asked about.
func TestSuggestedCommandsNameTheRepository(t *testing.T) {
	st := halted()
	wantText(t, fleetText(t, st, Look{Again: "--repo fleet.git"}), "next: gitopsd explain gw-3 --repo fleet.git\n")
	for i := range listed + 3 {
		id := "gw-1" + strings.Repeat("0", i)
		st.Devices["devices/"+id+".yaml"] = status(id, "ByHand", "too old", nil)
	}
	wantText(t, fleetText(t, st, Look{Again: "--repo fleet.git"}), "\nand 4 more: gitopsd status -o json --repo fleet.git\n")
}

// Nothing of what a device said is lost on a narrow terminal, and what
// somebody wrote for the reader comes first.
func TestFailuresFitTheTerminal(t *testing.T) {
	const columns = 68
	st := halted()
	st.Devices["devices/berlin/gw-3.yaml"].Attempts[1].Stage = "POST-ACTION"
	st.Devices["devices/berlin/gw-3.yaml"].Attempts[1].Message = "the device reports that it failed: hooks afterUpdating/check: " +
		"the modem answers on /dev/ttyUSB2, and not on the port that the configuration names (/bin/sh ended with exit code 1)"
	text := fleetText(t, st, Look{Width: columns})
	wantText(t, text, "gw-3  Failed v1.5.0 11:55Z: the modem answers on /dev/ttyUSB2, and\n",
		"(afterUpdating/check, exit code 1); on v1.4.2, Updated\n")
	e := Explain(Question{Path: "devices/berlin/gw-3.yaml", Status: st, Source: func(_, field string) (string, int) {
		if field == fieldHold {
			return "", 0
		}
		return field + ": 1", 20
	}})
	var b bytes.Buffer
	if err := WriteExplanation(&b, e, Look{Width: columns}); err != nil {
		t.Fatal(err)
	}
	wantText(t, b.String(), "because  attempt 2 failed v1.5.0 at 11:55Z: the modem answers on\n         /dev/ttyUSB2,", "\n         policies/gateways.yaml:20 maxAttempts: 1\n")
	for line := range strings.Lines(text + b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// A line fits the terminal, down to 40 columns; what stands in a column that
// was left out is told below the table. Commands to copy stay whole.
func TestFleetFitsTheTerminal(t *testing.T) {
	st := halted()
	st.Holds = map[string]string{"devices/gw-1.yaml": "disk being replaced", "devices/gw-5.yaml": "disk"}
	st.Head, st.Ahead = "bbbbbbbbbbbb", 3
	st.Fleet.Conditions = []schema.Condition{{Type: "Stopped", Reason: "TooManyDeletions", Message: "12 of 20 devices are gone since the swept commit aaaaaaaaaaaa:\n  gw-1, gw-2 and 10 more",
		Remedy: "bring them back, or say in a commit message that it is meant: Gitopsd-Accept-Deletions: 12"}}
	st.Devices["devices/gw-7.yaml"] = status("gw-7", "Newer", "newer", nil)
	st.Devices["devices/oslo/gw-2.yaml"] = status("gw-2", "Upgrading", "to v1.5.0", func(d *schema.DeviceStatus) {
		d.Attempts = []schema.Attempt{{Attempt: 4, Version: "v1.5.0", AssignedAt: *at(-3)}}
	})
	st.Devices["devices/berlin/gw-3.yaml"].Attempts[1].Message = "the device reports that it failed: hooks afterUpdating/check: the modem does not answer (/bin/sh ended with exit code 1)"
	for width, columns := range map[int]string{
		40:  "POLICY    TARGET  STATE   DONE\n",
		60:  "POLICY    TARGET  STATE   DONE  MOVING  WAITING  ATTENTION\n",
		80:  "POLICY    TARGET  STATE   DONE  MOVING  WAITING  ATTENTION  LEFT ALONE\n",
		120: "POLICY    TARGET  STATE   DONE  MOVING  WAITING  ATTENTION  LEFT ALONE\n",
	} {
		text := fleetText(t, st, Look{Width: width})
		wantText(t, text, columns, "gateways  v1.5.0  HALTED  1/", "Stopped (TooManyDeletions): ", "  gw-1, gw-2 and 10 more\n", "\nATTENTION\ngw-3", "\nMOVING\ngw-2", "LEFT ALONE  1 ")
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("width %d: %d columns: %q", width, n, line)
			}
		}
	}
}

func TestSaid(t *testing.T) {
	for _, c := range []struct{ message, stage, want string }{
		{"the device reports that it failed: hooks afterUpdating/check: no good (/bin/sh ended with exit code 1)\nmore", "POST-ACTION", "no good (afterUpdating/check, exit code 1)"},
		{"it came back and reports that it failed: no space", "", "no space"},
		{"the device reports that it failed", "APPLY", "the device reports that it failed (APPLY)"},
		{"no answer", "POST-ACTION", "no answer (after the update)"},
		{"", "PRE-CHECK", "before the update"},
		{"hooks beforeUpdating/x: /bin/false ended with exit code 1", "", "hooks beforeUpdating/x: /bin/false ended with exit code 1"},
		{"", "APPLY", "APPLY"}, {"", "", ""},
	} {
		if got := said(c.message, c.stage); got != c.want {
			t.Errorf("said(%q, %q) = %q, want %q", c.message, c.stage, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two", 0, "one two"}, {"one two", 7, "one two"}, {"one two", 6, "one|two"}, {"one two", 3, "one|two"},
		{"abcdefgh ij", 4, "abcd|efgh|ij"}, {"", 5, ""}, {"  a b", 3, "  a|b"}, {"ü ü ü", 3, "ü ü|ü"},
	} {
		if got := strings.Join(Wrap(c.text, c.width), "|"); got != c.want {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
	if lines := Wrap(strings.Repeat("x", 10000), 20); len(lines) != longestText || !strings.HasSuffix(lines[longestText-1], "…") {
		t.Errorf("a hostile text fills %d lines, the last one %q", len(lines), lines[len(lines)-1])
	}
}

// A device that left is no device of its policy; that it goes on to count for a
// halt is said, because it stands in no list.
func TestFleetTextTellsWhoLeft(t *testing.T) {
	st := halted()
	left := st.Devices["devices/berlin/gw-3.yaml"]
	left.Verdict = schema.Verdict{Code: "Excluded", Reason: "removed from the fleet repository"}
	st.Gone = map[string]bool{"devices/berlin/gw-3.yaml": true}
	text := "gateways  v1.5.0  HALTED  1/5   0       3        0          1\n"
	wantText(t, fleetText(t, st, Look{}), text, "gateways: halted by gw-3, which has left the fleet; gitopsd retry gateways forgets it\n", "LEFT ALONE  1 held · 1 removed from the fleet\n")
	delete(st.Devices, "devices/berlin/gw-3.yaml") // its record is put away
	wantText(t, fleetText(t, st, Look{}), text, "gateways: halted by gw-3, which has left the fleet")
}
