package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

func testBrake(t *testing.T, url string) *brake {
	t.Helper()
	b, err := openBrake(schema.ServeSpec{Repo: schema.RepoConfig{URL: url}}, repo.Author{Name: "Ada", Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	b.pause = time.Millisecond
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestBrakesAtOnce: whoever loses the race reads again, and nobody's brake is
// lost.
func TestBrakesAtOnce(t *testing.T) {
	root := t.TempDir()
	bare := gitserver.Bare(t, root, "fleet.git")
	urls := map[string]string{"local": bare, "http": gitserver.New(t, root).URL + "/fleet.git"}
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			const many = 4
			var all sync.WaitGroup
			for i := range many {
				b := testBrake(t, url)
				all.Go(func() {
					target := brakeTarget{policy: fmt.Sprintf("%s-%d", name, i)}
					if _, changed, err := b.move(t.Context(), target, "x", time.Now()); err != nil || !changed {
						t.Errorf("%s: changed %v, %v", target, changed, err)
					}
				})
			}
			all.Wait()
			state, err := testBrake(t, url).read(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			for i := range many {
				if _, ok := state.reading.Brake.Policies[fmt.Sprintf("%s-%d", name, i)]; !ok {
					t.Errorf("the brake of %d is lost:\n%s", i, state.text)
				}
			}
		})
	}
}

// TestABrakeThatAnotherAlwaysOvertakes ends, and says so.
func TestABrakeThatAnotherAlwaysOvertakes(t *testing.T) {
	root := t.TempDir()
	bare := gitserver.Bare(t, root, "fleet.git")
	server := gitserver.New(t, root)
	b, other := testBrake(t, server.URL+"/fleet.git"), testBrake(t, bare)
	overtaken := 0
	server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			overtaken++
			if _, _, err := other.move(t.Context(), brakeTarget{all: true}, fmt.Sprint("reason ", overtaken), time.Now()); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	_, changed, err := b.move(t.Context(), brakeTarget{policy: "gateways"}, "x", time.Now())
	if err == nil || changed || !strings.Contains(err.Error(), "others were faster") {
		t.Errorf("changed %v, %v", changed, err)
	}
	if overtaken != brakeTries {
		t.Errorf("tried %d times, want %d", overtaken, brakeTries)
	}
}

// TestABrakeWhoseAnswerIsLost is looked for, and not pushed twice.
func TestABrakeWhoseAnswerIsLost(t *testing.T) {
	root := t.TempDir()
	bare := gitserver.Bare(t, root, "fleet.git")
	server := gitserver.New(t, root)
	pushes := 0
	server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			return false
		}
		pushes++
		if pushes > 1 {
			return false
		}
		server.Intercept(nil)
		server.ServeHTTP(discarding{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	})
	state, changed, err := testBrake(t, server.URL+"/fleet.git").move(t.Context(), brakeTarget{all: true}, "x", time.Now())
	if err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if got := gitserver.Git(t, bare, "rev-parse", "gitopsd/brake"); got != state.commit {
		t.Errorf("the branch is at %s, want %s", got, state.commit)
	}
	if got := gitserver.Git(t, bare, "rev-list", "--count", "gitopsd/brake"); got != "1" {
		t.Errorf("%s commits, want 1", got)
	}
}

// discarding is an answer that nobody gets.
type discarding struct{ header http.Header }

func (d discarding) Header() http.Header         { return d.header }
func (d discarding) Write(p []byte) (int, error) { return len(p), nil }
func (d discarding) WriteHeader(int)             {}

// TestABrakeThatIsRefused says why, at once.
func TestABrakeThatIsRefused(t *testing.T) {
	root := t.TempDir()
	gitserver.Bare(t, root, "fleet.git")
	server := gitserver.New(t, root)
	b := testBrake(t, server.URL+"/fleet.git")
	server.Require("someone", "else")
	_, changed, err := b.move(t.Context(), brakeTarget{all: true}, "x", time.Now())
	var e *repo.Error
	if changed || !errors.As(err, &e) || e.Kind() != "auth" {
		t.Errorf("changed %v, %v", changed, err)
	}
}

// TestABrakeWithAnotherName: what was to be the brake and is not called so
// stops everything, until a brake is written.
func TestABrakeWithAnotherName(t *testing.T) {
	b := testBrake(t, gitserver.Bare(t, t.TempDir(), "fleet.git"))
	ctx := t.Context()
	blob, err := b.repo.PutBlob(ctx, []byte("all: smoke\n"))
	if err != nil {
		t.Fatal(err)
	}
	commit, err := b.repo.Commit(ctx, "", map[string]string{"README.md": blob, "a.yaml": blob, "sub/Brake.yml": blob}, time.Now(), "stop")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.repo.Publish(ctx, map[string][2]string{brakeRef: {"", commit}}, nil); err != nil {
		t.Fatal(err)
	}
	state, err := b.read(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	doc := brakeStatusOf(state)
	if err := b.since(ctx, state, doc.Entries); err != nil {
		t.Fatal(err)
	}
	if !doc.On || len(doc.Notes) != 1 || !strings.Contains(doc.Notes[0], "rename sub/Brake.yml to brake.yaml") || len(doc.Entries) != 1 || doc.Entries[0].Commit != commit {
		t.Errorf("the status is %+v", doc)
	}
	if state, _, err = b.move(ctx, brakeTarget{all: true}, "", time.Now()); err != nil || !state.reading.Brake.Empty() {
		t.Errorf("after brake off: %+v, %v", state.reading, err)
	}
	if state, err = b.read(ctx, true); err != nil || !state.reading.Brake.Empty() {
		t.Errorf("read again: %+v, %v", state.reading, err)
	}
}

// TestBrakeNotes: what should be written otherwise is a warning once.
func TestBrakeNotes(t *testing.T) {
	for _, text := range []string{"all: true", "all: {"} {
		doc := brakeStatusOf(brakeState{reading: schema.ReadBrake(brakeFile, []byte(text))})
		if len(doc.Notes) != 1 || !strings.HasPrefix(doc.Notes[0], "warning: brake.yaml:1:") || strings.Count(doc.Notes[0], "warning") != 1 {
			t.Errorf("%s: %q", text, doc.Notes)
		}
	}
}

// TestBrakeTableFits a narrow terminal: who and why come before since when.
func TestBrakeTableFits(t *testing.T) {
	since := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	table := brakeTable([]brakeEntry{
		{Scope: scopePolicy, Name: "gateways", Reason: "they lose their uplink", Since: &since, By: "Jo <jo@example.com>"},
		{Scope: scopeDevice, Name: "gw-berlin-01", Reason: "I look at it"},
	})
	for _, width := range []int{40, 60} {
		var b bytes.Buffer
		if err := table.Write(&b, view.Look{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d characters in %d columns: %s", n, width, line)
			}
		}
		if !strings.Contains(b.String(), "REASON") || !strings.Contains(b.String(), "uplink") {
			t.Errorf("in %d columns no reason:\n%s", width, b.String())
		}
	}
}

// TestABrakeNeedsNoSourceBranch: where that cannot be read, a name is taken as
// it is, with a warning.
func TestABrakeNeedsNoSourceBranch(t *testing.T) {
	root := t.TempDir()
	gitserver.Bare(t, root, "fleet.git")
	server := gitserver.New(t, root)
	b := testBrake(t, server.URL+"/fleet.git")
	for what, prepare := range map[string]func(){"no branch": func() {}, "no answer": func() { server.Fail(http.StatusInternalServerError, 100) }} {
		prepare()
		notes, err := b.known(t.Context(), brakeTarget{policy: "gateways"})
		if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "the source branch could not be read") {
			t.Errorf("%s: %v, %v", what, notes, err)
		}
	}
}

// TestSince: an entry is as old as it stands there without a break, whatever
// its reason was meanwhile.
func TestSince(t *testing.T) {
	bare := gitserver.Bare(t, t.TempDir(), "fleet.git")
	b := testBrake(t, bare)
	begin := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	for i, m := range []struct {
		target brakeTarget
		reason string
	}{
		{brakeTarget{policy: "a"}, "x"},       // 0
		{brakeTarget{policy: "a"}, ""},        // 1
		{brakeTarget{policy: "a"}, "x"},       // 2
		{brakeTarget{device: "d"}, "y"},       // 3
		{brakeTarget{policy: "a"}, "z"},       // 4
		{brakeTarget{all: true}, "everybody"}, // 5
	} {
		if _, changed, err := b.move(t.Context(), m.target, m.reason, begin.Add(time.Duration(i)*time.Hour)); err != nil || !changed {
			t.Fatalf("move %d: changed %v, %v", i, changed, err)
		}
	}
	state, err := b.read(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	doc := brakeStatusOf(state)
	if err := b.since(t.Context(), state, doc.Entries); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range doc.Entries {
		got = append(got, fmt.Sprintf("%s/%s %s %.0f %s", e.Scope, e.Name, e.Reason, e.Since.Sub(begin).Hours(), e.By))
	}
	want := "all/ everybody 5 Ada <ada@example.com>, policy/a z 2 Ada <ada@example.com>, device/d y 3 Ada <ada@example.com>"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got %s\nwant %s", s, want)
	}
}
