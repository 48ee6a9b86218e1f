package repo_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// The tests of this file are named after what has gone wrong with other tools.

// A copy without history follows a branch that was forced back to an older
// commit, which it does not have.
func TestB01_ShallowCopyOfABranchThatWasForcedBack(t *testing.T) {
	everyWay(t, func(t *testing.T, p place) {
		ctx := context.Background()
		const main = "refs/heads/main"
		c1 := seed(t, p, "main", map[string]string{"a": "1", "only/1": "x"})
		c2 := seed(t, p, "main", map[string]string{"a": "2", "b": "2"})
		c3 := seed(t, p, "main", map[string]string{"a": "3", "b": "3"})
		// Bitmaps let a server leave out what it believes a client to have.
		gitserver.Git(t, p.bare, "repack", "-adbq")
		store := t.TempDir()
		r := openAt(t, p, store)
		if err := r.Fetch(ctx, main, c3, false); err != nil {
			t.Fatal(err)
		}
		// Without its history it can be looked at all the same.
		looked := 0
		if err := r.Log(ctx, c3, "", func(string, string, time.Time, string) bool { looked++; return false }); err != nil || looked != 1 {
			t.Fatalf("%d commits were looked at: %v", looked, err)
		}
		for round, step := range []struct{ commit, want string }{
			{c2, "map[a:2 b:2 only/1:x]"}, {c2, "map[a:2 b:2 only/1:x]"}, {c1, "map[a:1 only/1:x]"}, {c3, "map[a:3 b:3 only/1:x]"},
		} {
			gitserver.Git(t, p.bare, "update-ref", main, step.commit)
			refs := must[map[string]string](t, "refs")(r.Refs(ctx, main))
			if refs[main] != step.commit {
				t.Fatalf("round %d: the branch is read as %s", round, refs[main])
			}
			if err := r.Fetch(ctx, main, refs[main], false); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if got := fmt.Sprint(tree(t, r, step.commit)); got != step.want {
				t.Fatalf("round %d: the tree is %s, want %s", round, got, step.want)
			}
			// A process that starts now finds the same.
			if got := fmt.Sprint(tree(t, openAt(t, p, store), step.commit)); p.url != p.bare && got != step.want {
				t.Fatalf("round %d: after opening again the tree is %s, want %s", round, got, step.want)
			}
		}
	})
}

// A rewrite is followed and never merged, poll after poll, and that it was
// one can be told.
func TestB02_RewrittenHistoryIsFollowedAndTold(t *testing.T) {
	everyWay(t, func(t *testing.T, p place) {
		ctx := context.Background()
		const main = "refs/heads/main"
		base := seed(t, p, "main", map[string]string{"a": "1"})
		old := seed(t, p, "main", map[string]string{"b": "old"})
		for _, history := range []bool{true, false} {
			r := open(t, p)
			gitserver.Git(t, p.bare, "update-ref", main, old)
			if err := r.Fetch(ctx, main, old, history); err != nil {
				t.Fatal(err)
			}
			before := old
			for i := range 3 {
				gitserver.Git(t, p.bare, "update-ref", main, base)
				next := seed(t, p, "main", map[string]string{"c": fmt.Sprint(i)})
				for range 2 {
					if err := r.Fetch(ctx, main, next, history); err != nil {
						t.Fatalf("history %v, rewrite %d: %v", history, i, err)
					}
				}
				if got, want := fmt.Sprint(tree(t, r, next)), fmt.Sprintf("map[a:1 c:%d]", i); got != want {
					t.Fatalf("history %v, rewrite %d: the tree is %s, want %s", history, i, got, want)
				}
				if history {
					for _, pair := range [][2]string{{before, next}, {next, before}} {
						if ok, err := r.IsAncestor(ctx, pair[0], pair[1]); ok || err != nil {
							t.Fatalf("rewrite %d: %s is an ancestor of %s: %v, %v", i, pair[0], pair[1], ok, err)
						}
					}
				}
				before = next
			}
		}
	})
}

// What was deployed last may be a commit that is nowhere any more. That is an
// answer, not an error; other trouble stays one.
func TestB03_CommitThatIsNowhere(t *testing.T) {
	everyWay(t, func(t *testing.T, p place) {
		ctx := context.Background()
		head := seed(t, p, "main", map[string]string{"a": "1"})
		gone := "1234567890123456789012345678901234567890"
		r := open(t, p)
		if err := r.Fetch(ctx, "refs/heads/main", head, true); err != nil {
			t.Fatal(err)
		}
		if ok, err := r.IsAncestor(ctx, gone, head); ok || err != nil {
			t.Errorf("ancestor: %v, %v", ok, err)
		}
		n := 0
		if err := r.Log(ctx, head, gone, func(string, string, time.Time, string) bool { n++; return true }); err != nil || n != 1 {
			t.Errorf("the log since a commit that is gone has %d commits, %v", n, err)
		}
		err := r.Diff(ctx, gone, head, func(string, string, string, uint32) error { return nil })
		wantKind(t, "the difference to a commit that is gone", err, "not-found")
	})
}

// Whatever a killed process left locked in the daemon's own copy is gone when
// the next one has opened it, and is no obstacle to one that runs.
func TestB10_LocksOfAKilledProcess(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	c1 := seed(t, p, "main", map[string]string{"a": "1"})
	store := t.TempDir()
	r := openAt(t, p, store)
	if err := r.Fetch(ctx, "refs/heads/main", c1, true); err != nil {
		t.Fatal(err)
	}
	leave := func() {
		for _, name := range []string{"index.lock", "shallow.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "packed-refs.new",
			"gc.pid", "gc.pid.lock", "refs/heads/main.lock", "refs/full/heads/main.lock", "worktrees/x/index.lock", "objects/maintenance.lock",
			"objects/pack/tmp_pack_abc123", "objects/pack/tmp_idx_abc123", "objects/12/tmp_obj_abc123", "objects/tmp_objdir-incoming-1/x"} {
			name = filepath.Join(store, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte("4711"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	follow := func(text string) {
		t.Helper()
		c := seed(t, p, "main", map[string]string{"a": text})
		if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, r, c)["a"]; got != text {
			t.Fatalf("a is %q, want %q", got, text)
		}
	}
	leave()
	follow("2")
	r.Close()
	leave()
	var log bytes.Buffer
	r, err := repo.Open(repo.Config{URL: p.url, Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !strings.Contains(log.String(), "did not finish") || !strings.Contains(log.String(), store) {
		t.Errorf("nothing is logged of what was removed: %s", &log)
	}
	follow("3")
	err = filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".lock") || strings.HasPrefix(d.Name(), "tmp_")) {
			t.Errorf("left over: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// git has no trouble with it either.
	gitserver.Git(t, store, "fsck", "--connectivity-only")
	gitserver.Git(t, store, "pack-refs", "--all")
}

// Any file of the copy may have lost its end to a power cut.
func TestB65_TornFilesOfTheCopy(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	seed(t, p, "main", map[string]string{"a": "1", "b/c": "2"})
	c := seed(t, p, "main", map[string]string{"a": "3"})
	pristine := t.TempDir()
	r := openAt(t, p, pristine)
	if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
		t.Fatal(err)
	}
	if err := r.Fetch(ctx, "refs/heads/main", c, false); err != nil {
		t.Fatal(err)
	}
	r.Close()
	var files []string
	err := filepath.WalkDir(pristine, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(pristine, path)
			files = append(files, rel)
		}
		return err
	})
	if err != nil || len(files) < 5 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, name := range files {
		for _, half := range []bool{false, true} {
			store := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(store, os.DirFS(pristine)); err != nil {
				t.Fatal(err)
			}
			torn := filepath.Join(store, name)
			info, err := os.Stat(torn)
			if err != nil {
				t.Fatal(err)
			}
			size := int64(0)
			if half {
				size = info.Size() / 2
			}
			os.Chmod(torn, 0o644)
			if err := os.Truncate(torn, size); err != nil {
				t.Fatal(err)
			}
			r := openAt(t, p, store)
			if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
				t.Errorf("%s of %d bytes: %v", name, size, err)
				continue
			}
			if got := fmt.Sprint(tree(t, r, c)); got != "map[a:3 b/c:2]" {
				t.Errorf("%s of %d bytes: the tree is %s", name, size, got)
			}
		}
	}
}

// A token that runs out in the middle of a long-running process is read
// again; one that stays wrong is said, without asking anybody.
func TestB16_TokenThatRunsOut(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	c := seed(t, p, "main", map[string]string{"a": "1"})
	file := filepath.Join(t.TempDir(), "token")
	var issued, requests atomic.Int64
	token := func(n int64) string { return fmt.Sprintf("token-%d", n) }
	renew := func() {
		if err := os.WriteFile(file, []byte(token(issued.Add(1))+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	renew()
	stuck := atomic.Bool{}
	// Every other request finds that the token is no longer valid; somebody
	// else has put a fresh one into the file by then.
	p.srv.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if requests.Add(1)%2 == 0 && !stuck.Load() {
			renew()
		}
		if req.Header.Get("Authorization") == "Bearer "+token(issued.Load()) && !stuck.Load() {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	p.cred = repo.Credentials{TokenFile: file}
	r, d := open(t, p), openDevice(t, p)
	for range 3 {
		if _, err := r.Refs(ctx, "refs/heads/"); err != nil {
			t.Fatal(err)
		}
		if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Read(ctx, "refs/heads/main", "", 1000); err != nil {
			t.Fatal(err)
		}
	}
	o := orphan(t, r, "x")
	if err := moveLead(r, "refs/gitopsd/devices/a", "", o); err != nil {
		t.Fatalf("a push: %v", err)
	}
	if issued.Load() < 4 {
		t.Fatalf("only %d tokens were used: nothing ran out", issued.Load())
	}
	stuck.Store(true)
	requests.Store(0)
	_, err := r.Refs(ctx, "refs/heads/")
	wantKind(t, "a token that stays wrong", err, "auth")
	if n := requests.Load(); n != 2 || !strings.Contains(err.Error(), "rejects the credentials") {
		t.Errorf("after %d requests: %v", n, err)
	}
}

// Secrets in every form that a URL, a header or a log could give them.
func TestB124_SecretsInNoForm(t *testing.T) {
	ctx := context.Background()
	const secret = `hunter2%@/ä:+"x`
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("x", secret).String(),
		base64.StdEncoding.EncodeToString([]byte("bot:" + secret)), base64.URLEncoding.EncodeToString([]byte("bot:" + secret)),
		base64.StdEncoding.EncodeToString([]byte(secret)), "hunter2"}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := overHTTP(t)
	c := seed(t, p, "main", map[string]string{"a": "1"})
	userinfo := strings.Replace(p.url, "://", "://"+url.UserPassword("bot", secret).String()+"@", 1)
	// A server, or a proxy in front of it, that repeats what it was sent.
	echo := func(status int) func(w http.ResponseWriter, req *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			_, password, _ := req.BasicAuth()
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(status)
			fmt.Fprintf(w, "no: %s %s %s %s %s", req.Header.Get("Authorization"), password, url.QueryEscape(password), url.PathEscape(password), req.URL.RawQuery)
			return true
		}
	}
	var log bytes.Buffer
	var said []string
	for _, place := range []repo.Config{
		{URL: userinfo},
		{URL: strings.Replace(userinfo, "127.0.0.1", "localhost", 1)},
		{URL: p.url + "?private_token=" + url.QueryEscape(secret)},
		{URL: p.url, Credentials: repo.Credentials{Username: "bot", PasswordFile: file}},
		{URL: p.url, Credentials: repo.Credentials{TokenFile: file}},
	} {
		for _, answer := range []func(w http.ResponseWriter, req *http.Request) bool{
			echo(400), echo(401), echo(403), echo(404), echo(429), echo(500), echo(302), nil,
		} {
			p.srv.Intercept(nil)
			place.Store, place.Timeout = t.TempDir(), 10*time.Second
			place.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			r, err := repo.Open(place)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if answer == nil {
				// It works: nothing of the secret is kept beside it.
				if err := r.Fetch(ctx, "refs/heads/main", c, true); err != nil {
					t.Fatal(err)
				}
			} else {
				p.srv.Intercept(answer)
			}
			_, err = r.Refs(ctx, "refs/heads/")
			ferr := r.Fetch(ctx, "refs/heads/main", "1234567890123456789012345678901234567890", true)
			perr := moveLead(r, "refs/heads/x", "1234567890123456789012345678901234567890", "")
			d, derr := repo.OpenDevice(place)
			if derr == nil {
				_, _, derr = d.Read(ctx, "refs/heads/none", "", 100)
				said = append(said, d.URL())
			}
			for _, err := range []error{err, ferr, perr, derr} {
				if err == nil {
					continue
				}
				said = append(said, err.Error())
				var e *repo.Error
				if errors.As(err, &e) {
					said = append(said, e.URL, e.Hint, fmt.Sprintf("%+v", e.Err))
				}
			}
			said = append(said, r.URL())
			r.Close()
			err = filepath.WalkDir(place.Store, func(path string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					data, err := os.ReadFile(path)
					said = append(said, path+": "+string(data))
					return err
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	p.srv.Intercept(nil)
	if len(said) < 50 {
		t.Fatalf("only %d texts were looked at", len(said))
	}
	for _, text := range append(said, log.String()) {
		for _, form := range forms {
			if strings.Contains(text, form) {
				t.Errorf("%q is in: %s", form, text)
			}
		}
	}
}

// Only the lines of the host and port that is dialled count, and all of them.
func TestB14_KnownHostsWithManyLines(t *testing.T) {
	ctx := context.Background()
	p, srv := overSSH(t)
	seed(t, p, "main", map[string]string{"a": "a"})
	own := srv.KnownHostsLine()
	_, otherSrv := overSSH(t)
	_, otherKey, _ := strings.Cut(otherSrv.KnownHostsLine(), " ")
	const rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC2UUlMJEaCR5HQmYxQHu/V0dZb7kDqSqNW5lkgkxNhc+eT9v6eVSVW8DZoM9KGUgJDWS9LJcI0uDkC5g2TAmPkSg8zcQdSStEGxXgWMTDdQJBi8S7xPwwMjmM5VXhJqkLV7VCcRpCCAVWUBnDkeLOZpSqyPTZKXbRj5TjGR+LBOQ==\n"
	const ecdsa = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=\n"
	host, port, _ := strings.Cut(srv.Addr, ":")
	bracketed := "[" + host + "]:" + port + " "
	for name, c := range map[string]struct {
		lines []string
		kind  string
	}{
		"another host, another type":  {[]string{"other.example " + rsa, own}, ""},
		"another port of the host":    {[]string{host + " " + otherKey, "[" + host + "]:1 " + ecdsa, own}, ""},
		"three types for the host":    {[]string{bracketed + rsa, bracketed + ecdsa, own}, ""},
		"the right one last":          {[]string{bracketed + otherKey, own}, ""},
		"the right one first":         {[]string{own, bracketed + otherKey}, ""},
		"with comments and a pattern": {[]string{"# comment\n", "*.example " + rsa, "other.example,[other.example]:22 " + ecdsa, own}, ""},
		"only another port":           {[]string{host + " " + own[len(bracketed):]}, "host-key"},
		"only another key":            {[]string{bracketed + otherKey}, "host-key"},
		"only another type":           {[]string{bracketed + ecdsa}, "host-key"},
		"a revoked key":               {[]string{"@revoked " + own, own}, "host-key"},
		"another host with this key":  {[]string{"other.example " + own[len(bracketed):]}, "host-key"},
		"nobody":                      {nil, "host-key"},
	} {
		if err := os.WriteFile(srv.KnownHosts, []byte(strings.Join(c.lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		r := open(t, p)
		for try := range 5 {
			_, err := r.Refs(ctx, "refs/heads/")
			if c.kind == "" && err != nil || c.kind != "" && (err == nil || kindOf(err) != c.kind) {
				t.Errorf("%s, try %d: %v, want kind %q", name, try, err, c.kind)
				break
			}
		}
	}
}

// A server with keys of two types is known by either.
func TestB14_ServerWithTwoKeys(t *testing.T) {
	ctx := context.Background()
	p, srv := overSSH(t)
	seed(t, p, "main", map[string]string{"a": "a"})
	second := srv.AlsoECDSA(t)
	for what, line := range map[string]string{"one": srv.KnownHostsLine(), "the other": second, "both": srv.KnownHostsLine() + second} {
		if err := os.WriteFile(srv.KnownHosts, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := open(t, p).Refs(ctx, "refs/heads/"); err != nil {
				t.Errorf("with %s known: %v", what, err)
			}
		}
	}
}

// A server with a new host key is refused until a person has looked; then it
// goes on, without a restart.
func TestB15_HostKeyRotated(t *testing.T) {
	ctx := context.Background()
	p, srv := overSSH(t)
	c := seed(t, p, "main", map[string]string{"a": "a"})
	r, d := open(t, p), openDevice(t, p)
	all := func() map[string]error {
		_, refs := r.Refs(ctx, "refs/heads/")
		_, _, read := d.Read(ctx, "refs/heads/main", "", 100)
		_, write := d.Write(ctx, "refs/gitopsd/reports/a", "", map[string][]byte{"report.yaml": nil})
		return map[string]error{"refs": refs, "fetch": r.Fetch(ctx, "refs/heads/main", c, true), "read": read, "write": write}
	}
	srv.NewHostKey(t)
	for what, err := range all() {
		wantKind(t, what, err, "host-key")
		for _, part := range []string{srv.Addr, srv.Fingerprint(), srv.KnownHosts} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error does not name %s: %v", what, part, err)
			}
		}
	}
	if err := os.WriteFile(srv.KnownHosts, []byte(srv.KnownHostsLine()), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, err := range all() {
		if err != nil {
			t.Errorf("%s after the file was put right: %v", what, err)
		}
	}
}

// However long the status branch's history is, and whatever lies in it, its
// tip, a delivery and a report cost what they are.
func TestB131_HistoryCostsNothing(t *testing.T) {
	ctx := context.Background()
	p := overHTTP(t)
	const commits, devices = 3000, 50
	var s bytes.Buffer
	noise := make([]byte, 8<<20)
	for i := range noise { // nothing that compresses
		noise[i] = byte(i * i >> 7 * 31 >> 3)
	}
	for i := range commits {
		fmt.Fprintf(&s, "commit %s\ncommitter Op <op@example.com> %d +0000\ndata 6\nstatus\n", status, 1e9+i)
		fmt.Fprintf(&s, "M 100644 inline devices/site-%d/gw-%02d.yaml\ndata %d\n%s\n", i%7, i%devices, 7, fmt.Sprintf("v%06d", i))
		switch i {
		case commits / 2:
			fmt.Fprintf(&s, "M 100644 inline blob\ndata %d\n%s\n", len(noise), noise)
		case commits/2 + 1:
			s.WriteString("D blob\n")
		}
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin, cmd.Env = p.bare, &s, append(os.Environ(), gitserver.Environ()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	tip := gitserver.Git(t, p.bare, "rev-parse", status)
	store := t.TempDir()
	r, d := openAt(t, p, store), openDevice(t, p)
	o := orphan(t, r, "assignment")
	if err := moveLead(r, "refs/gitopsd/devices/gw-01", "", o); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.srv.ResetTraffic()
	if err := r.Fetch(ctx, status, tip, false); err != nil {
		t.Fatal(err)
	}
	if got := len(tree(t, r, tip)); got < devices {
		t.Fatalf("%d files", got)
	}
	if _, in, out := p.srv.Traffic(); in+out > 100_000 {
		t.Errorf("the tip of %d commits took %d bytes", commits, in+out)
	}
	p.srv.ResetTraffic()
	if _, files, err := d.Read(ctx, "refs/gitopsd/devices/gw-01", "", 1000); err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if _, in, out := p.srv.Traffic(); in+out > 5_000 {
		t.Errorf("a delivery took %d bytes", in+out)
	}
	next := must[string](t, "commit")(r.Commit(ctx, tip, map[string]string{"devices/site-0/gw-00.yaml": must[string](t, "put")(r.PutBlob(ctx, []byte("v")))}, time.Unix(2e9, 0), "status"))
	p.srv.ResetTraffic()
	if err := moveLead(r, status, tip, next); err != nil {
		t.Fatal(err)
	}
	if _, in, out := p.srv.Traffic(); in+out > 5_000 {
		t.Errorf("one more commit took %d bytes", in+out)
	}
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 30 {
		t.Errorf("%d MB were allocated", mb)
	}
	size := int64(0)
	err := filepath.WalkDir(store, func(_ string, e fs.DirEntry, err error) error {
		if info, ierr := e.Info(); err == nil && ierr == nil && !e.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil || size > 200_000 {
		t.Errorf("the copy takes %d bytes on disk, %v", size, err)
	}
}

// One report ref names a blob, one a commit without its tree, one is too large:
// the others are read, and what cannot be read is told from what is too large.
func TestTipsThatCannotBeRead(t *testing.T) {
	ctx := context.Background()
	everyWay(t, func(t *testing.T, p place) {
		d := openDevice(t, p)
		put := func(ref string, size int) string {
			return must[string](t, "write")(d.Write(ctx, ref, "", map[string][]byte{"report.yaml": bytes.Repeat([]byte("x"), size)}))
		}
		const good, large, blob, holed, gone = "refs/gitopsd/reports/good", "refs/gitopsd/reports/large", "refs/gitopsd/reports/blob", "refs/gitopsd/reports/holed", "refs/gitopsd/reports/gone"
		refs := map[string]string{good: put(good, 10), large: put(large, 5000)}
		refs[blob] = gitserver.Git(t, p.bare, "rev-parse", good+":report.yaml")
		gitserver.Git(t, p.bare, "update-ref", blob, refs[blob])
		refs[holed] = put(holed, 7)
		hole := gitserver.Git(t, p.bare, "rev-parse", holed+"^{tree}")
		if err := os.Remove(filepath.Join(p.bare, "objects", hole[:2], hole[2:])); err != nil {
			t.Fatal(err)
		}
		refs[gone] = strings.Repeat("5", 40)
		tips, err := open(t, p).Tips(ctx, refs, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(tips[good]["report.yaml"]); got != strings.Repeat("x", 10) {
			t.Errorf("the good report is %q", got)
		}
		if _, ok := tips[large]; ok {
			t.Error("the one that is too large is given")
		}
		for _, ref := range []string{blob, holed, gone} {
			if files, ok := tips[ref]; !ok || files != nil {
				t.Errorf("%s gave %v, %v; want nil, to tell it from one that is too large", ref, files, ok)
			}
		}
	})
}

// rawObject writes an object as it is, which git's own commands would refuse.
func rawObject(t *testing.T, bare, typ string, data []byte) string {
	t.Helper()
	cmd := exec.Command("git", "hash-object", "-w", "-t", typ, "--literally", "--stdin")
	cmd.Dir, cmd.Stdin = bare, bytes.NewReader(data)
	cmd.Env = append(os.Environ(), gitserver.Environ()...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git hash-object: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func treeLine(t *testing.T, mode, name, id string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(mode+" "+name+"\x00"), raw...)
}

// What a tree must not be is damage that a person has to mend: its error says
// so, and where it is.
func TestWalkOfABrokenTree(t *testing.T) {
	ctx := context.Background()
	everyWay(t, func(t *testing.T, p place) {
		blob := rawObject(t, p.bare, "blob", []byte("x"))
		file := func(name string) []byte { return treeLine(t, "100644", name, blob) }
		below := func(folder string, data ...[]byte) []byte {
			return treeLine(t, "40000", folder, rawObject(t, p.bare, "tree", bytes.Join(data, nil)))
		}
		deep := below("d", file("x"))
		for range 80 {
			deep = below("d", deep)
		}
		for name, c := range map[string]struct {
			data []byte
			path string
		}{
			"too deep":  {deep, "d/d/d"},
			"twice":     {below("devices", below("a", file("x"), file("x"))), "devices/a"},
			"dot dot":   {below("devices", treeLine(t, "100644", "..", blob)), "devices"},
			"unsorted":  {below("devices", file("b"), file("a")), "devices"},
			"in top":    {append(file("x"), file("x")...), "x"},
			"git":       {below("devices", file(".git")), "devices"},
			"cut short": {below("devices", file("x")[:12]), ""}, // a server does not send it
		} {
			root := rawObject(t, p.bare, "tree", c.data)
			commit := rawObject(t, p.bare, "commit", []byte("tree "+root+"\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n"))
			ref := "refs/heads/" + strings.ReplaceAll(name, " ", "-")
			if err := os.MkdirAll(filepath.Join(p.bare, "refs/heads"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(p.bare, ref), []byte(commit+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			r := open(t, p)
			err := r.Fetch(ctx, ref, commit, true)
			if err == nil {
				err = r.Walk(ctx, commit, func(string, string, uint32) error { return nil })
			}
			if kindOf(err) != "corrupt" || !strings.Contains(err.Error(), c.path) {
				t.Errorf("%s: got %v (kind %s), want corrupt and the path %s", name, err, kindOf(err), c.path)
			}
			if err := os.Remove(filepath.Join(p.bare, ref)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
