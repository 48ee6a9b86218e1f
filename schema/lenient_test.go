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

// A document of the status branch that a newer daemon wrote is read by an
// older one, and by commands: one field more does not stop a fleet.
func TestStatusOfANewerDaemon(t *testing.T) {
	for _, k := range []Kind{KindDeviceStatus, KindAssignment, KindFleetStatus, KindFailureMarks} {
		text := string(example(t, k))
		newer := strings.Replace(text, `"metadata":{`, `"shard":{"of":3},"metadata":{"uid":"7",`, 1)
		if k == KindFleetStatus {
			newer = strings.Replace(text, `"counts":{`, `"shard":3,"energy":1,"counts":{`, 1)
		}
		plain, got := newKind(t, k), newKind(t, k)
		if problems := Decode("x", []byte(text), plain); len(problems) > 0 {
			t.Fatal(lines(problems))
		}
		problems := DecodeStatus("x", []byte(newer), got)
		if hasErrors(problems) || len(problems) != 2 || !reflect.DeepEqual(plain, got) {
			t.Errorf("%s: %s\n%+v\n%+v", k, lines(problems), plain, got)
		}
		if problems := Decode("x", []byte(newer), newKind(t, k)); !hasErrors(problems) {
			t.Errorf("%s: the strict decoder takes it too", k)
		}
	}
}

// A spec that was published under other rules, or has fields of a later
// version, is passed on as it is; the device that is to act on it refuses it.
func TestStatusKeepsSpecs(t *testing.T) {
	text := string(example(t, KindAssignment))
	newer := strings.Replace(text, `"spec":{`, `"spec":{"sensors":{"a":[1,"2"]},"hooks":{"beforeBreakfast":{"x":{"run":"sh"}}},`, 1)
	var a Assignment
	if problems := DecodeStatus("x", []byte(newer), &a); len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	if got := valueAt(a.Spec, []string{"sensors", "a", "0"}); got != int64(1) || a.Spec["hooks"] == nil || len(a.Spec) != 3 {
		t.Errorf("the spec became %v", a.Spec)
	}
	if problems := Decode("x", []byte(newer), &Assignment{}); !hasErrors(problems) {
		t.Error("a device takes it")
	}
	if _, err := DecodeSpec(a.Spec); err == nil || !strings.Contains(err.Error(), "sensors") {
		t.Errorf("a device would do a part of it: %v", err)
	}
	out, err := Encode(&a)
	if err != nil {
		t.Fatal(err)
	}
	var again Assignment
	if problems := DecodeStatus("x", out, &again); len(problems) > 0 || !reflect.DeepEqual(a, again) {
		t.Errorf("written again it is\n%s\n%s", out, lines(problems))
	}
}

// What decisions and paths rest on is no more lenient than in any document.
func TestStatusStaysStrict(t *testing.T) {
	for _, c := range []struct {
		kind           Kind
		old, new, want string
	}{
		{KindAssignment, `"generation":7`, `"generation":-7`, ruleRange},
		{KindAssignment, `"generation":7`, `"generation":7,"generation":8`, ruleDuplicate},
		{KindAssignment, `"generation":7`, `"generation":07`, ruleNumber},
		{KindAssignment, `"payload":"sha256:`, `"payload":"sha256:../../`, ruleForm},
		{KindAssignment, `"payload":"sha256:`, `"payload":["sha256:"],"x":"`, ruleForm},
		{KindAssignment, `"spec":{`, `"spec":[],"x":{`, ruleType},
		{KindAssignment, `"digest":"sha256:`, `"digest":"md5:`, ruleForm},
		{KindDeviceStatus, `"code":"Queued"`, `"kode":"Queued"`, ruleMissingField},
		{KindDeviceStatus, `"verdict":{`, `"attempts":[{"attempt":3,"outcome":"evaporated"}],"verdict":{`, ruleValue},
		{KindDeviceStatus, `"kind":"DeviceStatus"`, `"kind":"Device"`, ruleKind},
		{KindFleetStatus, `"format":1`, `"format":"1"`, ruleType},
	} {
		text := string(example(t, c.kind))
		doc := strings.Replace(text, c.old, c.new, 1)
		if doc == text {
			t.Fatalf("%s is not in %s", c.old, text)
		}
		v := newKind(t, c.kind)
		if problems := DecodeStatus("x", []byte(doc), v); !hasErrors(problems) || !strings.Contains(lines(problems), c.want) || !reflect.DeepEqual(v, newKind(t, c.kind)) {
			t.Errorf("%s %s: %s", c.kind, c.new, lines(problems))
		}
	}
}
