package repo_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
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
