package githubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Request is one request that a client made.
type Request struct {
	Method string
	Path   string // with its query
	Body   string
	Status int // of the answer
	At     time.Time
}

// String is the request on one line, without its body.
func (r Request) String() string { return fmt.Sprintf("%s %s %d", r.Method, r.Path, r.Status) }

// Answer is what a fault answers with.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
	// Cut ends the connection in the middle of the body, and Hang before there
	// is any answer.
	Cut, Hang bool
}

// Server is the API of one repository.
type Server struct {
	URL string // without a slash at its end

	owner, name string
	commits     func(sha string) bool

	mu       sync.Mutex
	tokens   map[string]*token
	app      *app
	pulls    map[int]*pull
	comments []*comment
	statuses map[string][]status // by commit, the oldest first
	checks   []*check
	lastID   int64
	fault    func(r Request) *Answer
	requests []*Request
	wrongs   []string
	clients  map[string]*manners // by what they authenticate with
	banned   time.Time           // a client was told to wait until then
	window   time.Time           // of the primary limit
	used     int
	limit    int
}

// manners is how one client behaves.
type manners struct {
	running int
	wrote   time.Time
}

// defaultLimit is what GitHub gives to a person's token each hour.
const defaultLimit = 5000

// New serves owner/name until the test ends. commits says which commits there
// are; nil = every one but that of zeros.
func New(t testing.TB, owner, name string, commits func(sha string) bool) *Server {
	t.Helper()
	if commits == nil {
		commits = func(sha string) bool { return strings.Trim(sha, "0") != "" }
	}
	s := &Server{
		owner: owner, name: name, commits: commits, limit: defaultLimit, lastID: 1000,
		tokens: map[string]*token{}, pulls: map[int]*pull{}, statuses: map[string][]status{}, clients: map[string]*manners{},
	}
	return s
}

// Listen makes the server reachable on loopback.
func (s *Server) Listen(t testing.TB) {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	s.URL = web.URL
}

// Fault sees every request before it is handled and may answer it; nil ends it.
func (s *Server) Fault(f func(r Request) *Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Requests are those since the last [Server.Forget].
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Writes are the requests that would change something, without those for
// tokens.
func (s *Server) Writes() []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool {
		return r.Method == http.MethodGet || strings.HasSuffix(r.Path, "/access_tokens")
	})
}

// Forget forgets the requests so far.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Wrongs is what a client did that GitHub asks it not to do.
func (s *Server) Wrongs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wrongs)
}

// maxBody bounds what a client may send, in bytes.
const maxBody = 4 << 20

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	req := &Request{Method: r.Method, Path: r.URL.RequestURI(), Body: string(body), At: time.Now()}
	s.mu.Lock()
	client := s.arrive(r, req)
	fault := s.fault
	s.mu.Unlock()
	defer s.leave(req, client)
	if fault != nil {
		if answer := fault(*req); answer != nil {
			s.mu.Lock()
			req.Status = answer.Status
			s.mu.Unlock()
			answer.write(w, r)
			return
		}
	}
	s.mu.Lock()
	out := s.answer(r, body)
	req.Status = out.status
	s.mu.Unlock()
	s.send(w, r, req, out)
}

// nearEnough is by how much two writes may be closer than a second: the clocks
// of client and server start at different ends of a connection.
const nearEnough = 100 * time.Millisecond

// arrive notes a request and what is wrong with its coming. The lock is held.
func (s *Server) arrive(in *http.Request, r *Request) *manners {
	s.requests = append(s.requests, r)
	client := s.clients[in.Header.Get("Authorization")]
	if client == nil {
		client = &manners{}
		s.clients[in.Header.Get("Authorization")] = client
	}
	if client.running++; client.running > 1 {
		s.wrongs = append(s.wrongs, "two requests at a time: "+r.String())
	}
	if r.At.Before(s.banned.Add(-nearEnough)) {
		s.wrongs = append(s.wrongs, fmt.Sprintf("%v too early after a limit: %s", s.banned.Sub(r.At), r))
	}
	if r.Method != http.MethodGet {
		if since := r.At.Sub(client.wrote); since < time.Second-nearEnough {
			s.wrongs = append(s.wrongs, fmt.Sprintf("a write %v after another one: %s", since, r))
		}
	}
	return client
}

func (s *Server) leave(r *Request, client *manners) {
	s.mu.Lock()
	defer s.mu.Unlock()
	client.running--
	if r.Method != http.MethodGet {
		client.wrote = time.Now()
	}
}

// reply is an answer in the making.
type reply struct {
	status int
	body   any
	next   int // page; 0 = this was the last
	last   int
	header map[string]string
}

func refuse(status int, message string) reply {
	return reply{status: status, body: map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest"}}
}

// send writes an answer with its entity tag, pages and limits.
func (s *Server) send(w http.ResponseWriter, r *http.Request, req *Request, out reply) {
	data := []byte(nil)
	if out.status != http.StatusNoContent {
		data, _ = json.Marshal(out.body)
	}
	h := w.Header()
	for name, value := range out.header {
		h.Set(name, value)
	}
	if out.next > 0 {
		link := func(page int, rel string) string {
			u := *r.URL
			q := u.Query()
			q.Set("page", strconv.Itoa(page))
			u.RawQuery = q.Encode()
			return "<" + s.URL + u.RequestURI() + `>; rel="` + rel + `"`
		}
		h.Set("Link", link(out.next, "next")+", "+link(out.last, "last"))
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	if r.Method == http.MethodGet && out.status == http.StatusOK {
		sum := sha256.Sum256(append(data, r.Header.Get("Authorization")...))
		tag := `W/"` + hex.EncodeToString(sum[:]) + `"`
		h.Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
			s.mu.Lock()
			s.used--
			req.Status = http.StatusNotModified
			s.mu.Unlock()
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(out.status)
	_, _ = w.Write(data)
}

// write answers with a fault.
func (a *Answer) write(w http.ResponseWriter, r *http.Request) {
	if a.Hang {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	if a.Cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body[:len(a.Body)/2])
		return
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body)
}

// Transport reaches the server without a network.
func (s *Server) Transport() http.RoundTripper { return direct{s} }

type direct struct{ s *Server }

// RoundTrip hands the request over and gives the answer.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	w := httptest.NewRecorder()
	d.s.ServeHTTP(w, in)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	out := w.Result()
	out.Request = r
	if n, err := strconv.Atoi(out.Header.Get("Content-Length")); err == nil && n > w.Body.Len() {
		out.Body = io.NopCloser(io.MultiReader(bytes.NewReader(w.Body.Bytes()), cut{}))
	}
	return out, nil
}

// cut is the end of a connection in the middle of a body.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
