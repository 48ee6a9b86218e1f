package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// statusHistory makes a status branch of these versions of a device's file,
// an hour apart, the oldest first, and opens it. "" deletes the file.
func statusHistory(t testing.TB, file string, versions []string) (*reader, string) {
	t.Helper()
	bare := gitserver.Bare(t, t.TempDir(), "fleet.git")
	var s strings.Builder
	for i, v := range versions {
		fmt.Fprintf(&s, "commit refs/heads/gitopsd/status\ncommitter d <d@example.com> %d +0000\ndata 1\nx\n", historyStart+i*3600)
		if v == "" {
			fmt.Fprintf(&s, "D %s\n", file)
			continue
		}
		fmt.Fprintf(&s, "M 100644 inline %s\ndata %d\n%s\n", file, len(v), v)
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin, cmd.Env = bare, strings.NewReader(s.String()), append(os.Environ(), gitserver.Environ()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := openReader(schema.ServeSpec{Repo: schema.RepoConfig{URL: bare}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close() })
	return r, gitserver.Git(t, bare, "rev-parse", "gitopsd/status")
}

const historyStart = 1_790_000_000

func statusText(code string) string {
	return "apiVersion: gitopsd.dev/v1alpha1\nkind: DeviceStatus\nmetadata: {name: d1}\nverdict: {upgrade: false, code: " + code + ", reason: x}\n"
}

func TestHistoryBounds(t *testing.T) {
	codes := []string{"NeverSeen", "Queued", "Offline", "Queued", "Busy", "Queued"}
	var versions []string
	for _, c := range codes {
		versions = append(versions, statusText(c))
	}
	at := func(hour int) *time.Time {
		when := time.Unix(historyStart, 0).Add(time.Duration(hour) * time.Hour)
		return &when
	}
	strange := append([]string{}, versions...)
	strange[3] = "{{{"
	many := append([]string{}, versions...)
	for range 40 { // the same again changes nothing, so it is one change
		many = append(many, versions[len(versions)-1])
	}
	for name, c := range map[string]struct {
		versions []string
		bounds   historyBounds
		events   int
		looks    int
		enough   bool
		why      string
	}{
		"all":     {versions, historyBounds{}, 6, 6, false, ""},
		"two":     {versions, historyBounds{events: 2}, 2, 2, true, ""},
		"commits": {many, historyBounds{commits: 10}, 0, 10, false, "10 commits were looked at, back to "},
		"one":     {many, historyBounds{commits: 1}, 0, 1, false, "1 commit was looked at, back to "},
		// A few commits more are looked at than are young enough: clocks differ.
		"since": {many, historyBounds{since: at(40)}, 0, 6 + clockSlop, false, ""},
		// The newest ones do not count for the number where they are too new.
		"until":   {versions, historyBounds{until: at(2), events: 2}, 2, 6, false, ""},
		"strange": {strange, historyBounds{}, 1, 2, false, "cannot be read"},
		// It came back without anything known of it: an earlier life is not told.
		"reborn": {[]string{versions[0], versions[1], "", versions[2]}, historyBounds{}, 1, 1, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			const file = "devices/a/d1.yaml"
			r, tip := statusHistory(t, file, c.versions)
			got, err := r.deviceHistory(context.Background(), tip, file, c.bounds, nil)
			if err != nil {
				t.Fatal(err)
			}
			events := view.Between(view.Events(got.changes), c.bounds.since, c.bounds.until)
			if len(events) != c.events || got.commits != c.looks || got.enough != c.enough || !strings.Contains(got.why, c.why) || (c.why == "") != (got.why == "") {
				t.Errorf("%d events after %d commits, enough %v, %q; want %d, %d, %v, %q", len(events), got.commits, got.enough, got.why, c.events, c.looks, c.enough, c.why)
			}
		})
	}
}

func TestMoment(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"7d": "2026-11-22T12:00:00Z", "90m": "2026-11-29T10:30:00Z", "0d": "2026-11-29T12:00:00Z", "2026-11-01": "2026-11-01T00:00:00Z",
		"2026-11-01T08:00:00+01:00": "2026-11-01T07:00:00Z",
	} {
		if got, err := moment("--since", text, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s: got %v (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-3d", "-3h", "99999999d", "60000d", "d", "2026-13-01", "7"} {
		if got, err := moment("--since", text, now); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}
