//go:build system

package systemtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
)

const (
	sourceRef = "refs/heads/main"
	// generous is for operations that are to succeed, on a busy machine.
	generous = time.Minute
)

// TestSystemSSHRepository: clone, poll and push through sshd and git-shell,
// as the daemon and as a device, with and without the newer protocol.
func TestSystemSSHRepository(t *testing.T) {
	t.Parallel()
	for _, v2 := range []bool{true, false} {
		t.Run(fmt.Sprintf("newer protocol %t", v2), func(t *testing.T) {
			ctx := context.Background()
			b := newBench(t)
			f := newFleet(b, b.dir)
			payload := strings.Repeat("a payload that is not small\n", 20_000)
			f.write("a/b.yaml", "one\n")
			f.write("files/large", payload)
			first := f.push("first")
			s := newSSHD(b)
			s.v2 = v2
			s.start()
			url := s.url + f.bare
			r := s.open(url, s.creds(), generous)

			// Clone.
			if err := r.Fetch(ctx, sourceRef, first, true); err != nil {
				t.Fatal(err)
			}
			if got := read(t, r, first); got["a/b.yaml"] != "one\n" || got["files/large"] != payload {
				t.Fatalf("it was not cloned whole: %v", slices.Sorted(maps.Keys(got)))
			}
			if head, err := r.Head(ctx); err != nil || head != "main" {
				t.Fatalf("HEAD is %q, %v", head, err)
			}
			// Poll: nothing, then something.
			if refs, err := r.Refs(ctx, sourceRef); err != nil || refs[sourceRef] != first {
				t.Fatalf("the poll gives %v, %v", refs, err)
			}
			f.write("a/b.yaml", "two\n")
			second := f.push("second")
			if refs, err := r.Refs(ctx, sourceRef); err != nil || refs[sourceRef] != second {
				t.Fatalf("the poll gives %v, %v; want %s", refs, err, second)
			}
			if err := r.Fetch(ctx, sourceRef, second, true); err != nil {
				t.Fatal(err)
			}
			if got := read(t, r, second)["a/b.yaml"]; got != "two\n" {
				t.Fatalf("after the fetch it is %q", got)
			}
			// Push: by compare-and-swap, together with deliveries.
			blob, err := r.PutBlob(ctx, []byte("status\n"))
			if err != nil {
				t.Fatal(err)
			}
			tip, err := r.Commit(ctx, "", map[string]string{"fleet.yaml": blob}, time.Unix(1, 0), "status")
			if err != nil {
				t.Fatal(err)
			}
			delivery := "refs/gitopsd/devices/d1"
			refused, err := r.Publish(ctx, map[string][2]string{statusRef: {"", tip}}, map[string][2]string{delivery: {"", tip}})
			if err != nil || len(refused) > 0 {
				t.Fatalf("push: %v, refused %v", err, refused)
			}
			other, err := r.Commit(ctx, "", map[string]string{"x": blob}, time.Unix(2, 0), "the loser")
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Publish(ctx, map[string][2]string{statusRef: {"", other}}, nil)
			wantKind(t, "a lost race", err, "race")
			// A device.
			d := s.openDevice(url, s.creds(), generous)
			commit, files, err := d.Read(ctx, delivery, "", 1<<20)
			if err != nil || commit != tip || string(files["fleet.yaml"]) != "status\n" {
				t.Fatalf("the device reads %s %v, %v", commit, files, err)
			}
			if _, files, err := d.Read(ctx, delivery, commit, 1<<20); err != nil || files != nil {
				t.Fatalf("an idle poll gives %v, %v", files, err)
			}
			report := "refs/gitopsd/reports/d1"
			one, err := d.Write(ctx, report, "", map[string][]byte{"report.yaml": []byte("1\n")})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Write(ctx, report, one, map[string][]byte{"report.yaml": []byte("2\n")}); err != nil {
				t.Fatal(err)
			}
			_, err = d.Write(ctx, report, one, map[string][]byte{"report.yaml": []byte("3\n")})
			wantKind(t, "a device that lost a race", err, "race")
			if got := gitserver.Git(t, f.bare, "show", report+":report.yaml"); got != "2" {
				t.Fatalf("the report is %q", got)
			}
			if err := d.Answers(ctx); err != nil {
				t.Fatal(err)
			}
			whole(b, f.bare)
			// What the server refuses, in its own words.
			hook := filepath.Join(f.bare, "hooks", "pre-receive")
			writeFile(t, hook, "#!/bin/sh\necho 'the branch is protected by rule 7' >&2\nexit 1\n", 0o755)
			_, err = r.Publish(ctx, map[string][2]string{statusRef: {tip, other}}, nil)
			wantKind(t, "a hook's refusal", err, "refused")
			if !strings.Contains(err.Error(), "rule 7") {
				t.Errorf("the hook's words are missing: %v", err)
			}
			_, err = s.openDevice(s.url+"/nowhere/at-all.git", s.creds(), generous).Write(ctx, report, "", nil)
			wantKind(t, "no such repository", err, "not-found")
		})
	}
}

func read(t *testing.T, r *repo.Repo, commit string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := r.Walk(context.Background(), commit, func(name, blob string, _ uint32) error {
		data, err := r.Blob(context.Background(), blob, 0)
		files[name] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// wantKind wants an error of a kind, with something to do about it where a
// person must do something.
func wantKind(t testing.TB, what string, err error, kind string) {
	t.Helper()
	var e *repo.Error
	if !errors.As(err, &e) || e.Kind() != kind {
		t.Errorf("%s gives %v, want an error of the kind %s", what, err, kind)
		return
	}
	if (kind == "auth" || kind == "host-key") && e.Hint == "" {
		t.Errorf("%s says nothing about the remedy: %v", what, err)
	}
}

// TestSystemSSHFleet: the program itself, daemon and agents over ssh.
func TestSystemSSHFleet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := newFleet(b, b.dir)
	f.policy("edge", "v1.0.0", 1, 0)
	f.release("edge", "v1.0.0", "files: {/etc/edge/release: {content: \"v1.0.0\\n\"}, /etc/edge/big: {source: files/big, mode: \"0600\"}}\n")
	f.write("files/big", strings.Repeat("payload\n", 10_000))
	f.device("d1", "edge")
	f.device("d2", "edge")
	f.push("edge: v1.0.0")
	s := newSSHD(b)
	s.start()
	remote := append([]string{"--repo", s.url + f.bare}, s.flags()...)
	serve := f.start("serve", serveArgs(b.path("state"), remote...)...)
	for _, id := range []string{"d1", "d2"} {
		f.agent(id, remote...)
	}
	for _, id := range []string{"d1", "d2"} {
		f.is(id, "Current", "v1.0.0")
		wantFile(t, b.path("roots", id, "etc/edge/release"), "v1.0.0\n")
		wantFile(t, b.path("roots", id, "etc/edge/big"), strings.Repeat("payload\n", 10_000))
	}

	// The server gets a new host key: everybody stops, says why, and goes on
	// when the file is corrected. A device whose control changes its key must
	// not take that for an answer.
	from := len(serve.text())
	s.keys = []string{"host_ecdsa"}
	s.start()
	f.policy("edge", "v1.1.0", 1, 0)
	f.release("edge", "v1.1.0", "files: {/etc/edge/release: {content: \"v1.1.0\\n\"}}\n")
	f.push("edge: v1.1.0")
	b.waitLog(serve, from, "no host key of the kinds that are known", s.file("known_hosts"))
	if code, out := f.run(append([]string{"status"}, remote...)...); code != 1 || !strings.Contains(out, "compare its keys") {
		t.Errorf("status ends with %d and says\n%s", code, out)
	}
	s.trust("host_ecdsa")
	for _, id := range []string{"d1", "d2"} {
		f.is(id, "Current", "v1.1.0")
		wantFile(t, b.path("roots", id, "etc/edge/release"), "v1.1.0\n")
	}
	whole(b, f.bare)
	nothingLeft(b, f.bare)
}

func wantFile(t testing.TB, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	} else if string(got) != want {
		t.Errorf("%s holds %d bytes %.60q, want %d bytes %.60q", path, len(got), got, len(want), want)
	}
}

// TestSystemSSHHostKeys: what is known of the server decides, whatever else
// the server has.
func TestSystemSSHHostKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBench(t)
	f := newFleet(b, b.dir)
	f.write("a", "a")
	head := f.push("a")
	s := newSSHD(b)
	url := s.url + f.bare
	r := s.open(url, s.creds(), generous)
	d := s.openDevice(url, s.creds(), generous)
	poll := func() error {
		refs, err := r.Refs(ctx, sourceRef)
		if err == nil && refs[sourceRef] != head {
			err = fmt.Errorf("the poll gives %v", refs)
		}
		return errors.Join(err, d.Answers(ctx))
	}
	all := []string{"host_rsa", "host_ecdsa", "host_ed25519"}

	// One known kind of several that the server has.
	s.keys = all
	s.start()
	for _, k := range all {
		s.trust(k)
		if err := poll(); err != nil {
			t.Errorf("only %s is known of a server that has all: %v", k, err)
		}
	}
	s.trust("host_ed25519")
	hashed := b.path("sshd", "known_hosts")
	runTool(t, b, "ssh-keygen", "-q", "-H", "-f", hashed)
	if err := poll(); err != nil {
		t.Errorf("a hashed known_hosts: %v", err)
	}

	// Changed.
	s.keygen("host_new", "ed25519", "")
	s.keys = []string{"host_new"}
	s.start()
	s.trust("host_ed25519")
	err := poll()
	wantKind(t, "a changed host key", err, "host-key")
	wantKind(t, "a device's question with a changed host key", d.Answers(ctx), "host-key")
	for _, part := range []string{s.addr, s.fingerprint("host_new"), s.file("known_hosts"), "replace its line"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %q: %v", part, err)
		}
	}
	// Both known: the old one and the new one, as while a key is changed.
	s.trust("host_ed25519", "host_new")
	if err := poll(); err != nil {
		t.Errorf("with both keys known: %v", err)
	}

	// Of another type.
	s.keys = []string{"host_ecdsa", "host_rsa"}
	s.start()
	s.trust("host_new")
	err = poll()
	wantKind(t, "a host key of another type", err, "host-key")
	for _, part := range []string{s.addr, s.file("known_hosts"), "add the right one"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %q: %v", part, err)
		}
	}

	// Unknown, and revoked.
	writeFile(t, s.file("known_hosts"), s.knownLines("192.0.2.1:22", "host_ecdsa"), 0o600)
	err = poll()
	wantKind(t, "an unknown host", err, "host-key")
	if err == nil || !strings.Contains(err.Error(), "ssh-keyscan") {
		t.Errorf("no remedy: %v", err)
	}
	writeFile(t, s.file("known_hosts"), s.knownLines(s.addr, "host_ecdsa")+"@revoked * "+s.public("host_ecdsa")+"\n", 0o600)
	s.keys = []string{"host_ecdsa"}
	s.start()
	wantKind(t, "a revoked host key", poll(), "host-key")
	s.trust("host_ecdsa")
	if err := poll(); err != nil {
		t.Errorf("after the file was corrected: %v", err)
	}
}
