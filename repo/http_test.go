package repo_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// fillRefs gives a repository n reports by one git process.
func fillRefs(t testing.TB, bare, commit string, n int) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range n {
		fmt.Fprintf(&b, "%s refs/gitopsd/devices/dev-%06d\n", commit, i)
	}
	if err := os.WriteFile(filepath.Join(bare, "packed-refs"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestIdlePollBytes(t *testing.T) {
	ctx := context.Background()
	const limit = 200
	for _, n := range []int{10, 10_000} {
		p := overHTTP(t)
		r := open(t, p)
		c := orphan(t, r, "x")
		if err := moveLead(r, "refs/gitopsd/devices/mine", "", c); err != nil {
			t.Fatal(err)
		}
		fillRefs(t, p.bare, c, n)
		d := openDevice(t, p)
		if _, _, err := d.Read(ctx, "refs/gitopsd/devices/dev-000007", c, 1000); err != nil {
			t.Fatal(err)
		}
		p.srv.ResetTraffic()
		commit, files, err := d.Read(ctx, "refs/gitopsd/devices/dev-000007", c, 1000)
		if err != nil || commit != c || files != nil {
			t.Fatalf("poll: %q %v %v", commit, files, err)
		}
		requests, in, out := p.srv.Traffic()
		t.Logf("%d refs: %d request, %d + %d bytes of bodies", n, requests, in, out)
		if requests != 1 || in+out > limit {
			t.Errorf("with %d refs an idle poll takes %d requests and %d bytes, want 1 and at most %d", n, requests, in+out, limit)
		}
		// A change is two requests, and its cost does not depend on the refs either.
		other := orphan(t, r, "y")
		if err := moveLead(r, "refs/gitopsd/devices/mine", c, other); err != nil {
			t.Fatal(err)
		}
		p.srv.ResetTraffic()
		if _, files, err := d.Read(ctx, "refs/gitopsd/devices/mine", c, 1000); err != nil || string(files["report.yaml"]) != "y" {
			t.Fatalf("read: %q %v", files, err)
		}
		requests, in, out = p.srv.Traffic()
		if requests != 2 || in+out > 1500 {
			t.Errorf("with %d refs a change takes %d requests and %d bytes, want 2 and at most 1500", n, requests, in+out)
		}
		// So is a report, once the server is known.
		w := must[string](t, "write")(d.Write(ctx, "refs/gitopsd/reports/a", "", map[string][]byte{"report.yaml": []byte("1")}))
		p.srv.ResetTraffic()
		must[string](t, "write")(d.Write(ctx, "refs/gitopsd/reports/a", w, map[string][]byte{"report.yaml": []byte("2")}))
		if requests, in, out = p.srv.Traffic(); requests != 1 || in+out > 1500 {
			t.Errorf("with %d refs a report takes %d requests and %d bytes, want 1 and at most 1500", n, requests, in+out)
		}
	}
}

func TestHTTPAnswers(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	seed(t, p, "main", map[string]string{"a": "a"})
	for _, c := range []struct {
		what string
		set  func()
		kind string
		text string
	}{
		{"a web page", func() { p.srv.Fail(200, -1) }, "not-found", "check the URL"},
		{"forbidden", func() { p.srv.Fail(403, -1) }, "auth", "403"},
		{"missing", func() { p.srv.Fail(404, -1) }, "not-found", "404"},
		{"too many", func() { p.srv.Fail(429, -1) }, "network", "longer interval"},
		{"broken", func() { p.srv.Fail(500, -1) }, "network", "500"},
		{"away", func() { p.srv.Fail(503, -1) }, "network", "503"},
		{"credentials wanted", func() { p.srv.Require("u", "p") }, "auth", "passwordFile or tokenFile (--password-file, --token-file)"},
	} {
		c.set()
		r := open(t, p)
		_, err := r.Refs(ctx, "refs/heads/")
		wantKind(t, c.what, err, c.kind)
		if !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), p.url) {
			t.Errorf("%s: %q does not hold %q and the URL", c.what, err, c.text)
		}
		// The same answers in the middle of it, when the server is known.
		p.srv.Fail(0, 0)
		p.srv.Require("", "")
		if _, err := r.Refs(ctx, "refs/heads/"); err != nil {
			t.Fatalf("%s: it does not recover: %v", c.what, err)
		}
		c.set()
		_, err = r.Refs(ctx, "refs/heads/")
		wantKind(t, c.what+", later", err, c.kind)
		d := openDevice(t, p)
		if err := d.Answers(ctx); err != nil {
			t.Errorf("%s: it is an answer, but: %v", c.what, err)
		}
		p.srv.Fail(0, 0)
		p.srv.Require("", "")
	}
	d, err := repo.OpenDevice(repo.Config{URL: "http://127.0.0.1:1/x.git"})
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, "nobody listens", d.Answers(ctx), "network")
}

// A kept connection goes on behind a firewall that lets no new one through: it
// proves nothing of what comes after it.
func TestAnswersAsksOnANewConnection(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	seed(t, p, "main", map[string]string{"a": "a"})
	srv := httptest.NewServer(p.srv)
	t.Cleanup(srv.Close)
	p.url = srv.URL + "/fleet.git"
	d := openDevice(t, p)
	read := func() {
		t.Helper()
		if _, _, err := d.Read(ctx, "refs/heads/main", "", 1000); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if err := d.Answers(ctx); err != nil {
		t.Fatal(err)
	}
	if err := srv.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	read() // on the connection that there is
	wantKind(t, "no new connection comes through", d.Answers(ctx), "network")
	read()
}

func TestHTTPServerLosesV2(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	c := seed(t, p, "main", map[string]string{"a": "a"})
	r := open(t, p)
	check := func() error {
		refs, err := r.Refs(ctx, "refs/heads/main")
		if err == nil && refs["refs/heads/main"] != c {
			t.Fatalf("refs are %v", refs)
		}
		return err
	}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	p.srv.OnlyV0(true)
	if err := check(); err != nil {
		t.Fatalf("after the server lost v2: %v", err)
	}
	p.srv.OnlyV0(false)
	if err := check(); err != nil {
		t.Fatalf("after the server has v2 again: %v", err)
	}
}

func TestCredentialsAreReadAgain(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	seed(t, p, "main", map[string]string{"a": "a"})
	file := filepath.Join(t.TempDir(), "password")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	p.srv.Require("bot", "first")
	p.cred = repo.Credentials{Username: "bot", PasswordFile: file}
	r := open(t, p)
	if _, err := r.Refs(ctx, "refs/heads/"); err != nil {
		t.Fatal(err)
	}
	c := orphan(t, r, "x")
	if err := moveLead(r, "refs/gitopsd/devices/a", "", c); err != nil {
		t.Fatal(err)
	}
	write("second")
	p.srv.Require("bot", "second")
	if _, err := r.Refs(ctx, "refs/heads/"); err != nil {
		t.Fatalf("after the password was changed: %v", err)
	}
	p.srv.Require("bot", "third")
	p.srv.ResetTraffic()
	_, err := r.Refs(ctx, "refs/heads/")
	wantKind(t, "the wrong password", err, "auth")
	if requests, _, _ := p.srv.Traffic(); requests != 2 {
		t.Errorf("the credentials were tried %d times, want 2", requests)
	}
	if strings.Contains(err.Error(), "second") {
		t.Errorf("the error shows the password: %v", err)
	}
	// The file changes between the two tries.
	p.srv.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if _, pass, _ := req.BasicAuth(); pass == "second" {
			write("third")
		}
		return false
	})
	if _, err := r.Refs(ctx, "refs/heads/"); err != nil {
		t.Fatalf("renewed at the last moment: %v", err)
	}
	p.srv.Intercept(nil)
	os.Remove(file)
	_, err = r.Refs(ctx, "refs/heads/")
	wantKind(t, "no password file", err, "auth")
	if !strings.Contains(err.Error(), file) {
		t.Errorf("the error does not name the file: %v", err)
	}

	write("tok")
	p.srv.Require("", "")
	p.srv.RequireToken("tok")
	p.cred = repo.Credentials{TokenFile: file}
	if _, err := open(t, p).Refs(ctx, "refs/heads/"); err != nil {
		t.Fatalf("bearer token: %v", err)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	ctx := context.Background()
	const secret = "hunter2"
	var log bytes.Buffer
	for _, url := range []string{
		"http://bot:" + secret + "@127.0.0.1:1/x.git",
		"http://bot:" + secret + "@127.0.0.1:1/x.git?private_token=" + secret,
		"http://" + secret + "@127.0.0.1:1/x.git",
		"http://bot:" + secret + "@127.0.0.1:port/x.git",
		"http://bot:" + secret + "%zz@127.0.0.1/x.git",
		"ftp://bot:" + secret + "@127.0.0.1/x.git",
		"ssh://bot:" + secret + "@127.0.0.1:1/x.git",
		"https://bot:" + secret + "@",
		"ssh://bot:" + secret + "@127.0.0.1",
		"bot:" + secret + "@127.0.0.1:x.git",
		"https:/bot:" + secret + "@127.0.0.1/x.git",
	} {
		r, err := repo.Open(repo.Config{URL: url, Store: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		if err == nil {
			_, err = r.Refs(ctx, "refs/heads/")
			if r.URL() != "" && strings.Contains(r.URL(), secret) {
				t.Errorf("URL() shows it: %s", r.URL())
			}
			r.Close()
		}
		if err == nil {
			t.Fatalf("%s: no error", url)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log shows the secret: %s", log.String())
	}
}

func TestRedirects(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	c := seed(t, p, "main", map[string]string{"a": "a"})
	seen := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen <- req.Header.Get("Authorization")
		http.Redirect(w, req, p.srv.URL+req.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	t.Cleanup(elsewhere.Close)
	// Within the origin, and to the new name from then on.
	p.srv.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if strings.HasPrefix(req.URL.Path, "/old.git/") {
			http.Redirect(w, req, strings.Replace(req.URL.RequestURI(), "/old.git", "/fleet.git", 1), http.StatusMovedPermanently)
			return true
		}
		return false
	})
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("pw"), 0o600); err != nil {
		t.Fatal(err)
	}
	cred := repo.Credentials{PasswordFile: file}
	r := open(t, place{url: p.srv.URL + "/old.git", cred: cred})
	refs, err := r.Refs(ctx, "refs/heads/")
	if err != nil || refs["refs/heads/main"] != c {
		t.Fatalf("a renamed repository: %v, %v", refs, err)
	}
	// To another origin: never with credentials.
	_, err = open(t, place{url: elsewhere.URL + "/fleet.git", cred: cred}).Refs(ctx, "refs/heads/")
	wantKind(t, "a redirect elsewhere with credentials", err, "refused")
	<-seen
	if _, err := open(t, place{url: elsewhere.URL + "/fleet.git"}).Refs(ctx, "refs/heads/"); err != nil {
		t.Fatalf("a redirect elsewhere without credentials: %v", err)
	}
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, req.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(loop.Close)
	_, err = open(t, place{url: loop.URL + "/x.git"}).Refs(ctx, "refs/heads/")
	wantKind(t, "a redirect in a circle", err, "network")
}

// stalls checks that each operation ends soon after its deadline.
func stalls(t *testing.T, p place, hang func(bool)) {
	t.Helper()
	c := seed(t, p, "main", map[string]string{"a": "a"})
	const deadline = 200 * time.Millisecond
	r, d := open(t, p), openDevice(t, p)
	o := orphan(t, r, "x")
	hang(true)
	for name, op := range map[string]func(ctx context.Context) error{
		"refs":  func(ctx context.Context) error { _, err := r.Refs(ctx, "refs/heads/"); return err },
		"head":  func(ctx context.Context) error { _, err := r.Head(ctx); return err },
		"fetch": func(ctx context.Context) error { return r.Fetch(ctx, "refs/heads/main", c, true) },
		"tips": func(ctx context.Context) error {
			_, err := r.Tips(ctx, map[string]string{"refs/heads/main": c}, 100)
			return err
		},
		"publish": func(ctx context.Context) error {
			_, err := r.Publish(ctx, map[string][2]string{"refs/heads/x": {"", o}}, nil)
			return err
		},
		"read":    func(ctx context.Context) error { _, _, err := d.Read(ctx, "refs/heads/main", "", 100); return err },
		"write":   func(ctx context.Context) error { _, err := d.Write(ctx, "refs/heads/y", "", nil); return err },
		"answers": func(ctx context.Context) error { return d.Answers(ctx) },
	} {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		start := time.Now()
		err := op(ctx)
		cancel()
		wantKind(t, name+" at a stalled server", err, "timeout")
		// A generous bound: the machine may be busy. Without a deadline it
		// would be the 30 seconds of the test's configuration.
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %s although its deadline was %s", name, took, deadline)
		}
	}
	hang(false)
	if _, err := r.Refs(context.Background(), "refs/heads/"); err != nil {
		t.Fatalf("it does not recover: %v", err)
	}
}

func TestStalledHTTP(t *testing.T) {
	p := overHTTP(t)
	stalls(t, p, func(on bool) {
		if on {
			p.srv.Hang()
		} else {
			p.srv.Resume()
		}
	})
}

// TestStalledInTheMiddle: the answer begins and never goes on.
func TestStalledInTheMiddle(t *testing.T) {
	p := overHTTP(t)
	c := seed(t, p, "main", map[string]string{"a": "a"})
	store := t.TempDir()
	r, d := openAt(t, p, store), openDevice(t, p)
	for _, op := range []func(ctx context.Context) error{
		func(ctx context.Context) error { return r.Fetch(ctx, "refs/heads/main", c, true) },
		func(ctx context.Context) error { _, _, err := d.Read(ctx, "refs/heads/main", "", 1000); return err },
	} {
		p.srv.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
			body, _ := io.ReadAll(req.Body)
			if !bytes.Contains(body, []byte("command=fetch")) {
				req.Body = io.NopCloser(bytes.NewReader(body))
				return false
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			io.WriteString(w, "000dpackfile\n0012\x01PACK\x00\x00\x00\x02\x00\x00\x00\x01\x95")
			w.(http.Flusher).Flush()
			<-req.Context().Done()
			return true
		})
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		wantKind(t, "an answer that never goes on", op(ctx), "timeout")
		cancel()
		p.srv.Intercept(nil)
		if err := op(context.Background()); err != nil {
			t.Fatalf("it does not recover: %v", err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(store, "objects", "pack", "tmp_*")); len(left) != 0 {
		t.Errorf("unfinished files are left: %v", left)
	}
}

// TestTruncatedAnswers cuts every answer after each number of bytes: an error,
// no panic, nothing half taken.
func TestTruncatedAnswers(t *testing.T) {
	for _, old := range []bool{false, true} {
		ctx := context.Background()
		p := overHTTP(t)
		p.srv.OnlyV0(old)
		c := seed(t, p, "main", map[string]string{"a": "a", "b/c": strings.Repeat("c", 500)})
		store := t.TempDir()
		r, d := openAt(t, p, store), openDevice(t, p)
		for n := int64(1); n < 1200; n += 37 {
			p.srv.Truncate(n)
			_, rerr := r.Refs(ctx, "refs/heads/main")
			ferr := r.Fetch(ctx, "refs/heads/main", c, true)
			_, files, derr := d.Read(ctx, "refs/heads/main", "", 10000)
			if derr == nil && len(files) != 2 {
				t.Fatalf("cut after %d bytes: read %q without an error", n, files)
			}
			for what, err := range map[string]error{"refs": rerr, "fetch": ferr, "read": derr} {
				if err != nil && kindOf(err) != "network" && kindOf(err) != "corrupt" {
					t.Fatalf("%s cut after %d bytes: %v (kind %s)", what, n, err, kindOf(err))
				}
			}
			if ferr == nil {
				break
			}
		}
		p.srv.Truncate(0)
		if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, r, c); len(got) != 2 {
			t.Fatalf("tree is %v", got)
		}
		left, _ := filepath.Glob(filepath.Join(store, "objects", "pack", "tmp_*"))
		if len(left) != 0 {
			t.Errorf("unfinished files are left: %v", left)
		}
	}
}

func TestHookRefuses(t *testing.T) {
	for _, hook := range []string{"pre-receive", "update"} {
		t.Run(hook, func(t *testing.T) {
			p := overHTTP(t)
			script := "#!/bin/sh\necho 'signed commits only' >&2\nexit 1\n"
			if hook == "update" {
				script = "#!/bin/sh\ncase $1 in refs/gitopsd/*) echo 'only branches here' >&2; exit 1;; esac\n"
			}
			if err := os.WriteFile(filepath.Join(p.bare, "hooks", hook), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			r := open(t, p)
			a, b := orphan(t, r, "a"), orphan(t, r, "b")
			refused, err := r.Publish(context.Background(), map[string][2]string{status: {"", a}}, map[string][2]string{"refs/gitopsd/devices/x": {"", b}})
			if hook == "pre-receive" {
				wantKind(t, "a hook that refuses everything", err, "refused")
				if !strings.Contains(err.Error(), "signed commits only") {
					t.Errorf("the error does not repeat the hook: %v", err)
				}
				return
			}
			// A server that takes only branches: the lead moves all the same.
			if err != nil || len(refused) != 1 || !strings.Contains(refused["refs/gitopsd/devices/x"], "only branches here") {
				t.Fatalf("refused %v, %v", refused, err)
			}
			if got := gitserver.Git(t, p.bare, "rev-parse", status); got != a {
				t.Fatalf("status is at %s", got)
			}
		})
	}
}

// TestUncertainPush: the server does it, but its answer never arrives.
func TestUncertainPush(t *testing.T) {
	for _, atomic := range []string{"true", "false"} {
		p := overHTTP(t)
		gitserver.Git(t, p.bare, "config", "receive.advertiseAtomic", atomic)
		r := open(t, p)
		a, b, c := orphan(t, r, "a"), orphan(t, r, "b"), orphan(t, r, "c")
		const delivery = "refs/gitopsd/devices/x"
		if err := moveLead(r, status, "", a); err != nil {
			t.Fatal(err)
		}
		p.srv.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
			if strings.HasSuffix(req.URL.Path, "/git-receive-pack") {
				p.srv.Intercept(nil)
				p.srv.ServeHTTP(httptest.NewRecorder(), req)
				panic(http.ErrAbortHandler)
			}
			return false
		})
		refused, err := r.Publish(context.Background(), map[string][2]string{status: {a, b}}, map[string][2]string{delivery: {"", c}})
		if err != nil || len(refused) > 0 {
			t.Fatalf("atomic %s: the push was done, and the refs show it, but: %v, %v", atomic, err, refused)
		}
		if got := gitserver.Git(t, p.bare, "rev-parse", status, delivery); got != b+"\n"+c {
			t.Fatalf("atomic %s: refs are at %s", atomic, got)
		}
	}
}

// TestDeliveriesAreComplete: the server has lost what it was once sent.
func TestDeliveriesAreComplete(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	r := open(t, p)
	payload := must[string](t, "put")(r.PutBlob(ctx, bytes.Repeat([]byte("payload "), 2000)))
	s1 := must[string](t, "commit")(r.Commit(ctx, "", map[string]string{"payloads/aa/x": payload}, time.Unix(1e9, 0), "one"))
	if err := moveLead(r, status, "", s1); err != nil {
		t.Fatal(err)
	}
	gitserver.Git(t, p.bare, "update-ref", "-d", status)
	gitserver.Git(t, p.bare, "prune", "--expire=now")
	o := must[string](t, "orphan")(r.Orphan(ctx, map[string]string{"payloads/x": payload}))
	refused, err := r.Publish(ctx, nil, map[string][2]string{"refs/gitopsd/devices/a": {"", o}})
	if err != nil || len(refused) != 0 {
		t.Fatalf("publish: %v, %v", refused, err)
	}
	fsck(t, p.bare)
}

// A proxy that answers with the right type and next to nothing is no empty
// repository: everything would seem to be gone.
func TestAnswerWithoutServiceLine(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	seed(t, p, "main", map[string]string{"a": "1"})
	for _, body := range []string{"0000", "00000000", "", "000eversion 1\n0000", "0000001e# service=git-upload-pack\n0000", "001f# service=git-receive-pack\n00000000"} {
		p.srv.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, body)
			return true
		})
		r := open(t, p)
		refs, err := r.Refs(ctx, "refs/heads/")
		wantKind(t, fmt.Sprintf("the body %q, which gave %v", body, refs), err, "network")
	}
	p.srv.Intercept(nil)
	empty := overHTTP(t)
	for _, v0 := range []bool{false, true} {
		empty.srv.OnlyV0(v0)
		if refs, err := open(t, empty).Refs(ctx, "refs/heads/"); err != nil || len(refs) != 0 {
			t.Errorf("a repository that is empty, v0 %v: %v, %v", v0, refs, err)
		}
	}
}
