//go:build system

package protocoltest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// violated is what the tests print of a schedule that found something.
var violated = regexp.MustCompile(`(?m)as short as it could be made \((\d+) steps\): (.*)$`)
var shortest = regexp.MustCompile(`(?m)^\s*schedule: ([0-9a-f]+)$`)

// The ordinary run plays the seeds. When none of them notices any more, because
// the code takes other steps now, a few schedules are searched for one that
// does; GITOPSD_FIND=1 looks through more of them, and adds what it finds to
// testdata/seeds/rules.txt, which GITOPSD_FIND=all makes anew.
const (
	searchLimit = 600
	findLimit   = 4000
)

// TestSystemRules breaks one rule after the other and expects a schedule to
// notice. It needs no switches in the code: each time the packages are built
// with one file of an overlay.
func TestSystemRules(t *testing.T) {
	find := os.Getenv("GITOPSD_FIND") != ""
	if os.Getenv("GITOPSD_FIND") == "all" {
		_ = os.Remove("testdata/seeds/rules.txt") // all are looked for again
		_ = os.Remove("testdata/histories/rules.txt")
	}
	playSeeds(t, "testdata/seeds/*.txt", play) // what fails by itself would notice everything
	playSeeds(t, "testdata/histories/*.txt", playHistory)
	for _, r := range slices.Concat(rules(), restraints) {
		t.Run(r.name, func(t *testing.T) {
			if r.by != "" {
				r.noticedBy(t)
				return
			}
			bin := r.build(t, ".")
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			run := func(test string, env ...string) (string, error) {
				c := exec.CommandContext(ctx, bin, "-test.run", test)
				c.Env = append(os.Environ(), env...)
				out, err := c.CombinedOutput()
				return string(out), err
			}
			seeds, all, file := "^TestSeeds$", "^TestSchedules$", "testdata/seeds/rules.txt"
			if r.fleet {
				seeds, all, file = "^TestHistorySeeds$", "^TestHistories$", "testdata/histories/rules.txt"
			}
			out, err := run(seeds)
			if err == nil {
				limit := searchLimit
				if find {
					limit = findLimit
				}
				every := "GITOPSD_REAL_EVERY=1000000"
				if r.real {
					every = "GITOPSD_REAL_EVERY=1"
				}
				out, err = run(all, every, "GITOPSD_FROM=1", fmt.Sprintf("GITOPSD_SCHEDULES=%d", limit), fmt.Sprintf("GITOPSD_HISTORIES=%d", limit))
				if s := shortest.FindStringSubmatch(out); err != nil && s != nil && find {
					remember(t, file, s[1]+" # "+r.name)
				}
			}
			what := violated.FindStringSubmatch(out)
			switch {
			case err == nil:
				t.Fatal("the rule is broken, and no schedule has noticed")
			case what == nil:
				t.Fatalf("the tests fail, but not because a schedule noticed:\n%s", out)
			}
			t.Logf("noticed by a schedule of %s steps: %s", what[1], what[2])
		})
	}
}

// TestSystemLimits shows that the two reads on which the protocol rests are
// two: a replica that is behind there, and nowhere else, lets a device act on
// what was taken back. Where a schedule does not show it any more, because the
// code takes other steps now, others are looked through.
func TestSystemLimits(t *testing.T) {
	for read, seed := range map[read]string{
		secondLook:   "0a7407c06544f8afdc82fb2e2790528671867a3c7f8f5f00e5bd66f6f7c2f29f007d9d1f8b27",
		behindRecall: "6ef3fe6cdc7448ca0082d6caa60cd8c7de0079ace0ce77e0301f261199fa08e1",
	} {
		dir := memoryDir(t)
		shows := func(s schedule) bool {
			s.lags = read
			return strings.HasPrefix(try(t, play, filepath.Join(dir, "lags"), s, nil), "I3")
		}
		s, _, err := parseSeed(seed)
		if err != nil {
			t.Fatal(err)
		}
		for n := uint64(0); !shows(s); n++ {
			if n == findLimit {
				t.Fatalf("no schedule shows what a replica does that is behind in read %d; if it is safe now, say so in docs/explanation/protocol.md", read)
			}
			s = fromSeed(n, false)
		}
		t.Logf("read %d: %s", read, s)
	}
}

func remember(t *testing.T, file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// noticedBy expects a package's own tests to fail.
func (r rule) noticedBy(t *testing.T) {
	bin := r.build(t, "../../"+r.by)
	c := exec.CommandContext(t.Context(), bin, "-test.failfast")
	c.Dir = filepath.Join("../..", r.by)
	out, err := c.CombinedOutput()
	name := failing.FindSubmatch(out)
	if err == nil || name == nil {
		t.Fatalf("the rule is broken, and no test of %s has noticed", r.by)
	}
	t.Logf("noticed by %s", name[1])
}

var failing = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// build makes the tests of a package with the rule broken.
func (r rule) build(t *testing.T, pkg string) string {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	for source, text := range r.broken(t) {
		at := filepath.Join(dir, fmt.Sprintf("broken-%d.go", len(replaced)))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[source] = at
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "broken.test")
	c := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", file, "-c", "-o", bin, pkg)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("the broken code does not build: %v\n%s", err, out)
	}
	return bin
}
