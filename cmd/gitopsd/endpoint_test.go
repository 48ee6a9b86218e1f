package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gitopsd/gitopsd/internal/doctest"
	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/internal/webhook"
	"github.com/gitopsd/gitopsd/schema"
)

var listeningAt = regexp.MustCompile(`msg=listening address=(\S+)`)

// endpointOf waits until a daemon says where it listens.
func (w *world) endpointOf(name string) (address string, err error) {
	err = w.wait(func() error {
		data, err := os.ReadFile(filepath.Join(w.work, name+".log"))
		all := listeningAt.FindAllSubmatch(data, -1)
		if err == nil && all == nil {
			err = fmt.Errorf("it does not say where it listens:\n%s", data)
		}
		if err == nil {
			address = string(all[len(all)-1][1])
		}
		return err
	})
	return address, err
}

// deliver sends what GitHub would, of the repository at REPO_URL and signed
// with the content of a file, and wants a status.
func deliver(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 4, "deliver STATUS PROCESS SECRET-FILE EVENT [BRANCH BEFORE AFTER]"); err != nil {
		return err
	}
	body := "{}"
	if len(args) == 7 {
		for i := 5; i < 7; i++ {
			var err error
			if args[i], err = gitserver.TryGit(filepath.Join(w.work, "fleet"), "rev-parse", "--verify", args[i]+"^{commit}"); err != nil {
				return fmt.Errorf("%w: %s", err, args[i])
			}
		}
		body = fmt.Sprintf(`{"ref": "refs/heads/%s", "before": %q, "after": %q, "commits": [], "repository": {"full_name": "acme/x", "clone_url": %q}}`,
			args[4], args[5], args[6], ts.Getenv("REPO_URL"))
	}
	return w.deliver(ts, args[0], args[1], args[2], args[3], body)
}

// deliver sends a payload, signed with the content of a file, to a process.
func (w *world) deliver(ts *testscript.TestScript, status, process, secretFile, event, body string) error {
	address, err := w.endpointOf(process)
	if err != nil {
		return err
	}
	secret, err := os.ReadFile(ts.MkAbs(secretFile))
	if err != nil {
		return err
	}
	sum := hmac.New(sha256.New, []byte(strings.TrimSuffix(string(secret), "\n")))
	sum.Write([]byte(body))
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, address+webhook.PathGitHub, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", event)
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum.Sum(nil)))
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	ts.Logf("%d %s", r.StatusCode, text)
	if err == nil && fmt.Sprint(r.StatusCode) != status {
		err = fmt.Errorf("%d %s, want %s", r.StatusCode, text, status)
	}
	return err
}

// askForSweep runs the script of the documentation against a daemon.
func askForSweep(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "ask-sweep PROCESS SECRET-FILE"); err != nil {
		return err
	}
	for _, program := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			w.t.Skipf("the script on the page needs %s", program)
		}
	}
	address, err := w.endpointOf(args[0])
	if err != nil {
		return err
	}
	page, err := os.ReadFile("../../docs/howto/sweep-at-once.md")
	if err != nil {
		return err
	}
	blocks, err := doctest.Parse(string(page))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(blocks, func(b doctest.Block) bool { return b.Language == "sh" && strings.Contains(b.Text, webhook.PathSweep) })
	if i < 0 {
		return errors.New("the page has no such script")
	}
	const example = "https://gitopsd.example.com"
	if !strings.Contains(blocks[i].Text, example) {
		return errors.New("the script is not for " + example)
	}
	secret, err := os.ReadFile(ts.MkAbs(args[1]))
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-eu", "-c", strings.ReplaceAll(blocks[i].Text, example, address))
	cmd.Env = append(os.Environ(), "SECRET="+strings.TrimSuffix(string(secret), "\n"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if !doctest.Match(blocks[i].Output, string(out)) {
		return fmt.Errorf("it printed %q, and the page shows %q", out, blocks[i].Output)
	}
	return nil
}

func TestCheckListen(t *testing.T) {
	secret := schema.WebhookConfig{SecretFile: "x"}
	for address, want := range map[string]bool{
		"": true, "127.0.0.1:0": true, ":8484": true, "[::1]:8484": true, "localhost:8484": true,
		"8484": false, "127.0.0.1": false, "::1": false, "x:": false, ":http": false, ":65536": false, ":-1": false, "http://x:80": false,
	} {
		err := checkListen(schema.ServeSpec{Listen: address, Webhook: secret})
		if (err == nil) != want || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := checkListen(schema.ServeSpec{Listen: ":8484"}); err == nil || exitCode(err) != exitUsage || hints(err) == nil {
		t.Errorf("an address without a secret: %v", err)
	}
}

// Whatever ends first, all have ended in the end.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := errors.New("wrong")
		waits := func(ctx context.Context) error { <-ctx.Done(); return nil }
		if err := together(t.Context(), waits, func(context.Context) error { return wrong }, waits); !errors.Is(err, wrong) {
			t.Errorf("together gives %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := together(ctx, waits, waits); err != nil {
			t.Errorf("an end that was asked for gives %v", err)
		}
	})
}
