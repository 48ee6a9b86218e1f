package webhook

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
