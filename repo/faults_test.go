package repo_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// TestEveryRequestFails runs a daemon's pass again and again, and lets the nth
// request of the first one fail, for every n and in several ways. However it
// fails, the next passes come to the same end: every file once, no commit lost
// or doubled.
func TestEveryRequestFails(t *testing.T) {
	ctx := context.Background()
	ways := map[string]func(p place, w http.ResponseWriter, req *http.Request){
		"500": func(_ place, w http.ResponseWriter, req *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"cut": func(place, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"done but not said": func(p place, w http.ResponseWriter, req *http.Request) {
			p.srv.ServeHTTP(&deaf{header: http.Header{}}, req)
			panic(http.ErrAbortHandler)
		},
	}
	for name, fault := range ways {
		for nth := 1; ; nth++ {
			p := overHTTP(t)
			c := seed(t, p, "main", map[string]string{"devices/a.yaml": "a"})
			r := open(t, p)
			pass := func() error {
				refs, err := r.Refs(ctx, "refs/heads/", "refs/gitopsd/")
				if err != nil {
					return err
				}
				if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
					return err
				}
				if tip := refs[status]; tip != "" {
					if err := r.Fetch(ctx, status, tip, false); err != nil {
						return err
					}
					if len(tree(t, r, tip)) > 0 {
						return nil
					}
				}
				blob, _ := r.PutBlob(ctx, []byte("status"))
				next, err := r.Commit(ctx, refs[status], map[string]string{"devices/a.yaml": blob}, time.Unix(1e9, 0), "sweep")
				if err != nil {
					return err
				}
				delivery, err := r.Orphan(ctx, map[string]string{"assignment.yaml": blob})
				if err != nil {
					return err
				}
				_, err = r.Publish(ctx, map[string][2]string{status: {refs[status], next}},
					map[string][2]string{"refs/gitopsd/devices/a": {refs["refs/gitopsd/devices/a"], delivery}})
				return err
			}
			seen, hit := 0, false
			p.srv.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
				if seen++; seen == nth {
					hit = true
					p.srv.Intercept(nil)
					fault(p, w, req)
					return true
				}
				return false
			})
			var err error
			for range 4 {
				if err = pass(); err == nil {
					break
				}
			}
			p.srv.Intercept(nil)
			if err != nil {
				t.Fatalf("%s at request %d: it does not recover: %v", name, nth, err)
			}
			if got := gitserver.Git(t, p.bare, "rev-list", "--count", status); got != "1" {
				t.Fatalf("%s at request %d: %s status commits, want 1", name, nth, got)
			}
			if got := gitserver.Git(t, p.bare, "show", status+":devices/a.yaml"); got != "status" {
				t.Fatalf("%s at request %d: status is %q", name, nth, got)
			}
			fsck(t, p.bare)
			if !hit {
				if nth < 5 {
					t.Fatalf("a pass takes only %d requests", nth-1)
				}
				break
			}
		}
	}
}

// deaf takes an answer that never arrives.
type deaf struct{ header http.Header }

func (d *deaf) Header() http.Header         { return d.header }
func (d *deaf) Write(p []byte) (int, error) { return io.Discard.Write(p) }
func (d *deaf) WriteHeader(int)             {}

// TestConnectionIsKept: the polls of a device share one connection.
func TestConnectionIsKept(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	remotes := map[string]bool{}
	p.srv.Intercept(func(_ http.ResponseWriter, req *http.Request) bool {
		remotes[req.RemoteAddr] = true
		return false
	})
	c := seed(t, p, "main", map[string]string{"a": "a"})
	d := openDevice(t, p)
	for range 5 {
		if _, _, err := d.Read(ctx, "refs/heads/main", "", 1000); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Read(ctx, "refs/heads/main", c, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if len(remotes) != 1 {
		t.Fatalf("ten polls took %d connections: %v", len(remotes), fmt.Sprint(remotes))
	}
}

// A power cut leaves ref files empty. One of them hides none of the others,
// and whoever owns it writes over it.
func TestOneBrokenRefFile(t *testing.T) {
	ctx := context.Background()
	p := localPlace(t)
	var told bytes.Buffer
	r, err := repo.Open(repo.Config{URL: p.url, Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := openDevice(t, p)
	write := func(ref, old, text string) (string, error) {
		return d.Write(ctx, ref, old, map[string][]byte{"report.yaml": []byte(text)})
	}
	const d1, d2 = "refs/gitopsd/reports/d1", "refs/gitopsd/reports/d2"
	at1 := must[string](t, "write")(write(d1, "", "1"))
	at2 := must[string](t, "write")(write(d2, "", "2"))
	gitserver.Git(t, p.bare, "pack-refs", "--all")
	for n, broken := range []string{"", "xyz", strings.Repeat("\x00", 41)} {
		file := filepath.Join(p.bare, d1)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(broken), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			refs, err := r.Refs(ctx, "refs/gitopsd/reports/")
			if err != nil || len(refs) != 1 || refs[d2] != at2 {
				t.Fatalf("the refs beside one of %q: %v, %v", broken, refs, err)
			}
		}
		if got := strings.Count(told.String(), file); got != 1 {
			t.Fatalf("the broken file was told %d times: %s", got, &told)
		}
		told.Reset()
		_, err := r.Refs(ctx, d1)
		wantKind(t, "asking for just the broken ref", err, "corrupt")
		if _, _, err = d.Read(ctx, d1, "", 0); !strings.Contains(fmt.Sprint(err), file) {
			t.Fatalf("reading the broken ref does not name its file: %v", err)
		}
		wantKind(t, "reading the broken ref", err, "corrupt")
		err = moveLead(r, d1, "", orphan(t, r, "3"))
		wantKind(t, "a lead over a broken ref", err, "corrupt")
		if !strings.Contains(err.Error(), file) {
			t.Fatalf("the error does not name the file: %v", err)
		}
		// Its owner knows where it was, or has asked and got nothing.
		old := []string{"", at1, ""}[n]
		if at1, err = write(d1, old, fmt.Sprint("new", n)); err != nil {
			t.Fatalf("the owner's write from %q: %v", old, err)
		}
		refs, err := r.Refs(ctx, "refs/gitopsd/reports/")
		if err != nil || refs[d1] != at1 || refs[d2] != at2 {
			t.Fatalf("after the repair: %v, %v", refs, err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.bare, d1), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := orphan(t, r, "4")
	refused, err := r.Publish(ctx, nil, map[string][2]string{d1: {"", c}})
	if err != nil || len(refused) > 0 {
		t.Fatalf("a delivery over a broken ref: %v, %v", refused, err)
	}
	fsck(t, p.bare)
}
