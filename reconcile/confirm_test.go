package reconcile

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitopsd/gitopsd/schema"
)

func TestConfirmFailureBringsBack(t *testing.T) {
	d := onV1(t)
	before := d.snapshot()
	d.control.answers = func() error {
		if d.content("/etc/edge/only-2") != "" {
			return errors.New("no route to host")
		}
		return nil
	}
	d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "600ms"}}))
	d.wantOnce(1, "failed", "confirm", "no route to host", "back on v1.0.0")
	if after := d.snapshot(); after != before {
		t.Errorf("not back as it was:\n%s", cmp.Diff(before, after))
	}
	r := d.control.last()
	if r.Outcome != schema.OutcomeFailed || r.Failures[0].Component != "confirm" || r.Stage != string(StagePostAction) {
		t.Errorf("report: %+v", r)
	}
	d.wantOnce(0, "ended as failed")
}

func TestConfirmWaitsForTheFirstAnswer(t *testing.T) {
	d := onV1(t)
	n := 0
	d.control.answers = func() error {
		if n++; n < 3 {
			return errors.New("link is down")
		}
		return nil
	}
	d.assign(2, "v1.1.0", v2(nil))
	d.wantOnce(0, "updated")
	if n != 3 {
		t.Errorf("asked %d times", n)
	}
}

// The resolver of this process still goes by what stood in a file that has just
// changed: an answer that it led to is none.
func TestConfirmWaitsForTheResolver(t *testing.T) {
	info, err := os.Stat("/etc/hosts")
	if err != nil {
		t.Skipf("nothing to go by: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		d := bubbleDevice(t)
		d.wantOnce(0)
		began, asked := time.Now(), time.Duration(0)
		d.cfg.Now = func() time.Time { return info.ModTime().Add(time.Second + time.Since(began)) }
		d.control.answers = func() error { asked = time.Since(began); return nil }
		d.assign(1, "v1.0.0", v1)
		d.wantOnce(0, "updated")
		if asked < 4*time.Second || asked > resolverAge {
			t.Errorf("asked after %s, one second after the file had changed", asked)
		}
	})
}

func TestConfirmOff(t *testing.T) {
	d := onV1(t)
	d.control.answers = func() error { return errors.New("never") }
	d.assign(2, "v1.1.0", v2(tree{"confirm": "off"}))
	asked := d.control.asked
	d.wantOnce(0, "updated")
	if d.control.asked != asked {
		t.Error("control was asked")
	}
}

func TestConfirmReachesURLs(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "an answer all the same", 500) }))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	defer srv.Close()
	d := onV1(t)
	d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"reach": []any{srv.URL}}}))
	d.wantOnce(0, "updated")
	d.assign(3, "v1.2.0", v2(tree{"confirm": tree{"within": "300ms", "reach": []any{gone.URL}}}))
	d.wantOnce(1, "failed", strings.TrimPrefix(gone.URL, "http://"))
}

// The agent dies while it waits for an answer: the next start asks on, in the
// time that is left, and puts the device back when there is none.
func TestConfirmSurvivesACrash(t *testing.T) {
	for name, ok := range map[string]bool{"answer": true, "no answer": false} {
		t.Run(name, func(t *testing.T) {
			d := onV1(t)
			before := d.snapshot()
			dead := false
			d.cfg.Step = func(string, string) error {
				if dead {
					return errDead
				}
				return nil
			}
			d.control.answers = func() error { dead = true; return errors.New("cut") }
			d.assign(2, "v1.1.0", v2(tree{"confirm": tree{"within": "400ms"}}))
			d.once()
			var p pending
			if !d.readState(pendingFile, &p) || p.Deadline.IsZero() {
				t.Fatal("no pending confirmation on disk")
			}
			dead = false
			d.cfg.Step = nil
			d.control.lookErr = errors.New("cut") // goes on without control
			d.control.answers = nil
			if !ok {
				d.control.answers = func() error { return errors.New("cut") }
			}
			res := d.once()
			if ok {
				if res.Exit != 0 || !strings.Contains(res.Summary, "updated") {
					t.Errorf("result: %+v", res)
				}
				if d.content("/etc/edge/edge.conf") != "version=2\n" {
					t.Error("the confirmed update is not there")
				}
				return
			}
			if after := d.snapshot(); after != before || res.Exit != 1 {
				t.Errorf("not back as it was (%+v):\n%s", res, cmp.Diff(before, after))
			}
		})
	}
}
