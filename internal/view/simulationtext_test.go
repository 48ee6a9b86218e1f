package view

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/simulate"
)

// hostileSimulation has the text in every field.
func hostileSimulation(text string) *simulate.Simulation {
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	end := start.Add(50 * time.Hour)
	progress := simulate.Progress{Devices: 3, Arrived: 1, FirstAt: start, DoneAt: end}
	s := &simulate.Simulation{
		By: text, Start: start, End: end, State: simulate.Unfinished, Total: 3, Arrived: 1, Remaining: 2, DoneAt: end,
		InFlight: simulate.Peak{Devices: 2, At: end}, Working: simulate.Peak{Devices: 1, At: end},
		Never:      []simulate.Obstacle{{Policy: text, Code: text, Reason: text, Detail: text, Devices: []string{text, text, text, text}}},
		BadRelease: &simulate.BadRelease{Started: 1, Policies: []simulate.Reached{{Policy: text, Target: text, Started: 1, Of: 3, LastAt: end}}},
		Devices: []simulate.Device{
			{Device: text, Policy: text, Wave: text, Site: text, Target: text, AssignedAt: start, StartedAt: start, DoneAt: end, Code: "Current", Reason: text},
			{Device: text, Policy: text, Wave: text, Site: text, Target: text, AssignedAt: start, FailedAt: end, Code: text, Reason: text},
		},
	}
	policy := simulate.Policy{Policy: text, Target: text, Progress: progress, Failed: 1, Refused: 1, Halted: true}
	wave := simulate.Wave{Wave: text, Progress: progress}
	for i := range 30 {
		site := fmt.Sprint(text, i)
		wave.Sites = append(wave.Sites, simulate.Site{Site: site, Progress: progress})
		s.Sites = append(s.Sites, simulate.SitePeak{Site: site, Of: 3, Peak: s.InFlight})
	}
	policy.Waves = []simulate.Wave{wave, {Progress: progress, Sites: []simulate.Site{{Site: text, Progress: progress}}}}
	s.Policies = []simulate.Policy{policy, {}}
	return s
}

// What a repository says can neither steer the terminal nor, down to 40
// columns, overflow it.
func TestSimulationFitsAndIsClean(t *testing.T) {
	for _, text := range []string{evil, strings.Repeat("long name ", 20), "x", ""} {
		for _, width := range []int{0, 40, 47, 60, 80, 120, 200} {
			var b bytes.Buffer
			if err := WriteSimulation(&b, hostileSimulation(text), Look{Width: width}); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(b.String(), "\x1b\a\r\t\u202e") {
				t.Errorf("%q: the terminal is steered: %q", text, b.String())
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > 0 && n > width {
					t.Errorf("%d characters in %d columns: %s", n, width, line)
				}
			}
		}
	}
}

// A bar shows what happened in each stretch of time.
func TestBars(t *testing.T) {
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	s := &simulate.Simulation{Start: start, Devices: []simulate.Device{
		{AssignedAt: at(10), DoneAt: at(30), Code: "Current"},
		{AssignedAt: at(30), DoneAt: at(60), Code: "Current"},
		{AssignedAt: at(60), FailedAt: at(80), DoneAt: at(90), Code: "Current"},
		{Current: true, Code: "Current"},
	}}
	text := simulationText{planText{look: Look{}}, s}
	all := func(*simulate.Device) bool { return true }
	first := func(d *simulate.Device) bool { return d.AssignedAt.Equal(at(10)) }
	never := func(d *simulate.Device) bool { return d.AssignedAt.Equal(at(200)) }
	for _, c := range []struct {
		name  string
		in    func(*simulate.Device) bool
		of    int
		width int
		want  string
	}{
		{"all", all, 4, 10, "▃▃▃▅▅▅▇▇×█"},
		{"one", first, 1, 10, " ··███████"},
		{"none", never, 1, 10, "          "},
		{"narrow", all, 4, 1, "×"},
	} {
		r := row{Progress: simulate.Progress{Devices: c.of}, in: c.in}
		if got := text.bar(&r, [2]time.Time{start, at(100)}, c.width); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestLengths(t *testing.T) {
	for d, want := range map[time.Duration]string{
		40 * time.Second: "40s", 65 * time.Second: "1m", time.Hour: "1h", 65 * time.Minute: "1h 5m", 24 * time.Hour: "1d", 51*time.Hour + 20*time.Minute: "2d 3h",
	} {
		if got := lengthText(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}
