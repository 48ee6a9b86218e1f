package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

func TestSaidText(t *testing.T) {
	many := "it ends"
	for i := range 30 {
		many += fmt.Sprintf("\nline %d", i)
	}
	for _, c := range []struct{ message, want string }{
		{"it ends", ""},
		{"", ""},
		{"it ends\nstarts\nno file\nno file\nno file\n", "starts\nno file (3 times)"},
		{many, "… 20 more before: -o json has them\n" + many[strings.Index(many, "line 20"):]},
		{"it ends\nbegins" + strings.Repeat("\nno file", 60), "begins\nno file (60 times)"},
		{"it ends\nbegins" + strings.Repeat("\nstarts\nno file", 5), "begins\nstarts\nno file (these 2 lines 5 times)"},
		{"it ends\nno file" + strings.Repeat("\nstarts\nno file", 5) + "\nbye\nbye", "no file\nstarts\nno file (these 2 lines 5 times)\nbye (2 times)"},
		{"it ends" + strings.Repeat("\nstarts\nno file\nno file", 2), "starts\nno file\nno file (these 3 lines 2 times)"},
		{many + strings.Repeat(many[strings.Index(many, "\nline 21"):], 3), "… 20 more before: -o json has them\nline 20" + many[strings.Index(many, "\nline 21"):] + " (these 9 lines 4 times)"},
		{"it ends" + strings.Repeat(many[strings.Index(many, "\nline 19"):], 2), "… 12 more before: -o json has them" + many[strings.Index(many, "\nline 20"):]},
	} {
		if got := saidText(c.message); got != c.want {
			t.Errorf("of %q:\n%s\nwant\n%s", c.message, got, c.want)
		}
	}
}

// What a program wrote keeps nothing else from being seen.
func TestStandingBeforeWhatWasSaid(t *testing.T) {
	doc := &deviceStanding{Running: true, Standing: reconcile.Standing{
		Contact: &reconcile.Contact{Answers: true},
		Report:  schema.Report{Phase: schema.PhaseError, Failures: []schema.Failure{{Stage: "POST-ACTION", Tries: 2, Message: "no file (it ended)\nbegins" + strings.Repeat("\nno file", 60)}}},
	}}
	var out bytes.Buffer
	writeStanding(&out, doc, time.Time{}, view.Look{})
	at := -1
	for _, want := range []string{"failure   POST-ACTION: no file (it ended) (2 tries)\n", "control   answers", "said      begins\n          no file (60 times)\n"} {
		next := strings.Index(out.String(), want)
		if next <= at {
			t.Errorf("%q is not there, or not in its place:\n%s", want, out.String())
		}
		at = next
	}
	reasons := (&device{root: "/"}).reasonsOf(doc, time.Time{})
	if got := strings.Join(reasons.Reasons, "\n"); strings.Count(got, "no file") != 61 || reasons.said != "begins\nno file (60 times)" {
		t.Errorf("the JSON has\n%s\nand the text %q", got, reasons.said)
	}
}
