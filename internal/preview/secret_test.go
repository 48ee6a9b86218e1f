package preview

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	m := mask{values: []string{"correct horse battery", "abc"}}
	for in, want := range map[string]string{
		"password = hunter2":                  "password = (secret)",
		"  \"apiKey\": \"x\", \"port\": 1":    "  \"apiKey\": (secret)",
		"db-password: two words":              "db-password: (secret)",
		"export MQTT_TOKEN=abcd":              "export MQTT_TOKEN=(secret)",
		"requirepass foobared":                "requirepass (secret)",
		"machine x login me password hunter2": "machine x login me password (secret)",
		"run --token abcdef --port 1":         "run --token (secret)",
		"url = http://me:pw@host/x":           "url = http://(secret)@host/x",
		"root:$6$salt$hash:1":                 "root:(secret):1",
		"x ghp_0123456789012345678901 y":      "x (secret) y",
		"say correct horse battery loud":      "say (secret) loud",
		"an abc, but no abcd":                 "an (secret), but no abcd",
		"passwordFile = /run/secrets/pw":      "passwordFile = /run/secrets/pw",
		"token: $TOKEN":                       "token: $TOKEN",
		"tokens_per_minute = 60":              "tokens_per_minute = 60",
		"port = 8080":                         "port = 8080",
		"https://host/path?x=1":               "https://host/path?x=1",
		"psk=\"wlan key\"":                    "psk=(secret)",
		"":                                    "",
	} {
		// A quote before the value may be left standing.
		if got := m.text(in); strings.ReplaceAll(got, "\"(secret)", "(secret)") != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestFilesThatAreSecrets(t *testing.T) {
	for file, want := range map[string]bool{
		"/etc/ssl/edge.key": true, "/root/.ssh/id_ed25519": true, "/etc/edge/api-token": true, "/etc/wifi.psk": true, "/etc/edge/secrets.yaml": true,
		"/etc/edge/edge.conf": false, "/etc/keyboard": false, "/usr/bin/tokenize": false, "/etc/ssl/edge.crt": false,
	} {
		if got := secretPath(file); got != want {
			t.Errorf("%s: got %v", file, got)
		}
	}
}

// Whatever is in a line, masking ends and leaves nothing of a known value.
func FuzzMask(f *testing.F) {
	f.Add("password = hunter2", "hunter2")
	f.Add("a=b=c:d", "b")
	f.Fuzz(func(t *testing.T, line, value string) {
		m := mask{values: []string{value}}
		got := m.text(line)
		if len(value) >= 4 && !strings.Contains(secretText, value) && strings.Contains(strings.ReplaceAll(got, secretText, "\x00"), value) {
			t.Errorf("%q with the secret %q: got %q", line, value, got)
		}
	})
}

// A spec that was assigned long ago may have been rendered with a secret that
// no revision at hand has any more.
func TestMask_OfAnOlderSpec(t *testing.T) {
	text := func(s string) source { return source{size: int64(len(s)), data: []byte(s), read: true} }
	look := func(older bool, to string) *Content {
		return contentChange("/etc/x", text("join swordfish\n"), text(to), mask{values: []string{"hunter2"}, older: older}, 9)
	}
	if c := look(true, "join hunter2\n"); len(c.Lines) > 0 || c.Hidden == "" {
		t.Errorf("what may be a secret is shown: %+v", c)
	}
	if c := look(false, "join hunter2\n"); len(c.Lines) == 0 {
		t.Error("two revisions that are at hand are not compared")
	}
	if c := look(true, "leave\n"); len(c.Lines) == 0 {
		t.Error("what holds no secret is not compared")
	}
	of := comparison{mask: mask{values: []string{"hunter2"}, older: true}}
	value := func(v string) element { return element{section: "os", value: map[string]any{"image": v}} }
	if f := of.change("/os", value("swordfish"), value("hunter2"), true, true).Fields[0]; f.From != secretText || f.To != secretText {
		t.Errorf("what may be a secret is shown: %+v", f)
	}
}
