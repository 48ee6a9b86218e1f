package secrets

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/gitopsd/gitopsd/internal/seal"
)

const content = "correct horse battery staple\n"

// put writes a file and gives its path.
func put(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// pipe is one that nobody writes into.
func pipe(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "identity")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func sealedFor(t *testing.T, recipients ...string) string {
	t.Helper()
	to, err := seal.Recipients(strings.Join(recipients, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := seal.Encrypt([]byte(content), to...)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func ageKey(t *testing.T) (identity, recipient string) {
	t.Helper()
	identity, recipient, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return identity, recipient
}

// sshKey is a host key as ssh-keygen writes it, and its public line.
func sshKey(t *testing.T, private any, public any, passphrase string) (text, line string) {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(key))
}

func TestOpen(t *testing.T) {
	one, oneKey := ageKey(t)
	other, otherKey := ageKey(t)
	edPublic, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host, hostKey := sshKey(t, edPrivate, edPublic, "")
	locked, _ := sshKey(t, edPrivate, edPublic, "x")
	rsaPrivate, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaHost, rsaKey := sshKey(t, rsaPrivate, &rsaPrivate.PublicKey, "")

	for name, c := range map[string]struct {
		files  Identities
		sealed string
		want   string // of the error; "" = it is opened
	}{
		"a key of age":          {Identities{put(t, one+"\n")}, sealedFor(t, oneKey), ""},
		"with a comment":        {Identities{put(t, "# of gw-1\n\n"+one)}, sealedFor(t, oneKey), ""},
		"the second of a file":  {Identities{put(t, other+"\n"+one+"\n")}, sealedFor(t, oneKey), ""},
		"the second file":       {Identities{put(t, other), put(t, one)}, sealedFor(t, oneKey), ""},
		"one of two recipients": {Identities{put(t, one)}, sealedFor(t, otherKey, oneKey), ""},
		"a host key":            {Identities{put(t, host)}, sealedFor(t, hostKey), ""},
		"an old host key":       {Identities{put(t, rsaHost)}, sealedFor(t, rsaKey), ""},
		"beside one that lacks": {Identities{"/no/such/file", put(t, one)}, sealedFor(t, oneKey), ""},
		"beside a bad one":      {Identities{put(t, "x"), put(t, one)}, sealedFor(t, oneKey), ""},
		"of another":            {Identities{put(t, other)}, sealedFor(t, oneKey, hostKey), "/identity: it is for another key"},
		"none":                  {nil, sealedFor(t, oneKey), ErrNoIdentity.Error() + "; secrets.identities named none"},
		"lacking":               {Identities{"/no/such/file"}, sealedFor(t, oneKey), ErrNoIdentity.Error() + "; /no/such/file: no such file or directory"},
		"a folder":              {Identities{t.TempDir()}, sealedFor(t, oneKey), "it is no regular file"},
		"a pipe":                {Identities{pipe(t)}, sealedFor(t, oneKey), "it is no regular file"},
		"a pipe, and the key":   {Identities{pipe(t), put(t, one)}, sealedFor(t, oneKey), ""},
		"no key":                {Identities{put(t, "hello "+one)}, sealedFor(t, oneKey), "it holds no identity of age"},
		"a public key":          {Identities{put(t, oneKey)}, sealedFor(t, oneKey), "it holds no identity of age"},
		"with a slip":           {Identities{put(t, one[:len(one)-1]+"Q")}, sealedFor(t, oneKey), "it holds no identity of age"},
		"with a passphrase":     {Identities{put(t, locked)}, sealedFor(t, hostKey), "the key has a passphrase"},
		"broken":                {Identities{put(t, strings.Replace(host, "\n", "\nAAAA", 1))}, sealedFor(t, hostKey), "it is no key of SSH"},
		"large":                 {Identities{put(t, strings.Repeat(one+"\n", 2000))}, sealedFor(t, oneKey), "too large"},
	} {
		data, err := c.files.Open(c.sealed)
		switch {
		case c.want == "" && (err != nil || string(data) != content):
			t.Errorf("%s: %q, %v", name, data, err)
		case c.want != "" && (!errors.Is(err, ErrNoIdentity) || !strings.Contains(err.Error(), c.want) || data != nil):
			t.Errorf("%s: %q, %v; want %q", name, data, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "SECRET-KEY") || strings.Contains(err.Error(), one[20:30])) {
			t.Errorf("%s: a key is told: %v", name, err)
		}
	}
}

// What is damaged would be opened by no key, so that none is waited for; whether
// there is one does not matter.
func TestOpenDamaged(t *testing.T) {
	one, oneKey := ageKey(t)
	file := put(t, one)
	good := sealedFor(t, oneKey)
	text := strings.Split(good, "\n")
	last := text[len(text)-3] // of the content
	for name, sealed := range map[string]string{
		"empty": "", "plain": content, "cut off": good[:len(good)/2],
		"large": strings.Repeat(" ", 70<<10) + good,
	} {
		for _, files := range []Identities{nil, {file}} {
			if data, err := files.Open(sealed); !errors.Is(err, errDamaged) || data != nil {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
	}
	// The tag of the content says so, which takes the key.
	other := "A"
	if last[10:11] == other {
		other = "B"
	}
	changed := strings.Replace(good, last, last[:10]+other+last[11:], 1)
	if data, err := (Identities{file}).Open(changed); !errors.Is(err, errDamaged) || data != nil {
		t.Errorf("changed: %q, %v", data, err)
	}
}
