package gitserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// Server is git http-backend behind net/http on loopback.
type Server struct {
	URL string // without a slash at its end; repository x.git is URL + "/x.git"
	Dir string // the folder of the repositories

	backend  http.Handler
	requests atomic.Int64
	in, out  atomic.Int64
	wire     atomic.Int64

	mu       sync.Mutex
	hang     chan struct{} // closed by Resume; nil = not hanging
	status   int           // answer of the next `failures` requests
	failures int
	failBody string
	truncate int64 // > 0: bytes of each answer's body that are let through
	noV2     bool
	user     string
	password string
	token    string
	hook     func(w http.ResponseWriter, r *http.Request) bool
	log      []string
}

// New serves the repositories below dir until the test ends.
func New(t testing.TB, dir string) *Server {
	t.Helper()
	s := &Server{Dir: dir}
	path := Git(t, dir, "--exec-path")
	s.backend = &cgi.Handler{
		Path: filepath.Join(path, "git-http-backend"),
		Dir:  dir,
		Env:  append(Environ(), "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1"),
		// What git writes to stderr is expected noise where answers are cut.
		Stderr: io.Discard,
	}
	base, stop := context.WithCancel(context.Background())
	srv := httptest.NewUnstartedServer(s)
	srv.Config.BaseContext = func(net.Listener) context.Context { return base }
	srv.Listener = &countedListener{srv.Listener, &s.wire}
	srv.Start()
	t.Cleanup(func() {
		s.Resume()
		stop()
		srv.CloseClientConnections()
		srv.Close()
	})
	s.URL = srv.URL
	return s
}

// Hang makes the server take requests and answer nothing until [Server.Resume].
func (s *Server) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hang == nil {
		s.hang = make(chan struct{})
	}
}

// Resume ends [Server.Hang].
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hang != nil {
		close(s.hang)
		s.hang = nil
	}
}

// Fail answers the next n requests with the status and an HTML page; n < 0
// means all of them, n = 0 ends it.
func (s *Server) Fail(status, n int) { s.FailWith(status, n, "<html><body>no</body></html>") }

// FailWith is [Server.Fail] with a body of one's own.
func (s *Server) FailWith(status, n int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.failures, s.failBody = status, n, body
}

// Truncate cuts the body of every answer after n bytes and drops the
// connection; 0 ends it.
func (s *Server) Truncate(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truncate = n
}

// OnlyV0 hides the Git-Protocol header from git, as an old server or a proxy
// does.
func (s *Server) OnlyV0(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noV2 = on
}

// Require asks for basic authentication; "" for both ends it.
func (s *Server) Require(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.password = user, password
}

// RequireToken asks for a bearer token; "" ends it.
func (s *Server) RequireToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Intercept sees every request first and answers it itself by returning true;
// nil ends it.
func (s *Server) Intercept(fn func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = fn
}

// Traffic is the number of requests and the bytes of their bodies in both
// directions since [Server.ResetTraffic].
func (s *Server) Traffic() (requests, in, out int64) {
	return s.requests.Load(), s.in.Load(), s.out.Load()
}

// Wire is the number of bytes that have gone over all connections since
// [Server.ResetTraffic]: headers too, in both directions.
func (s *Server) Wire() int64 { return s.wire.Load() }

// ResetTraffic sets the counters to zero and forgets the log.
func (s *Server) ResetTraffic() {
	s.requests.Store(0)
	s.in.Store(0)
	s.out.Store(0)
	s.wire.Store(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// Log lists the requests since [Server.ResetTraffic], as "GET /x.git/info/refs".
func (s *Server) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

// ServeHTTP applies the faults and hands the request to git.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	s.mu.Lock()
	s.log = append(s.log, r.Method+" "+r.URL.Path)
	hang, hook, truncate, noV2 := s.hang, s.hook, s.truncate, s.noV2
	user, password, token := s.user, s.password, s.token
	status, page := 0, s.failBody
	if s.failures != 0 {
		status = s.status
		if s.failures > 0 {
			s.failures--
		}
	}
	s.mu.Unlock()

	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
			return
		}
	}
	r.Body = &countedBody{ReadCloser: r.Body, n: &s.in}
	w = &countedWriter{ResponseWriter: w, n: &s.out, left: truncate, cut: truncate > 0}
	if hook != nil && hook(w, r) {
		return
	}
	if status != 0 {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, page)
		return
	}
	if user != "" || password != "" {
		if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
	}
	if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		w.Header().Set("WWW-Authenticate", `Bearer realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if noV2 {
		r.Header.Del("Git-Protocol")
	}
	// A CGI program would see a Proxy header as HTTP_PROXY.
	r.Header.Del("Proxy")
	s.backend.ServeHTTP(w, r)
}

// countedListener counts what its connections carry.
type countedListener struct {
	net.Listener
	n *atomic.Int64
}

// Accept takes the next connection.
func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{c, l.n}, nil
}

type countedConn struct {
	net.Conn
	n *atomic.Int64
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.n.Add(int64(n))
	return n, err
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

type countedWriter struct {
	http.ResponseWriter
	n    *atomic.Int64
	left int64
	cut  bool
}

func (w *countedWriter) Write(p []byte) (int, error) {
	if w.cut && int64(len(p)) > w.left {
		n, _ := w.ResponseWriter.Write(p[:w.left])
		w.n.Add(int64(n))
		if f, ok := w.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		// The way for a handler to drop the connection.
		panic(http.ErrAbortHandler)
	}
	n, err := w.ResponseWriter.Write(p)
	w.n.Add(int64(n))
	w.left -= int64(n)
	return n, err
}

// Flush hands on what was written, for answers that arrive in parts.
func (w *countedWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
