package webhook

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gitopsd/gitopsd/internal/listen"
)

// served is the bench behind a real address.
func served(t *testing.T, b *bench, readTimeout time.Duration) (address string) {
	t.Helper()
	s, err := listen.New(t.Context(), listen.Config{Address: "127.0.0.1:0", Handlers: b.hooks.Handlers(), ReadTimeout: readTimeout})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.Address()
}

// knock sends the head of a delivery whose body is to come in chunks.
func knock(address, signature string) (net.Conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	head := "POST " + PathGitHub + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: push\r\nTransfer-Encoding: chunked\r\n"
	if signature != "" {
		head += headerSignature + ": " + signature + "\r\n"
	}
	_, err = io.WriteString(c, head+"\r\n")
	return c, err
}

// status reads what a connection is answered; 0 = nothing.
func status(c net.Conn) int {
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_ = r.Body.Close()
	return r.StatusCode
}

// peak watches the heap until the test stops it, and gives how far it rose.
func peak() (stop func() uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base, top := m.HeapInuse, m.HeapInuse
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			runtime.ReadMemStats(&m)
			top = max(top, m.HeapInuse)
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return top - base
	}
}

const mebi = 1 << 20

// TestB109_ManyHugeBodies: neither who signs nothing nor who signs wrongly
// fills the memory, with 200 bodies of 25 MB at once, sent in chunks.
func TestB109_ManyHugeBodies(t *testing.T) {
	chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", mebi, strings.Repeat("0", mebi)) // shared: the senders must not fill the memory either
	for _, c := range []struct {
		name, signature string
		want            map[int]bool
		limit           uint64 // MiB
	}{
		{"unsigned", "", map[int]bool{401: true, 0: true}, 16},
		// The server closes while we still send: some never see the answer.
		{"signed wrongly", sign("wrong", "x"), map[int]bool{401: true, 413: true, 503: true, 0: true}, 120},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.hooks.bodies.wait = 100 * time.Millisecond
			address := served(t, b, 20*time.Second)
			stop := peak()
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() {
					conn, err := knock(address, c.signature)
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					for range 25 {
						if _, err := conn.Write(chunk); err != nil {
							break // it has heard enough
						}
					}
					_, _ = io.WriteString(conn, "0\r\n\r\n")
					if got := status(conn); !c.want[got] {
						t.Errorf("it is answered with %d", got)
					}
				})
			}
			all.Wait()
			grown := stop() / mebi
			t.Logf("the heap grew by %d MiB", grown)
			if grown > c.limit {
				t.Errorf("200 bodies of 25 MB took %d MiB, want at most %d", grown, c.limit)
			}
			b.want(b.request("push", pushBody("refs/heads/main", commitA, commitB)), http.StatusAccepted, "push main a..b")
		})
	}
}

// TestB109_UnsignedIsRefusedUnread: the answer comes though the body does not,
// and the server would wait for it for an hour.
func TestB109_UnsignedIsRefusedUnread(t *testing.T) {
	address := served(t, newBench(t), time.Hour)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			c, err := knock(address, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if got := status(c); got != http.StatusUnauthorized {
				t.Errorf("an unsigned request is answered with %d", got)
			}
		})
	}
	all.Wait()
}

// TestB113_NoRedirects: over a real connection too, a slash at the end does not
// matter, and nothing is redirected.
func TestB113_NoRedirects(t *testing.T) {
	b := newBench(t)
	address := served(t, b, 20*time.Second)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for i, c := range []struct {
		path string
		want int
	}{{PathGitHub, 202}, {PathGitHub + "/", 202}, {"/" + PathGitHub, 404}, {PathGitHub + "/x", 404}, {"/", 404}, {"/v1/webhooks", 404}} {
		r := b.request("push", pushBody("refs/heads/main", commitA, fmt.Sprintf("%040x", i+1)))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+c.path, r.Body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = r.Header
		answer, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.want || (b.take() != "") != (c.want == 202) {
			t.Errorf("POST %s: %d, want %d", c.path, answer.StatusCode, c.want)
		}
	}
}

// TestB109_SlowBodies: who drips a body in holds neither the endpoint nor its
// own connection for long.
func TestB109_SlowBodies(t *testing.T) {
	b := newBench(t)
	address := served(t, b, 500*time.Millisecond)
	var all sync.WaitGroup
	for range 100 { // more than may be read at once
		c, err := knock(address, sign("wrong", "x"))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer c.Close()
			if _, err := io.WriteString(c, "1\r\n0\r\n"); err != nil {
				return
			}
			if got := status(c); got != 408 && got != 503 && got != 0 {
				t.Errorf("a slow body is answered with %d", got)
			}
		})
	}
	all.Wait()
	b.want(b.request("push", pushBody("refs/heads/main", commitA, commitB)), http.StatusAccepted, "push main a..b")
}

// TestBodiesThatAreCutOff are not taken for whole, small or large.
func TestBodiesThatAreCutOff(t *testing.T) {
	for _, sent := range []int{10, 2 * smallBody} {
		b := newBench(t)
		body := strings.Repeat("x", sent)
		r := b.request("push", body)
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF)))
		b.want(r, http.StatusBadRequest, "")
		if b.logs.Len() > 0 {
			t.Errorf("a body of %d bytes that was cut off: %s", sent, b.logs)
		}
	}
}

// TestB109_TheLimit: what GitHub may send is taken, and a byte more is not, in
// chunks or with a length.
func TestB109_TheLimit(t *testing.T) {
	b := newBench(t)
	body := pushBody("refs/heads/main", commitA, commitB)
	body = body[:len(body)-1] + `, "x": "` + strings.Repeat("x", maxBody-len(body)-len(`, "x": ""`)) + `"}`
	if len(body) != maxBody {
		t.Fatalf("the body has %d bytes, want %d", len(body), maxBody)
	}
	for _, chunked := range []bool{false, true} {
		r := b.request("push", body+" ")
		if chunked {
			r.ContentLength = -1
		} else {
			r.Body = io.NopCloser(unread{t})
		}
		b.want(r, http.StatusRequestEntityTooLarge, "")
	}
	b.want(b.request("push", body), http.StatusAccepted, "push main a..b")
}
