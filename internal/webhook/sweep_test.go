package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRequestsForASweep(t *testing.T) {
	b := newBench(t)
	request := func(age time.Duration, body string) *http.Request {
		stamp := strconv.FormatInt(b.now.Add(-age).Unix(), 10)
		r := httptest.NewRequest(http.MethodPost, PathSweep, strings.NewReader(body))
		r.Header.Set(headerSweepTime, stamp)
		r.Header.Set(headerSweepSignature, sign(testSecret, stamp, ".", body))
		return r
	}
	b.want(request(0, ""), http.StatusAccepted, "sweep")
	b.want(request(0, ""), http.StatusOK, "")
	b.want(request(0, "because"), http.StatusAccepted, "sweep")
	b.want(request(sweepWindow, ""), http.StatusAccepted, "sweep")
	b.want(request(-sweepWindow, ""), http.StatusAccepted, "sweep")
	b.want(request(sweepWindow+time.Second, ""), http.StatusUnauthorized, "")
	b.want(request(-sweepWindow-time.Second, ""), http.StatusUnauthorized, "")
	b.now = b.now.Add(sweepWindow)
	b.want(request(sweepWindow, ""), http.StatusOK, "") // the first one, kept for five minutes

	edits := map[string]func(r *http.Request){
		"another body":  func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")) },
		"another time":  func(r *http.Request) { r.Header.Set(headerSweepTime, strconv.FormatInt(b.now.Unix()+1, 10)) },
		"no time":       func(r *http.Request) { r.Header.Del(headerSweepTime) },
		"an empty time": func(r *http.Request) { r.Header.Set(headerSweepTime, "") },
		"two times":     func(r *http.Request) { r.Header.Add(headerSweepTime, "1") },
		"a signed time": func(r *http.Request) { r.Header.Set(headerSweepTime, "-1") },
		"a huge time":   func(r *http.Request) { r.Header.Set(headerSweepTime, strings.Repeat("9", 400)) },
		"no signature":  func(r *http.Request) { r.Header.Del(headerSweepSignature) },
		"GitHub's": func(r *http.Request) {
			r.Header.Set(headerSignature, sign(testSecret, ""))
			r.Header.Del(headerSweepSignature)
		},
		"upper case": func(r *http.Request) {
			r.Header.Set(headerSweepSignature, strings.ToUpper(r.Header.Get(headerSweepSignature)))
		},
		"without a dot": func(r *http.Request) {
			r.Header.Set(headerSweepSignature, sign(testSecret, r.Header.Get(headerSweepTime)))
		},
		"another secret": func(r *http.Request) {
			r.Header.Set(headerSweepSignature, sign("x", r.Header.Get(headerSweepTime), "."))
		},
	}
	for name, edit := range edits {
		r := request(0, "")
		edit(r)
		if status, text := b.do(r); status != http.StatusUnauthorized || b.take() != "" {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	b.want(request(0, strings.Repeat("x", maxSweepBody)), http.StatusAccepted, "sweep")
	b.want(request(0, strings.Repeat("x", maxSweepBody+1)), http.StatusRequestEntityTooLarge, "")
	r := request(0, strings.Repeat("x", maxSweepBody+1))
	r.ContentLength = -1 // chunked
	b.want(r, http.StatusRequestEntityTooLarge, "")
}
