package repo_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// TestReadButWhatIsKnown reads a delivery whose payloads are there but for one:
// only that one comes, and the document. A server that cannot leave anything
// out sends all of it.
func TestReadButWhatIsKnown(t *testing.T) {
	ctx := context.Background()
	const ref, size, small = "refs/gitopsd/devices/d1", 128 << 10, 5000 // bytes
	large := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	for _, c := range []struct {
		name string
		set  func(p place)
		can  bool
	}{
		{"filters", func(place) {}, true},
		{"no filters", func(p place) { gitserver.Git(t, p.bare, "config", "uploadpack.allowFilter", "false") }, false},
		{"an old server", func(p place) { p.srv.OnlyV0(true) }, false},
	} {
		p := overHTTP(t)
		c.set(p)
		d, writer := openDevice(t, p), openDevice(t, p)
		asked, known := 0, []string{}
		paths := func() []string { asked++; return known }
		tip := must[string](t, "write")(writer.Write(ctx, ref, "", map[string][]byte{
			"assignment.yaml": []byte("2"), "payloads/a": large, "payloads/b": []byte("new"), "payloads/c": {},
		}))
		read := func(have string, most int64) map[string][]byte {
			t.Helper()
			p.srv.ResetTraffic()
			commit, files, err := d.ReadBut(ctx, ref, have, 4*size, paths)
			if err != nil || commit != tip {
				t.Fatalf("%s: %s, %v", c.name, commit, err)
			}
			if _, in, out := p.srv.Traffic(); in+out > most {
				t.Errorf("%s: %d bytes, want at most %d", c.name, in+out, most)
			}
			return files
		}
		for path, content := range read("", 2*size) {
			if content == nil {
				t.Errorf("%s: %s is left out, and nothing is known", c.name, path)
			}
		}
		known = []string{"payloads/a", "payloads/other"}
		most := int64(2 * size)
		if c.can {
			most = small
		}
		files := read("", most)
		if got := slices.Sorted(maps.Keys(files)); len(got) != 4 || string(files["assignment.yaml"]) != "2" || string(files["payloads/b"]) != "new" || files["payloads/c"] == nil {
			t.Errorf("%s: there is %q", c.name, got)
		}
		if left := files["payloads/a"] == nil; left != c.can {
			t.Errorf("%s: what is known is left out: %t", c.name, left)
		}
		known = []string{"assignment.yaml", "payloads/a", "payloads/b", "payloads/c"}
		read("", most)
		before := asked
		if files := read(tip, small); files != nil || asked != before {
			t.Errorf("%s: an idle poll gives %v, and asks what is known", c.name, files)
		}
	}
}

// A server that promises to give single files and does not is asked for all.
func TestReadButFromAServerThatCannot(t *testing.T) {
	ctx := context.Background()
	const ref = "refs/gitopsd/devices/d1"
	p := overHTTP(t)
	d, writer := openDevice(t, p), openDevice(t, p)
	tip := must[string](t, "write")(writer.Write(ctx, ref, "", map[string][]byte{"assignment.yaml": []byte("1"), "payloads/a": []byte("a")}))
	requests := 0
	p.srv.Intercept(refuseSingleFiles(&requests))
	commit, files, err := d.ReadBut(ctx, ref, "", 1<<20, func() []string { return []string{"payloads/a"} })
	if err != nil || commit != tip || string(files["payloads/a"]) != "a" || requests == 0 {
		t.Errorf("%s %q, %v, refused %d times", commit, slices.Sorted(maps.Keys(files)), err, requests)
	}
}

// refuseSingleFiles answers a request for objects without a depth, which only
// single files are asked for with, as a server does that checks what is reached.
func refuseSingleFiles(n *int) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || !bytes.Contains(body, []byte("command=fetch")) || bytes.Contains(body, []byte("deepen")) {
			return false
		}
		*n++
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		const refusal = "ERR upload-pack: not our ref"
		fmt.Fprintf(w, "%04x%s", len(refusal)+4, refusal)
		return true
	}
}
