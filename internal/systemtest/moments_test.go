//go:build system

package systemtest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/gitopsd/gitopsd/schema"
)

// The steps of an update in which its device needs the network, but for the
// images.
const (
	stepPoll      = "poll"
	stepFetch     = "fetch"
	stepAnnounce  = "announce"
	stepLookAgain = "look again"
	stepConfirm   = "confirm"
	stepReport    = "report"
)

// order is in which order they come, each with the request by which the git
// server knows it.
var order = []struct{ step, request string }{
	{stepPoll, "look"}, {stepFetch, "fetch"}, {stepAnnounce, "report"}, {stepLookAgain, "look"}, {stepConfirm, "answers"}, {stepReport, "report"},
}

// moments follows an update by what the device asks the git server for.
type moments struct {
	mu    sync.Mutex
	next  int // of order
	want  string
	act   func()
	taken bool
}

// at has act called when the next update comes to a step, before the server
// does what it is asked for; taken says whether it does so at all.
func (m *moments) at(step string, taken bool, act func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next, m.want, m.act, m.taken = 0, step, act, taken
}

// intercept is for [gitserver.Server.Intercept].
func (m *moments) intercept(_ http.ResponseWriter, r *http.Request) bool {
	act, taken := m.see(requestOf(r))
	if act != nil {
		act()
	}
	if act != nil && !taken {
		panic(http.ErrAbortHandler)
	}
	return false
}

func (m *moments) see(request string) (act func(), taken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.want == "" || request != order[m.next].request {
		return nil, false
	}
	step := order[m.next].step
	if m.next++; step != m.want {
		return nil, false
	}
	m.want = ""
	return m.act, m.taken
}

// requestOf says what a device asks for.
func requestOf(r *http.Request) string {
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs") && r.URL.Query().Get("service") == "git-upload-pack":
		return "answers"
	case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
		return "report"
	case !strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		return ""
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case err == nil && bytes.Contains(body, []byte(schema.DefaultDeviceRefs)):
		return "look"
	case err == nil && bytes.Contains(body, []byte("command=fetch")):
		return "fetch"
	}
	return ""
}
