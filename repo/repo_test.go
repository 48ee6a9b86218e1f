package repo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

// place is one way to reach the same bare repository.
type place struct {
	bare string // its path, for git
	url  string
	srv  *gitserver.Server
	cred repo.Credentials
}

// everyWay runs a test over each way to reach a repository.
func everyWay(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("local", func(t *testing.T) {
		bare := gitserver.Bare(t, t.TempDir(), "fleet.git")
		test(t, place{bare: bare, url: bare})
	})
	t.Run("http", func(t *testing.T) { test(t, overHTTP(t)) })
	t.Run("http-v0", func(t *testing.T) {
		p := overHTTP(t)
		p.srv.OnlyV0(true)
		test(t, p)
	})
	t.Run("ssh-v0", func(t *testing.T) {
		p, _ := overSSH(t)
		test(t, p)
	})
	t.Run("ssh-v2", func(t *testing.T) {
		p, srv := overSSH(t)
		srv.AcceptV2(true)
		test(t, p)
	})
}

func overSSH(t testing.TB) (place, *gitserver.SSH) {
	dir := t.TempDir()
	bare := gitserver.Bare(t, dir, "fleet.git")
	srv := gitserver.NewSSH(t, dir)
	return place{bare: bare, url: srv.URL + "/fleet.git", cred: repo.Credentials{SSHKeyFile: srv.KeyFile, KnownHostsFile: srv.KnownHosts}}, srv
}

func overHTTP(t testing.TB) place {
	dir := t.TempDir()
	bare := gitserver.Bare(t, dir, "fleet.git")
	srv := gitserver.New(t, dir)
	return place{bare: bare, url: srv.URL + "/fleet.git", srv: srv}
}

func open(t testing.TB, p place) *repo.Repo {
	t.Helper()
	return openAt(t, p, t.TempDir())
}

func openAt(t testing.TB, p place, store string) *repo.Repo {
	t.Helper()
	r, err := repo.Open(repo.Config{URL: p.url, Store: store, Credentials: p.cred, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatalf("open %s: %v", p.url, err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func openDevice(t testing.TB, p place) *repo.Device {
	t.Helper()
	d, err := repo.OpenDevice(repo.Config{URL: p.url, Credentials: p.cred, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatalf("open %s: %v", p.url, err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// seed commits files to a branch with git and gives the commit.
func seed(t testing.TB, p place, branch string, files map[string]string) string {
	t.Helper()
	ref := "refs/heads/" + branch
	var b strings.Builder
	fmt.Fprintf(&b, "commit %s\ncommitter Op <op@example.com> %d +0000\ndata <<END\nchange %s\nEND\n", ref, time.Now().Unix(), branch)
	if _, err := gitserver.TryGit(p.bare, "rev-parse", "-q", "--verify", ref); err == nil {
		fmt.Fprintf(&b, "from %s^0\n", ref)
	}
	for path, content := range files {
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = p.bare, strings.NewReader(b.String())
	cmd.Env = append(os.Environ(), gitserver.Environ()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	return gitserver.Git(t, p.bare, "rev-parse", ref)
}

func kindOf(err error) string {
	var e *repo.Error
	if errors.As(err, &e) {
		return e.Kind()
	}
	return fmt.Sprintf("no kind: %v", err)
}

func wantKind(t *testing.T, what string, err error, kind string) {
	t.Helper()
	if err == nil || kindOf(err) != kind {
		t.Fatalf("%s: got %v (kind %s), want kind %s", what, err, kindOf(err), kind)
	}
}

func must[T any](t testing.TB, what string) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return v
	}
}

// tree reads a commit through the repository: path → content.
func tree(t testing.TB, r *repo.Repo, commit string) map[string]string {
	t.Helper()
	ctx := context.Background()
	out := map[string]string{}
	var paths []string
	err := r.Walk(ctx, commit, func(path, blob string, mode uint32) error {
		b, err := r.Blob(ctx, blob, 0)
		if err != nil {
			return err
		}
		out[path] = string(b)
		paths = append(paths, path)
		return nil
	})
	if err != nil {
		t.Fatalf("walk %s: %v", commit, err)
	}
	if !sort.StringsAreSorted(paths) {
		t.Fatalf("walk gave paths out of order: %q", paths)
	}
	return out
}

func fsck(t testing.TB, bare string) {
	t.Helper()
	out, err := gitserver.TryGit(bare, "fsck", "--strict", "--full")
	if err != nil || strings.Contains(out, "error") || strings.Contains(out, "garbage") {
		t.Fatalf("git fsck of %s: %v\n%s", bare, err, out)
	}
}

const status = "refs/heads/gitopsd/status"

func TestReadWhatGitCommitted(t *testing.T) {
	everyWay(t, func(t *testing.T, p place) {
		ctx := context.Background()
		c1 := seed(t, p, "main", map[string]string{"devices/a.yaml": "a\n", "policies/p.yaml": "p\n", "x": "1"})
		r := open(t, p)
		if head := must[string](t, "head")(r.Head(ctx)); head != "main" {
			t.Fatalf("head is %q, want main", head)
		}
		refs := must[map[string]string](t, "refs")(r.Refs(ctx, "refs/heads/main"))
		if len(refs) != 1 || refs["refs/heads/main"] != c1 {
			t.Fatalf("refs are %v, want main at %s", refs, c1)
		}
		if err := r.Fetch(ctx, "refs/heads/main", c1, true); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"devices/a.yaml": "a\n", "policies/p.yaml": "p\n", "x": "1"}
		if got := tree(t, r, c1); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("tree is %v, want %v", got, want)
		}
		c2 := seed(t, p, "main", map[string]string{"devices/a.yaml": "b\n"})
		if err := r.Fetch(ctx, "refs/heads/main", c2, true); err != nil {
			t.Fatal(err)
		}
		for _, q := range []struct {
			a, c string
			want bool
		}{{c1, c2, true}, {c2, c1, false}, {c1, c1, true}, {strings.Repeat("ab", 20), c2, false}} {
			got, err := r.IsAncestor(ctx, q.a, q.c)
			if err != nil || got != q.want {
				t.Fatalf("is %s an ancestor of %s: got %v, %v, want %v", q.a, q.c, got, err, q.want)
			}
		}
		var log []string
		err := r.Log(ctx, c2, "", func(hash, author string, _ time.Time, message string) bool {
			log = append(log, hash+" "+author+" "+message)
			return true
		})
		wantLog := fmt.Sprint([]string{c2 + " Op <op@example.com> change main\n", c1 + " Op <op@example.com> change main\n"})
		if err != nil || fmt.Sprint(log) != wantLog {
			t.Fatalf("log is %q, %v, want %s", log, err, wantLog)
		}
		log = nil
		err = r.Log(ctx, c2, c1, func(hash, _ string, _ time.Time, _ string) bool { log = append(log, hash); return true })
		if err != nil || fmt.Sprint(log) != fmt.Sprint([]string{c2}) {
			t.Fatalf("log since %s is %q, %v", c1, log, err)
		}
		var diff []string
		err = r.Diff(ctx, c1, c2, func(path, a, b string, mode uint32) error {
			diff = append(diff, fmt.Sprintf("%s %v %v %o", path, a != "", b != "", mode))
			return nil
		})
		if err != nil || fmt.Sprint(diff) != "[devices/a.yaml true true 100644]" {
			t.Fatalf("diff is %q, %v", diff, err)
		}
	})
}

// TestPublish plays a daemon: a status commit, deliveries, a lost race.
func TestPublish(t *testing.T) {
	everyWay(t, func(t *testing.T, p place) {
		ctx := context.Background()
		seed(t, p, "main", map[string]string{"devices/a.yaml": "a\n"})
		r := open(t, p)
		when := time.Unix(1700000000, 0)
		put := func(s string) string { return must[string](t, "put")(r.PutBlob(ctx, []byte(s))) }

		first := must[string](t, "commit")(r.Commit(ctx, "", map[string]string{
			"fleet.yaml": put("f1\n"), "devices/site/a.yaml": put("v1\n"), "assigned/site/a.yaml": put("as1\n"),
		}, when, "first"))
		delivery := must[string](t, "orphan")(r.Orphan(ctx, map[string]string{"assignment.yaml": put("as1\n")}))
		refused, err := r.Publish(ctx,
			map[string][2]string{status: {"", first}},
			map[string][2]string{"refs/gitopsd/devices/a": {"", delivery}})
		if err != nil || len(refused) > 0 {
			t.Fatalf("publish: %v, refused %v", err, refused)
		}
		fsck(t, p.bare)
		if got := gitserver.Git(t, p.bare, "show", status+":devices/site/a.yaml"); got != "v1" {
			t.Fatalf("status holds %q", got)
		}

		other := open(t, p)
		if err := other.Fetch(ctx, status, first, false); err != nil {
			t.Fatal(err)
		}

		// On top of it without fetching.
		second := must[string](t, "commit")(r.Commit(ctx, first, map[string]string{
			"devices/site/a.yaml": put("v2\n"), "fleet.yaml": "", "failures/gw/v1.yaml": put("none\n"),
		}, when, "second"))
		if _, err := r.Publish(ctx, map[string][2]string{status: {first, second}}, nil); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"assigned/site/a.yaml": "as1\n", "devices/site/a.yaml": "v2\n", "failures/gw/v1.yaml": "none\n"}
		if got := tree(t, r, second); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("tree is %v, want %v", got, want)
		}
		// The same edit by git gives the same tree.
		if got, want := gitserver.Git(t, p.bare, "ls-tree", "-r", "--name-only", second), "assigned/site/a.yaml\ndevices/site/a.yaml\nfailures/gw/v1.yaml"; got != want {
			t.Fatalf("git lists %q, want %q", got, want)
		}

		// A second daemon whose view is old loses, and nothing of its rest moves.
		late := must[string](t, "commit")(other.Commit(ctx, first, map[string]string{"fleet.yaml": must[string](t, "put")(other.PutBlob(ctx, []byte("late")))}, when, "late"))
		lateDelivery := must[string](t, "orphan")(other.Orphan(ctx, map[string]string{"x": must[string](t, "put")(other.PutBlob(ctx, []byte("late")))}))
		_, err = other.Publish(ctx, map[string][2]string{status: {first, late}}, map[string][2]string{"refs/gitopsd/devices/a": {delivery, lateDelivery}})
		wantKind(t, "an old view", err, "race")
		if got := gitserver.Git(t, p.bare, "rev-parse", "refs/gitopsd/devices/a"); got != delivery {
			t.Fatalf("the delivery moved to %s although the lead lost", got)
		}
		// It catches up and wins.
		refs := must[map[string]string](t, "refs")(other.Refs(ctx, status))
		if err := other.Fetch(ctx, status, refs[status], false); err != nil {
			t.Fatal(err)
		}
		third := must[string](t, "commit")(other.Commit(ctx, refs[status], map[string]string{"fleet.yaml": must[string](t, "put")(other.PutBlob(ctx, []byte("late")))}, when, "third"))
		// A rest whose old value is wrong does not hold the lead back.
		refused, err = other.Publish(ctx, map[string][2]string{status: {second, third}}, map[string][2]string{
			"refs/gitopsd/devices/a": {first, lateDelivery},
			"refs/gitopsd/devices/b": {"", lateDelivery},
		})
		if err != nil || len(refused) != 1 || refused["refs/gitopsd/devices/a"] == "" {
			t.Fatalf("publish: %v, refused %v; want only devices/a refused", err, refused)
		}
		if got := gitserver.Git(t, p.bare, "rev-parse", status, "refs/gitopsd/devices/b"); got != third+"\n"+lateDelivery {
			t.Fatalf("refs are at %q", got)
		}
		// Deleting is a swap too.
		if refused, err := other.Publish(ctx, nil, map[string][2]string{"refs/gitopsd/devices/b": {delivery, ""}}); err != nil || len(refused) != 1 {
			t.Fatalf("deleting with a wrong old value: %v, %v", refused, err)
		}
		if refused, err := other.Publish(ctx, nil, map[string][2]string{"refs/gitopsd/devices/b": {lateDelivery, ""}}); err != nil || len(refused) != 0 {
			t.Fatalf("deleting: %v, %v", refused, err)
		}
		fsck(t, p.bare)
	})
}

// TestDevice plays a device: it reads its delivery and writes reports.
func TestDevice(t *testing.T) {
	everyWay(t, func(t *testing.T, p place) {
		ctx := context.Background()
		r, d := open(t, p), openDevice(t, p)
		const ref, report = "refs/gitopsd/devices/dev-1", "refs/gitopsd/reports/dev-1"
		if commit, files, err := d.Read(ctx, ref, "", 1000); err != nil || commit != "" || files != nil {
			t.Fatalf("reading nothing: %q, %v, %v", commit, files, err)
		}
		put := func(s string) string { return must[string](t, "put")(r.PutBlob(ctx, []byte(s))) }
		one := must[string](t, "orphan")(r.Orphan(ctx, map[string]string{"assignment.yaml": put("generation: 1\n"), "payloads/ab": put("data")}))
		ten := must[string](t, "orphan")(r.Orphan(ctx, map[string]string{"assignment.yaml": put("of another\n")}))
		if refused, err := r.Publish(ctx, nil, map[string][2]string{ref: {"", one}, ref + "0": {"", ten}}); err != nil || len(refused) > 0 {
			t.Fatalf("publish: %v %v", refused, err)
		}
		commit, files, err := d.Read(ctx, ref, "", 1000)
		if err != nil || commit != one || fmt.Sprintf("%s", files) != "map[assignment.yaml:generation: 1\n payloads/ab:data]" {
			t.Fatalf("read %q, %q, %v", commit, files, err)
		}
		if commit, files, err := d.Read(ctx, ref, one, 1000); err != nil || commit != one || files != nil {
			t.Fatalf("reading again: %q, %v, %v", commit, files, err)
		}
		if _, _, err := d.Read(ctx, ref, "", 10); kindOf(err) != "refused" {
			t.Fatalf("reading more than the limit: %v", err)
		}

		w1 := must[string](t, "write")(d.Write(ctx, report, "", map[string][]byte{"report.yaml": []byte("sequence: 1\n")}))
		w2 := must[string](t, "write")(d.Write(ctx, report, w1, map[string][]byte{"report.yaml": []byte("sequence: 2\n")}))
		if got := must[string](t, "write")(d.Write(ctx, report, w1, map[string][]byte{"report.yaml": []byte("sequence: 2\n")})); got != w2 {
			t.Fatalf("writing the same again gave %s, want %s", got, w2)
		}
		_, err = d.Write(ctx, report, w1, map[string][]byte{"report.yaml": []byte("sequence: 3\n")})
		wantKind(t, "a write on an old value", err, "race")
		_, err = d.Write(ctx, report, "", map[string][]byte{"report.yaml": []byte("sequence: 3\n")})
		wantKind(t, "a write on nothing", err, "race")

		tips := must[map[string]map[string][]byte](t, "tips")(r.Tips(ctx, map[string]string{report: w2, ref: one}, 1000))
		if string(tips[report]["report.yaml"]) != "sequence: 2\n" || string(tips[ref]["payloads/ab"]) != "data" {
			t.Fatalf("tips are %q", tips)
		}
		tips = must[map[string]map[string][]byte](t, "tips")(r.Tips(ctx, map[string]string{report: w2, ref: one}, 25))
		if len(tips) != 1 || tips[report] == nil {
			t.Fatalf("tips within 25 bytes are %q, want only the report", tips)
		}
		if err := d.Answers(ctx); err != nil {
			t.Fatal(err)
		}
		fsck(t, p.bare)
	})
}
