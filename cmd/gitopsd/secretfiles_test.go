package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsThatAllCanReadAreTold(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{filepath.Dir(dir), dir} { // which are of the tests' user alone
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("sesame\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open, private, closed := file("open", 0o644), file("private", 0o640), file("closed/key", 0o644)
	link := filepath.Join(dir, "closed", "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	got := readByAll([]string{"", private, open, closed, link, open, filepath.Join(dir, "none")})
	if want := link + " " + open; strings.Join(got, " ") != want {
		t.Errorf("all can read %q, want %q", got, want)
	}

	for _, args := range [][]string{
		{"--github-app-id", "1", "--github-private-key-file", open}, {"--github-token-file", open},
		{"--listen", "127.0.0.1:0", "--webhook-secret-file", open}, {"--token-file", open}, {"--password-file", open},
	} {
		args = append([]string{"doctor", "--github-repository", "a/b", "--github-api-url", "http://127.0.0.1:1", "--repo", filepath.Join(dir, "none"), "--state", dir}, args...)
		if !strings.Contains(strings.Join(args, " "), "--github-app") && !strings.Contains(strings.Join(args, " "), "--github-token") {
			args = append(args, "--github-token-file", private)
		}
		var out, errs bytes.Buffer
		run(context.Background(), args, strings.NewReader(""), &out, &errs, nil)
		if text := out.String(); !strings.Contains(text, "secret files: "+forAllToRead+": "+open+"\n  remedy: "+makePrivate) {
			t.Errorf("%q: doctor says\n%s%s", args, text, errs.String())
		}
	}
}
