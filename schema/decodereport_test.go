package schema

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// A newer agent is not silent because of what it says more.
func TestReportOfANewerAgent(t *testing.T) {
	text := string(example(t, KindReport))
	newer := strings.Replace(text, `"metadata":{`, `"power":{"source":"mains"},"failures":[{"attempt":3,"stage":"x","class":"permanent","message":"m","tries":1,"since":1}],"metadata":{"uid":"7",`, 1)
	newer = strings.Replace(newer, `"current":{`, `"current":{"channel":"edge",`, 1)
	var r Report
	problems := DecodeReport("report.yaml", []byte(newer), &r)
	if hasErrors(problems) || len(problems) != 4 || r.Metadata.Name != "gw-berlin-01" || len(r.Failures) != 1 || r.Current.Version != "v1.4.2" {
		t.Errorf("%+v\n%s", r, lines(problems))
	}
	for _, p := range problems {
		if p.Severity != SeverityWarning || p.Rule != ruleUnknownField || p.Line == 0 || p.File != "report.yaml" {
			t.Errorf("%+v", p)
		}
	}
	if problems := Decode("report.yaml", []byte(newer), &Report{}); !hasErrors(problems) {
		t.Error("the strict decoder takes it too")
	}
	var plain, same Report
	if problems := Decode("x", []byte(text), &plain); len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	if problems := DecodeReport("x", []byte(text), &same); len(problems) > 0 || !reflect.DeepEqual(plain, same) {
		t.Errorf("%s\n%+v\n%+v", lines(problems), plain, same)
	}
}

// Nothing else of a report is taken more lightly.
func TestReportStaysStrict(t *testing.T) {
	text := string(example(t, KindReport))
	for _, c := range []struct{ old, new, want string }{
		{`"phase":"Updated"`, `"phase":"Dancing"`, ruleValue},
		{`"sequence":91`, `"sequence":9007199254740992`, ruleNumber},
		{`"sequence":91`, `"sequence":0091`, ruleNumber},
		{`"sequence":91`, `"sequence":-1`, ruleRange},
		{`"sequence":91`, `"seq":91`, ruleMissingField},
		{`"sequence":91`, `"sequence":91,"sequence":92`, ruleDuplicate},
		{`"reportedAt":"2026-11-29T10:02:00Z"`, `"reportedAt":"0000-01-01T00:00:00+23:59"`, ruleRange},
		{`"kind":"Report"`, `"kind":"Device"`, ruleKind},
		{`"capabilities":["files"]`, `"capabilities":{"files":1}`, ruleType},
		{`"metadata":{`, `"metadata":[],"x":{`, ruleType},
	} {
		doc := strings.Replace(text, c.old, c.new, 1)
		if doc == text {
			t.Fatalf("%s is not in %s", c.old, text)
		}
		r := Report{Sequence: 5}
		problems := DecodeReport("report.yaml", []byte(doc), &r)
		if !hasErrors(problems) || !strings.Contains(lines(problems), c.want) || r.Sequence != 5 {
			t.Errorf("%s: %s", c.new, lines(problems))
		}
	}
	many := strings.Replace(text, `"metadata":{`, `"metadata":{ `, 1)
	for i := range 3 * maxProblems {
		many = strings.Replace(many, `"metadata":{`, fmt.Sprintf(`"metadata":{"m%d":1,`, i), 1)
	}
	if problems := DecodeReport("report.yaml", []byte(many), &Report{}); hasErrors(problems) || len(problems) != maxProblems+1 {
		t.Errorf("%d problems: %s", len(problems), lines(problems[:1]))
	}
}
