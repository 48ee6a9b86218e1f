package repo_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/repo"
)

func TestSSHHostKeys(t *testing.T) {
	ctx := context.Background()
	p, srv := overSSH(t)
	seed(t, p, "main", map[string]string{"a": "a"})
	r := open(t, p)
	if _, err := r.Refs(ctx, "refs/heads/"); err != nil {
		t.Fatal(err)
	}
	old := srv.Fingerprint()
	srv.NewHostKey(t)
	_, err := r.Refs(ctx, "refs/heads/")
	wantKind(t, "a changed host key", err, "host-key")
	for _, part := range []string{srv.Addr, srv.Fingerprint(), srv.KnownHosts, "replace its line"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %q: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), old) {
		t.Errorf("the error names the old key: %v", err)
	}
	d := openDevice(t, p)
	wantKind(t, "answers with a changed host key", d.Answers(ctx), "host-key")
	// Corrected in place, no restart needed; other hosts in the file do not matter.
	lines := "other.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE5Ff6nWKHPqvRi4oJ7nLJyNbl2vVEfmWQpKpXu0mVfp\n" + srv.KnownHostsLine()
	if err := os.WriteFile(srv.KnownHosts, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := r.Refs(ctx, "refs/heads/"); err != nil {
			t.Fatalf("after the file was corrected: %v", err)
		}
	}
	if err := os.WriteFile(srv.KnownHosts, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = r.Refs(ctx, "refs/heads/")
	wantKind(t, "an unknown host", err, "host-key")
	if !strings.Contains(err.Error(), "ssh-keyscan") {
		t.Errorf("no remedy: %v", err)
	}
}

func TestSSHRefusals(t *testing.T) {
	ctx := context.Background()
	p, srv := overSSH(t)
	_, other := overSSH(t)
	key := p.cred.SSHKeyFile
	p.cred.SSHKeyFile = other.KeyFile
	_, err := open(t, p).Refs(ctx, "refs/heads/")
	wantKind(t, "a key that is not accepted", err, "auth")
	if err := openDevice(t, p).Answers(ctx); err != nil {
		t.Errorf("a refused key is an answer, but: %v", err)
	}
	p.cred.SSHKeyFile = filepath.Join(t.TempDir(), "none")
	_, err = open(t, p).Refs(ctx, "refs/heads/")
	wantKind(t, "a key file that is missing", err, "auth")
	p.cred.SSHKeyFile = ""
	t.Setenv("SSH_AUTH_SOCK", "")
	_, err = open(t, p).Refs(ctx, "refs/heads/")
	wantKind(t, "neither key nor agent", err, "auth")
	for name, pem := range map[string]string{
		"a key that is none": "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
		"a public key":       "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE5Ff6nWKHPqvRi4oJ7nLJyNbl2vVEfmWQpKpXu0mVfp\n",
		"an empty key":       "",
	} {
		p.cred.SSHKeyFile = filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(p.cred.SSHKeyFile, []byte(pem), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = open(t, p).Refs(ctx, "refs/heads/")
		wantKind(t, name, err, "auth")
		if !strings.Contains(err.Error(), "ssh-keygen") {
			t.Errorf("%s: no remedy: %v", name, err)
		}
	}
	p.cred.SSHKeyFile = key
	p.url = srv.URL + "/missing.git"
	_, err = open(t, p).Refs(ctx, "refs/heads/")
	wantKind(t, "a repository that is missing", err, "not-found")
}

func TestStalledSSH(t *testing.T) {
	p, srv := overSSH(t)
	stalls(t, p, srv.Hang)
}

func TestSCPForm(t *testing.T) {
	r, err := repo.Open(repo.Config{URL: "git@git.example.com:team/fleet.git", Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.URL(); got != "ssh://git.example.com/team/fleet.git" {
		t.Fatalf("URL is %q", got)
	}
}
