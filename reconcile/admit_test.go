package reconcile

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/schema"
)

// Each rule of what may begin has a document that it lets through and one
// that it stops.
func TestAdmit(t *testing.T) {
	f := facts{device: "gw-1", install: "me", generation: 7, ended: 3, currentAttempt: 2, version: "v1", digest: "d1", onCurrent: true}
	doc := func(change func(a *schema.Assignment)) schema.Delivery {
		a := &schema.Assignment{
			Metadata: schema.Metadata{Name: "gw-1"}, Generation: 8, For: "me", Attempt: 4, Version: "v2", Digest: "d2", Spec: tree{"files": tree{}},
		}
		if change != nil {
			change(a)
		}
		return schema.Delivery{Revision: "r", Assignment: a}
	}
	desired := f
	desired.desired, desired.desiredDigest = 4, "d2"
	half := f
	half.onCurrent = false
	for _, c := range []struct {
		name  string
		facts facts
		d     schema.Delivery
		want  admission
	}{
		{"a newer attempt", f, doc(nil), admitBegin},
		{"the same generation again", f, doc(func(a *schema.Assignment) { a.Generation = 7 }), admitBegin},
		{"an older generation", f, doc(func(a *schema.Assignment) { a.Generation = 6 }), admitNothing},
		{"an attempt that ended", f, doc(func(a *schema.Assignment) { a.Attempt = 3 }), admitSame},
		{"an older attempt", f, doc(func(a *schema.Assignment) { a.Attempt = 1 }), admitSame},
		{"the current attempt", f, doc(func(a *schema.Assignment) { a.Attempt = 2 }), admitSame},
		{"another installation", f, doc(func(a *schema.Assignment) { a.For = "other" }), admitDrop},
		{"another device", f, doc(func(a *schema.Assignment) { a.Metadata.Name = "gw-2" }), admitNothing},
		{"a hold", f, doc(func(a *schema.Assignment) { a.Hold = &schema.Reason{} }), admitHold},
		{"a recall", f, doc(func(a *schema.Assignment) { a.Spec, a.Recalled = nil, 4 }), admitDrop},
		{"a removal", f, doc(func(a *schema.Assignment) { a.Spec, a.Removed = nil, true }), admitDrop},
		{"no ref", f, schema.Delivery{}, admitNothing},
		{"what it is already", f, doc(func(a *schema.Assignment) { a.Version, a.Digest = "v1", "d1" }), admitDone},
		{"the same version, other content", f, doc(func(a *schema.Assignment) { a.Version = "v1" }), admitBegin},
		{"what it should be already, but is not", half, doc(func(a *schema.Assignment) { a.Version, a.Digest = "v1", "d1" }), admitBegin},
		{"the desired attempt", desired, doc(nil), admitGoOn},
		{"the desired attempt, held", desired, doc(func(a *schema.Assignment) { a.Hold = &schema.Reason{} }), admitHold},
		{"the desired attempt with another digest", desired, doc(func(a *schema.Assignment) { a.Digest = "d3" }), admitNothing},
		{"a newer attempt of the desired digest", desired, doc(func(a *schema.Assignment) { a.Attempt = 5 }), admitBegin},
		{"back to what it is while something is desired", desired, doc(func(a *schema.Assignment) { a.Attempt, a.Version, a.Digest = 5, "v1", "d1" }), admitDone},
		{"an ended attempt while something is desired", desired, doc(func(a *schema.Assignment) { a.Attempt = 3 }), admitDrop},
	} {
		if got, why := admit(c.facts, c.d, ""); got != c.want {
			t.Errorf("%s: admission %d (%s), want %d", c.name, got, why, c.want)
		}
	}
	if got, why := admit(f, doc(nil), "digest differs"); got != admitNothing || why != "digest differs" {
		t.Errorf("an unusable document: %d, %q", got, why)
	}
}

func TestRetryWait(t *testing.T) {
	d := func(v time.Duration) *schema.Duration { s := schema.Duration(v); return &s }
	for _, c := range []struct {
		b    *schema.Backoff
		n    int
		want time.Duration
	}{
		{nil, 1, 10 * time.Second},
		{nil, 2, 20 * time.Second},
		{nil, 3, 40 * time.Second},
		{nil, 20, 10 * time.Minute},
		{&schema.Backoff{Base: d(time.Second), Factor: 3, Cap: d(5 * time.Second)}, 2, 3 * time.Second},
		{&schema.Backoff{Base: d(time.Second), Factor: 3, Cap: d(5 * time.Second)}, 3, 5 * time.Second},
		{&schema.Backoff{Factor: math.Inf(1)}, 9, 10 * time.Minute},
		{&schema.Backoff{Factor: math.NaN()}, 2, 20 * time.Second},
		{&schema.Backoff{Factor: -4}, 2, 20 * time.Second},
		{&schema.Backoff{Base: d(0), Factor: math.Inf(1)}, 9, 10 * time.Minute},
		{&schema.Backoff{Base: d(time.Hour)}, 1, time.Hour},
		{&schema.Backoff{Base: d(time.Hour)}, 3, time.Hour},
		{&schema.Backoff{Base: d(math.MaxInt64)}, 1, longestWait},
		{&schema.Backoff{Base: d(math.MaxInt64), Cap: d(math.MaxInt64)}, 900, longestWait},
	} {
		if got := retryWait(c.b, c.n, 0.5); got != c.want {
			t.Errorf("%+v, try %d: %s, want %s", c.b, c.n, got, c.want)
		}
	}
	if lo, hi := retryWait(nil, 1, 0), retryWait(nil, 1, 1); lo != 7500*time.Millisecond || hi != 12500*time.Millisecond {
		t.Errorf("jitter gives %s to %s", lo, hi)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := "begin " + strings.Repeat("ä", messageLimit) + " end"
	got := bounded(long)
	if len(got) > messageLimit || !strings.HasSuffix(got, " end") || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v, end %q", len(got), utf8.ValidString(got), got[len(got)-8:])
	}
	long = "the cause\n" + long
	if got := bounded(long); len(got) > messageLimit || !strings.HasPrefix(got, "the cause\n… ä") || !strings.HasSuffix(got, " end") {
		t.Errorf("%d bytes, begin %q, end %q", len(got), got[:20], got[len(got)-8:])
	}
	if got := bounded("short"); got != "short" {
		t.Error(got)
	}
	if got := oneLine("  one\x1b[31m\ntwo"); got != "one[31m" {
		t.Errorf("%q", got)
	}
}
