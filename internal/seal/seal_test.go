package seal

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"
)

func TestRecipients(t *testing.T) {
	identity, recipient, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	for name, c := range map[string]struct {
		text  string
		count int
		want  string // of the error
	}{
		"age":           {recipient, 1, ""},
		"several":       {"# of site oslo\r\n" + recipient + "\r\n\n  " + host + " gw-1\n", 2, ""},
		"none":          {"\n# nobody\n", 0, "there is no key"},
		"a slip":        {"\n" + recipient[:len(recipient)-1], 0, "line 2: this is no public key of age"},
		"a short host":  {host[:40], 0, "line 1: this is no public key of SSH"},
		"of keyscan":    {"# gw-1:22 SSH-2.0\ngw-1,192.0.2.1 " + host, 0, "line 2: this is a line of ssh-keyscan: take the host's name off"},
		"an identity":   {identity, 0, "line 1: this is a private key"},
		"a key of ssh":  {"-----BEGIN OPENSSH PRIVATE KEY-----\n" + identity, 0, "line 1: this is a private key"},
		"anything else": {"hello " + identity, 0, "line 1: this is no public key"},
	} {
		keys, err := Recipients(c.text)
		if len(keys) != c.count || (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %d keys, %v; want %d, %q", name, len(keys), err, c.count, c.want)
		}
		if err != nil && strings.Contains(err.Error(), identity[10:]) {
			t.Errorf("%s: a key is told: %v", name, err)
		}
	}
}

// What is encrypted is opened by age itself with the key of each recipient.
func TestEncrypt(t *testing.T) {
	var to []age.Recipient
	var keys []age.Identity
	for range 2 {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		keys, to = append(keys, key), append(to, key.Recipient())
	}
	const content = "two\nlines, and no end"
	sealed, err := Encrypt([]byte(content), to...)
	if err != nil || !strings.HasPrefix(sealed, armor.Header+"\n") || !strings.HasSuffix(sealed, armor.Footer+"\n") {
		t.Fatalf("%q, %v", sealed, err)
	}
	for _, key := range keys {
		r, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), key)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(r); string(data) != content || err != nil {
			t.Errorf("%q, %v", data, err)
		}
	}
	if again, err := Encrypt([]byte(content), to...); again == sealed || err != nil {
		t.Errorf("the same twice: %v", err)
	}
}
