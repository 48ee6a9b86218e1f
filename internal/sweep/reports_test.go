package sweep

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// Bad reports of whom the fleet does not know are one line of the log, however
// many there are; that of a device is a line of its own.
func TestRefusedReportsOfStrangers(t *testing.T) {
	w := newWorld(t, 2)
	var logs bytes.Buffer
	d := w.daemon(func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	w.rounds(d, 2)
	bad := map[string][]byte{"report.yaml": []byte("x: [")}
	for i := range 50 {
		w.repo.force(schema.DefaultReportRefs+fmt.Sprintf("nobody-%02d", i), bad)
	}
	w.repo.force(schema.DefaultReportRefs+w.ids()[0], bad)
	logs.Reset()
	w.sweep(d)
	w.sweep(d)
	text := logs.String()
	if n := strings.Count(text, "a report is refused"); n != 1 {
		t.Errorf("%d reports are told one by one, want 1", n)
	}
	if n := strings.Count(text, "level=WARN msg=\"reports of no device of the fleet are refused\" count=50"); n != 1 || strings.Contains(text, "nobody-20") {
		t.Errorf("the others are told %d times:\n%s", n, text)
	}
}

// Which image a device pulls is in its report, and makes no commit.
func TestPullsAreNotWrittenDown(t *testing.T) {
	w, d, gw := settled(t, 3)
	attempt := gw.read().Attempt
	gw.report(schema.Report{Attempt: attempt, Phase: schema.PhasePreparing})
	if !w.sweep(d).Committed {
		t.Error("that it prepares itself is no commit")
	}
	gw.report(schema.Report{Attempt: attempt, Phase: schema.PhasePreparing, Reason: "pulling image 2 of 3: example.com/web:1"})
	if w.sweep(d).Committed {
		t.Errorf("the image is a commit:\n%s", w.describe())
	}
}
