package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testSecret = "it's a secret to everybody"
	commitA    = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB    = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	zeros      = "0000000000000000000000000000000000000000"
)

// bench is hooks with somebody who notes what they are told.
type bench struct {
	t       testing.TB
	hooks   *Hooks
	secrets string // the file
	logs    *bytes.Buffer

	mu    sync.Mutex
	now   time.Time
	heard []string
	ids   int
}

func newBench(t testing.TB, edits ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, secrets: filepath.Join(t.TempDir(), "secret"), logs: &bytes.Buffer{}, now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	b.rotate(testSecret + "\n")
	note := func(format string, args ...any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, fmt.Sprintf(format, args...))
	}
	cfg := Config{
		SecretFile: b.secrets, URL: "https://git.example.com/acme/fleet.git", Branch: "main",
		Push:        func(p Push) { note("push %s %.1s..%.1s", p.Branch, p.Before, p.Commit) },
		Sweep:       func() { note("sweep") },
		PullRequest: func(p PullRequest) { note("pull request %d %s %.1s", p.Number, p.Action, p.Head) },
		Now: func() time.Time {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.now
		},
		Logger: slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	hooks, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.hooks = hooks
	return b
}

func (b *bench) rotate(content string) {
	b.t.Helper()
	if err := os.WriteFile(b.secrets, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// take gives what the hooks told since the last time.
func (b *bench) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	heard := strings.Join(b.heard, "; ")
	b.heard = nil
	return heard
}

func sign(secret string, parts ...string) string {
	sum := hmac.New(sha256.New, []byte(secret))
	for _, part := range parts {
		sum.Write([]byte(part))
	}
	return "sha256=" + hex.EncodeToString(sum.Sum(nil))
}

// request is a signed delivery of its own id, as JSON.
func (b *bench) request(event, body string) *http.Request {
	b.ids++
	r := httptest.NewRequest(http.MethodPost, PathGitHub, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(headerEvent, event)
	r.Header.Set(headerDelivery, fmt.Sprintf("72d3162e-cc78-11e3-81ab-%012d", b.ids))
	r.Header.Set(headerSignature, sign(testSecret, body))
	return r
}

func (b *bench) do(r *http.Request) (status int, text string) {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.hooks.Handlers()[strings.TrimSuffix(r.URL.Path, "/")].ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (b *bench) want(r *http.Request, status int, heard string) {
	b.t.Helper()
	got, text := b.do(r)
	if told := b.take(); got != status || told != heard {
		b.t.Errorf("%d %q and told %q, want %d and %q", got, text, told, status, heard)
	}
}

const acme = `"repository": {"full_name": "acme/fleet", "html_url": "https://git.example.com/acme/fleet", "clone_url": "https://git.example.com/acme/fleet.git"}`

func pushBody(ref, before, after string) string {
	return fmt.Sprintf(`{"ref": %q, "before": %q, "after": %q, "commits": [{"id": %q, "author": {"name": "gitopsd"}, "modified": ["devices/x.yaml"]}], %s}`, ref, before, after, after, acme)
}

func pullBody(action, base, more string) string {
	return fmt.Sprintf(`{"action": %q, "number": 7, "pull_request": {"head": {"sha": %q}, "base": {"ref": %q}}, %s %s}`, action, commitB, base, more, acme)
}

func TestPushes(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ ref, before, after, heard string }{
		{"refs/heads/main", commitA, commitB, "push main a..b"},
		{"refs/heads/main", zeros, commitB, "push main ..b"},
		{"refs/heads/main", commitA, zeros, "push main a.."},
		{"refs/heads/gitopsd/brake", commitA, commitB, "push gitopsd/brake a..b"},
		{"refs/heads/gitopsd/brake", commitA, zeros, "push gitopsd/brake a.."},
		{"refs/heads/feature", commitA, commitB, ""},
		{"refs/heads/main2", commitA, commitB, ""},
		{"refs/heads/Main", commitA, commitB, ""},
		{"refs/tags/main", commitA, commitB, ""},
		{"refs/gitopsd/devices/gw-1", commitA, commitB, ""},
	} {
		b.want(b.request("push", pushBody(c.ref, c.before, c.after)), http.StatusAccepted, c.heard)
	}
}

// The daemon's own pushes come back as deliveries, and must not bring a sweep,
// which would push, which would come back.
func TestB18_OwnPushBringsNothing(t *testing.T) {
	b := newBench(t)
	for _, ref := range []string{"refs/heads/gitopsd/status", "refs/heads/gitopsd/devices/gw-1", "refs/gitopsd/devices/gw-1", "refs/heads/gitopsd/reports/gw-1"} {
		b.want(b.request("push", pushBody(ref, commitA, commitB)), http.StatusAccepted, "")
	}
}

func TestPullRequests(t *testing.T) {
	b := newBench(t)
	rebased := `"changes": {"base": {"ref": {"from": "main"}, "sha": {"from": "` + commitA + `"}}},`
	for _, c := range []struct{ action, base, more, heard string }{
		{"opened", "main", "", "pull request 7 opened b"},
		{"synchronize", "main", "", "pull request 7 synchronize b"},
		{"reopened", "main", "", "pull request 7 reopened b"},
		{"closed", "main", "", "pull request 7 closed b"},
		{"edited", "main", `"changes": {"base": {"ref": {"from": "other"}}},`, "pull request 7 edited b"},
		{"edited", "other", rebased, "pull request 7 edited b"},
		{"edited", "main", `"changes": {"title": {"from": "x"}},`, ""},
		{"labeled", "main", "", ""},
		{"opened", "other", "", ""},
	} {
		b.want(b.request("pull_request", pullBody(c.action, c.base, c.more)), http.StatusAccepted, c.heard)
	}
	b = newBench(t, func(c *Config) { c.PullRequest = nil })
	b.want(b.request("pull_request", pullBody("opened", "main", "")), http.StatusAccepted, "")
}

func TestForms(t *testing.T) {
	b := newBench(t)
	form := func(body string) *http.Request {
		r := b.request("push", body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		return r
	}
	good := url.Values{"payload": {pushBody("refs/heads/main", commitA, commitB)}}.Encode()
	b.want(form(good), http.StatusAccepted, "push main a..b")
	for _, bad := range []string{"", "payload", "other=x", good + "&payload=%7B%7D", "payload=%zz", pushBody("refs/heads/main", commitA, commitB)} {
		b.want(form(bad), http.StatusBadRequest, "")
	}
	r := b.request("push", good)
	b.want(r, http.StatusBadRequest, "")
	for _, kind := range []string{"", "text/plain", "multipart/form-data; boundary=x", "application/json/x", "application/xml"} {
		r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
		r.Header.Set("Content-Type", kind)
		b.want(r, http.StatusUnsupportedMediaType, "")
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestB111_NoSecretNoEndpoint(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"empty": "", "newline": "\n", "blanks": " \t\r\n\r\n  \n"} {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(Config{SecretFile: file, Push: func(Push) {}, Sweep: func() {}})
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("a file with %q gives %v", content, err)
		}
	}
	for name, content := range map[string]string{"long": strings.Repeat("x", maxSecretFile+1), "list": strings.Repeat("x\n", maxSecrets+1)} {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{SecretFile: file, Push: func(Push) {}, Sweep: func() {}}); err == nil {
			t.Errorf("a file of %d bytes was taken", len(content))
		}
	}
	for _, file := range []string{"", filepath.Join(folder, "none"), folder} {
		if _, err := New(Config{SecretFile: file, Push: func(Push) {}, Sweep: func() {}}); err == nil {
			t.Errorf("the secret file %q was taken", file)
		}
	}

	// It goes away later: nobody is believed, not even who signs with nothing.
	b := newBench(t)
	body := pushBody("refs/heads/main", commitA, commitB)
	for _, content := range []string{"", "\n", "  \n"} {
		b.rotate(content)
		for _, secret := range []string{testSecret, "", "\n", "  "} {
			r := b.request("push", body)
			r.Header.Set(headerSignature, sign(secret, body))
			b.want(r, http.StatusServiceUnavailable, "")
		}
	}
	if n := strings.Count(b.logs.String(), "nobody is believed"); n != 1 {
		t.Errorf("that there is no secret is said %d times:\n%s", n, b.logs)
	}
}

func TestB111_SignaturesThatAreNone(t *testing.T) {
	b := newBench(t)
	body := pushBody("refs/heads/main", commitA, commitB)
	good := sign(testSecret, body)
	digits := strings.TrimPrefix(good, signaturePrefix)
	for name, headers := range map[string][]string{
		"none": nil, "empty": {""}, "no digits": {"sha256="}, "upper case": {signaturePrefix + strings.ToUpper(digits)},
		"upper-case name": {"SHA256=" + digits}, "no name": {digits}, "twice": {good, good}, "wrong first": {sign("x", body), good},
		"a list": {good + "," + good}, "cut": {good[:len(good)-2]}, "longer": {good + "00"}, "blank": {good + " "},
		"not hex": {signaturePrefix + strings.Repeat("g", 64)}, "sha1": {"sha1=" + digits[:40]},
	} {
		r := b.request("push", body)
		r.Header[headerSignature] = headers
		r.Body = io.NopCloser(unread{t})
		if status, text := b.do(r); status != http.StatusUnauthorized || b.take() != "" {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	// sha1 alone, as old hooks send it.
	r := b.request("push", body)
	r.Header.Del(headerSignature)
	r.Header.Set("X-Hub-Signature", "sha1=0123456789012345678901234567890123456789")
	b.want(r, http.StatusUnauthorized, "")

	for name, mac := range map[string]string{
		"another secret": sign("another", body), "no secret": sign("", body), "with the line end": sign(testSecret+"\n", body),
		"another body": sign(testSecret, body+" "), "zeros": signaturePrefix + strings.Repeat("0", 64),
	} {
		r := b.request("push", body)
		r.Header.Set(headerSignature, mac)
		if status, text := b.do(r); status != http.StatusUnauthorized || b.take() != "" {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	b.want(b.request("push", body), http.StatusAccepted, "push main a..b")
	if n := strings.Count(b.logs.String(), "requests are refused"); n != 1 {
		t.Errorf("refused requests are said %d times within a minute:\n%s", n, b.logs)
	}
}

// The example of GitHub's documentation.
func TestSignatureAsDocumented(t *testing.T) {
	mac, wrong := signature(&http.Request{Header: http.Header{headerSignature: {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}}}, headerSignature)
	if wrong.status != 0 || !signed(mac, [][]byte{[]byte("It's a Secret to Everybody")}, []byte("Hello, World!")) {
		t.Errorf("the documented signature is refused: %v", wrong)
	}
}

func TestB111_SecretsRotate(t *testing.T) {
	b := newBench(t)
	send := func(secret string, n int) int {
		body := pushBody("refs/heads/main", commitA, fmt.Sprintf("%040x", n))
		r := b.request("push", body)
		r.Header.Set(headerSignature, sign(secret, body))
		status, _ := b.do(r)
		return status
	}
	for i, c := range []struct {
		file     string
		old, new int
	}{
		{"old", 202, 401},
		{"old\r\nnew\r\n", 202, 202},
		{"\n  \nnew\nold", 202, 202},
		{"new\n", 401, 202},
		{" old \n", 401, 401}, // blanks within a line are part of the secret
	} {
		b.rotate(c.file)
		if old, fresh := send("old", 10*i+1), send("new", 10*i+2); old != c.old || fresh != c.new {
			t.Errorf("with %q the old secret gives %d and the new one %d", c.file, old, fresh)
		}
	}
}

func TestB113_WhatSendersTakeForSuccess(t *testing.T) {
	b := newBench(t)
	body := pushBody("refs/heads/main", commitA, commitB)
	b.want(b.request("ping", `{"zen": "Keep it logically awesome.", "hook_id": 1}`), http.StatusOK, "")
	for _, event := range []string{"issues", "workflow_run", "no such event", "push2", strings.Repeat("x", 5000)} {
		r := b.request(event, `{"action": "opened"}`)
		status, text := b.do(r)
		if status != http.StatusAccepted || !strings.HasPrefix(text, "ignored") || b.take() != "" {
			t.Errorf("%q: %d %q", event, status, text)
		}
	}
	r := b.request("push", body)
	r.Header.Del(headerEvent)
	b.want(r, http.StatusBadRequest, "")
	b.want(b.request("push", ""), http.StatusBadRequest, "")
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		for path, h := range b.hooks.Handlers() {
			r := b.request("push", body)
			r.Method, r.Body = method, io.NopCloser(unread{t})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
				t.Errorf("%s %s: %d, Allow: %q", method, path, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

func TestB113_ReplaysDoNothing(t *testing.T) {
	b := newBench(t)
	first := b.request("push", pushBody("refs/heads/main", commitA, commitB))
	id := first.Header.Get(headerDelivery)
	b.want(first, http.StatusAccepted, "push main a..b")
	for range 3 { // the same again
		r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
		r.Header.Set(headerDelivery, id)
		b.want(r, http.StatusOK, "")
	}
	// The id is not signed: another one, or none, does not make it new.
	b.want(b.request("push", pushBody("refs/heads/main", commitA, commitB)), http.StatusOK, "")
	r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
	r.Header.Del(headerDelivery)
	b.want(r, http.StatusOK, "")
	// The same id with another body is none of GitHub's.
	r = b.request("push", pushBody("refs/heads/main", commitB, commitA))
	r.Header.Set(headerDelivery, id)
	b.want(r, http.StatusOK, "")
	b.want(b.request("push", pushBody("refs/heads/main", commitB, commitA)), http.StatusAccepted, "push main b..a")

	// What was refused is not remembered.
	body := pushBody("refs/heads/main", commitA, zeros)
	r = b.request("push", body)
	id = r.Header.Get(headerDelivery)
	r.Header.Set(headerSignature, sign("wrong", body))
	b.want(r, http.StatusUnauthorized, "")
	r = b.request("push", body)
	r.Header.Set(headerDelivery, id)
	b.want(r, http.StatusAccepted, "push main a..")
}

func TestB113_DuplicatesAtOnceAreOne(t *testing.T) {
	b := newBench(t)
	var all sync.WaitGroup
	for range 20 {
		r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
		r.Header.Set(headerDelivery, "one")
		all.Go(func() { b.do(r) })
	}
	all.Wait()
	if heard := b.take(); heard != "push main a..b" {
		t.Errorf("told %q", heard)
	}
}

func TestSeenIsBounded(t *testing.T) {
	s := newSeen()
	k := func(i int) key { return keyOf("x", []byte(strconv.Itoa(i))) }
	for i := range 3 * maxSeen {
		if !s.add(k(i)) {
			t.Fatalf("%d was there before", i)
		}
	}
	if len(s.keys) != maxSeen || len(s.ring) != maxSeen {
		t.Errorf("%d keys are remembered in a ring of %d", len(s.keys), len(s.ring))
	}
	if s.add(k(3*maxSeen-1)) || s.add(k(2*maxSeen)) || !s.add(k(2*maxSeen-1)) {
		t.Error("it does not remember just the last ones")
	}
}

func TestB110_PayloadsThatMakeNoSense(t *testing.T) {
	b := newBench(t)
	good := pushBody("refs/heads/main", commitA, commitB)
	marker := "PAYLOADTEXT"
	bad := map[string][]string{
		"push": {
			"", "{}", "[]", "null", "5", `"x"`, "true", good[:len(good)/2], good + "x", "\xff\xfe", "{\"ref\": \"" + marker,
			strings.Replace(good, `"ref": "refs/heads/main"`, `"ref": 5`, 1),
			strings.Replace(good, `"ref": "refs/heads/main"`, `"ref": null`, 1),
			strings.Replace(good, `"ref": "refs/heads/main"`, `"ref": "`+marker+`"`, 1),
			strings.Replace(good, `"ref": "refs/heads/main"`, `"ref": {"`+marker+`": []}`, 1),
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `", "commits": null, ` + acme + `}`,
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `", "commits": "` + marker + `", ` + acme + `}`,
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `"}`,
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `", "repository": {}}`,
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `", "repository": "` + marker + `"}`,
			`{"ref": "refs/heads/main", "after": 5, ` + acme + `}`,
			`{"ref": "refs/heads/main", "after": "` + marker + `", ` + acme + `}`,
			`{"ref": "refs/heads/main", "after": "` + strings.ToUpper(commitB) + `", ` + acme + `}`,
			`{"ref": "refs/heads/main", ` + acme + `}`,
			strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
			`{"ref": ` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
			`{"x": ` + strings.Repeat(`{"x":`, 100_000),
		},
		"pull_request": {
			"", "{}", "[]", "null", `{"pull_request": null}`, `{"pull_request": {"head": null, "base": null}, "number": 1}`,
			strings.Replace(pullBody("opened", "main", ""), `"number": 7`, `"number": "`+marker+`"`, 1),
			strings.Replace(pullBody("opened", "main", ""), `"number": 7`, `"number": -7`, 1),
			strings.Replace(pullBody("opened", "main", ""), `"number": 7`, `"number": 7e300`, 1),
			strings.Replace(pullBody("opened", "main", ""), commitB, marker, 1),
			strings.Replace(pullBody("opened", "main", ""), acme, `"repository": null`, 1),
			pullBody("edited", "main", `"changes": [],`),
		},
	}
	for event, list := range bad {
		for _, body := range list {
			b.logs.Reset()
			b.want(b.request(event, body), http.StatusBadRequest, "")
			said := b.logs.String()
			if strings.Count(said, "\n") != 1 || !strings.Contains(said, "cannot be read") || strings.Contains(said, marker) || len(said) > 400 {
				t.Errorf("%.80s: the log says\n%s", body, said)
			}
			if t.Failed() {
				t.Logf("after %.200s", body)
			}
		}
	}
	b.want(b.request("push", good), http.StatusAccepted, "push main a..b")
}

// What a sender writes anywhere does not get to the log, in whichever place.
func TestNothingOfASenderReachesTheLog(t *testing.T) {
	b := newBench(t)
	evil := "x\nlevel=ERROR msg=EVIL \x1b[31m\u202e"
	for _, body := range []string{
		pushBody("refs/heads/"+evil, commitA, commitB),
		strings.ReplaceAll(pushBody("refs/heads/main", commitA, commitB), "acme", "EVIL\\n"),
		`{"ref": "refs/heads/main", "after": "EVIL\n", ` + acme + `}`,
	} {
		b.do(b.request("push", body))
		b.do(b.request("EVIL", body))
		r := b.request("push", body)
		r.Header.Set(headerDelivery, "EVIL\n")
		b.do(r)
		r = b.request("push", body)
		r.Header[headerSignature] = []string{"EVIL"}
		b.do(r)
	}
	r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
	r.Header.Set(headerDelivery, "72d3\nlevel=ERROR EVIL")
	b.want(r, http.StatusBadRequest, "")
	r = b.request("push", pushBody("refs/heads/main", commitA, commitB))
	r.Header.Set(headerDelivery, strings.Repeat("1", maxDelivery+1))
	b.want(r, http.StatusBadRequest, "")
	if said := b.logs.String(); strings.Contains(said, "EVIL") || strings.Contains(said, "\x1b") || said == "" {
		t.Errorf("the log says\n%s", said)
	}
}

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

func TestTheWatchedRepository(t *testing.T) {
	for _, c := range []struct {
		url, name string
		said      repository
		want      bool
	}{
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "https://github.com/acme/fleet", said: repository{FullName: "Acme/Fleet"}, want: true},
		{url: "https://x-access-token:abc@github.com/acme/fleet/", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "git@github.com:acme/fleet.git", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "ssh://git@ssh.github.com:443/acme/fleet.git", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "https://host.example/git/acme/fleet.git", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "acme/other"}},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "evil/acme/fleet"}},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "fleet"}},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "me/fleet"}},
		{url: "https://github.com/acme/fleet.git", said: repository{FullName: "/"}},
		{url: "https://github.com/acme/fleet.git", said: repository{CloneURL: "https://GitHub.com:443/acme/fleet.git"}, want: true},
		{url: "https://github.com/acme/fleet.git", said: repository{SSHURL: "git@github.com:acme/fleet.git"}, want: true},
		{url: "https://github.com/acme/fleet.git", said: repository{HTMLURL: "https://github.com/acme/fleet"}, want: true},
		{url: "https://github.com/acme/fleet.git", said: repository{CloneURL: "https://evil.example/acme/fleet.git"}},
		{url: "https://github.com/acme/fleet.git", said: repository{CloneURL: "https://github.com:8443/acme/fleet.git"}},
		{url: "http://127.0.0.1:3000/fleet.git", said: repository{FullName: "fleet"}, want: true},
		{url: "http://127.0.0.1:3000/fleet.git", said: repository{FullName: "x/y", CloneURL: "http://127.0.0.1:3000/fleet.git"}, want: true},
		{url: "/srv/git/fleet.git", said: repository{CloneURL: "/srv/git/fleet.git"}, want: true},
		{url: "/srv/git/fleet.git", said: repository{CloneURL: "file:///srv/git/fleet.git"}, want: true},
		{url: "/srv/git/fleet.git", said: repository{FullName: "acme/fleet"}},
		{url: "/srv/git/fleet.git", name: "acme/fleet", said: repository{FullName: "acme/fleet"}, want: true},
		{url: "https://github.com/acme/fleet.git", name: "acme/real", said: repository{FullName: "acme/fleet"}},
		{url: "https://github.com/acme/fleet.git", name: "acme/real", said: repository{CloneURL: "https://github.com/acme/fleet.git"}},
		{url: "", said: repository{FullName: "acme/fleet"}},
		{url: "", said: repository{CloneURL: "https://"}},
	} {
		if got := newWatched(c.url, c.name).is(c.said); got != c.want {
			t.Errorf("%q called %q is %+v: %v", c.url, c.name, c.said, got)
		}
	}
	b := newBench(t, func(c *Config) { c.URL = "https://git.example.com/acme/another.git" })
	for range 3 {
		b.want(b.request("push", pushBody("refs/heads/main", commitA, commitB)), http.StatusAccepted, "")
		b.want(b.request("pull_request", pullBody("opened", "main", "")), http.StatusAccepted, "")
	}
	if said := b.logs.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "webhook.repository") {
		t.Errorf("another repository is said like this:\n%s", said)
	}
}
