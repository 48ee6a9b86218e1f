package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var whole = bytes.Repeat([]byte("a program of some size\n"), 10_000)

// serve is a server that has the program, in its own way.
func serve(t *testing.T, how http.HandlerFunc) string {
	s := httptest.NewServer(how)
	t.Cleanup(s.Close)
	return s.URL
}

// fetch is Fetch without the pauses.
func fetch(ctx context.Context, url string) (got []byte, err error) {
	r := &resumed{ctx: ctx, url: url, client: &http.Client{}, stall: stall}
	defer r.close()
	if err := r.open(); err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// A connection that breaks again and again is one that takes longer, whether
// the server can give parts or not.
func TestFetchGoesOnWhereItWas(t *testing.T) {
	for _, ranges := range []bool{true, false} {
		var asked atomic.Int32
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			n, from := int(asked.Add(1)), 0
			if ranges && r.Header.Get("Range") != "" {
				fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
				w.Header().Set("Content-Length", strconv.Itoa(len(whole)-from))
				w.WriteHeader(http.StatusPartialContent)
			} else {
				w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
			}
			w.Write(whole[from:min(n*60_000, len(whole))])
			if n*60_000 < len(whole) {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		})
		got, err := fetch(t.Context(), url)
		if err != nil || !bytes.Equal(got, whole) || asked.Load() < 3 {
			t.Errorf("ranges %t: %d bytes of %d after %d questions: %v", ranges, len(got), len(whole), asked.Load(), err)
		}
	}
}

func TestFetchIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		how  http.HandlerFunc
		want string
	}{
		"not there": {http.NotFound, "404"},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(largest+1))
		}, "more than the 256 MiB"},
		"always breaks": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.Write([]byte("x"))
		}, "connections"},
		"goes elsewhere": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }, "stopped after 10 redirects"},
	} {
		_, err := fetch(t.Context(), serve(t, c.how))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestFetchEndsWhenItIsToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	err := Fetch(ctx, url, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// A server that says nothing more is left and asked anew.
func TestFetchLeavesWhoIsSilent(t *testing.T) {
	var asked atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Length", "2")
		w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	r := &resumed{ctx: t.Context(), url: url, client: &http.Client{}, stall: 20 * time.Millisecond}
	defer r.close()
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err == nil || asked.Load() != breaks+1 {
		t.Errorf("%q after %d questions: %v", got, asked.Load(), err)
	}
}

// One that knows no ranges is left, too, when it is silent before what is new.
func TestFetchLeavesWhoIsSilentBeforeWhatIsNew(t *testing.T) {
	var asked atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "9")
		if asked.Add(1) == 1 {
			w.Write([]byte("12345678"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		w.Write([]byte("1234"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &resumed{ctx: ctx, url: url, client: &http.Client{}, stall: 20 * time.Millisecond}
	defer r.close()
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "12345678" || err == nil || asked.Load() != breaks+1 {
		t.Errorf("%q after %d questions: %v", got, asked.Load(), err)
	}
}
