package githubtest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// limitWindow is how long a primary limit lasts.
const limitWindow = time.Hour

// SetLimit sets how many requests are left in each hour, from now on.
func (s *Server) SetLimit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.used, s.window = n, 0, time.Now()
}

// Ban makes every request before then wrong; the test has told the client so
// by a fault.
func (s *Server) Ban(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.banned = until
}

// count takes one request from the limit, and refuses it where none is left.
// The lock is held.
func (s *Server) count(out *reply) bool {
	now := time.Now()
	if now.Sub(s.window) >= limitWindow {
		s.window, s.used = now, 0
	}
	reset := s.window.Add(limitWindow)
	exceeded := s.used >= s.limit
	if !exceeded {
		s.used++
	}
	if out.header == nil {
		out.header = map[string]string{}
	}
	out.header["X-RateLimit-Limit"] = strconv.Itoa(s.limit)
	out.header["X-RateLimit-Remaining"] = strconv.Itoa(s.limit - s.used)
	out.header["X-RateLimit-Reset"] = strconv.FormatInt(reset.Unix(), 10)
	out.header["Date"] = now.UTC().Format(http.TimeFormat)
	if exceeded {
		s.banned = reset.Truncate(time.Second)
		out.status = http.StatusForbidden
		out.body = map[string]any{"message": fmt.Sprintf("API rate limit exceeded for installation ID %d.", 1), "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}
	}
	return exceeded
}
