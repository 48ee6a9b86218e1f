package listen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// serve runs a server until the test ends.
func serve(t *testing.T, cfg Config) (s *Server, end func() error) {
	t.Helper()
	cfg.Address = "127.0.0.1:0"
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var result error
	var did bool
	end = func() error {
		if !did {
			cancel()
			result, did = <-ended, true
		}
		return result
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	return s, end
}

func say(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) })
}

func TestPathsAreExactAndNeverRedirected(t *testing.T) {
	s, _ := serve(t, Config{Handlers: map[string]http.Handler{"/v1/x": say("x"), "/": say("root")}})
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]int{
		"/v1/x": 200, "/v1/x/": 200, "/": 200,
		"//v1/x": 404, "/v1/x//": 404, "/v1/../v1/x": 404, "/v1": 404, "/v1/xy": 404, "/V1/x": 404,
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Address()+path, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			r, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.StatusCode != want {
				t.Errorf("%s %s: %d, want %d", method, path, r.StatusCode, want)
			}
		}
	}
}

func TestAnAddressInUseIsSaid(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = New(t.Context(), Config{Address: l.Addr().String()})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("an address in use gives %v", err)
	}
	if _, err := New(t.Context(), Config{Address: "192.0.2.1:80"}); err == nil || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("an address of another host gives %v", err)
	}
}

// Whoever sends slowly is cut off, be it the header or the body.
func TestSlowSendersAreCutOff(t *testing.T) {
	read := make(chan error, 1)
	s, _ := serve(t, Config{ReadTimeout: 200 * time.Millisecond, Handlers: map[string]http.Handler{
		"/": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		}),
	}})
	for _, begin := range []string{"POST / HT", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"} {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, begin)
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %q the connection stayed: %v", begin, err)
		}
		_ = c.Close()
	}
	if err := <-read; err == nil {
		t.Error("half a body was read as if it were whole")
	}
}

func TestABigHeaderIsRefused(t *testing.T) {
	s, _ := serve(t, Config{Handlers: map[string]http.Handler{"/": say("x")}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Big", strings.Repeat("a", 2*maxHeader))
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of %d bytes gives %d", 2*maxHeader, r.StatusCode)
	}
}

// What was begun comes to its end, and nothing new is accepted.
func TestTheEndWaitsForRequests(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	s, end := serve(t, Config{Handlers: map[string]http.Handler{
		"/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-proceed
			fmt.Fprint(w, "whole")
		}),
	}})
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	ended := make(chan error)
	go func() { ended <- end() }()
	for { // until the address is given back
		again, err := net.Dial("tcp", s.Address())
		if err != nil {
			break
		}
		_ = again.Close()
	}
	close(proceed)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil || string(body) != "whole" {
		t.Errorf("the answer at the end is %q, %v", body, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
