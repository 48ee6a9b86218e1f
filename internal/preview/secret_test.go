package preview

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	m := maskOf([]string{"correct horse battery", "abc"})
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
		"abc abc ABC":                         "(secret) (secret) (secret)",
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

// What a template can make of a value is found again, each line of it by itself,
// and a line that says nothing hides none.
func TestMask_FormsOfAValue(t *testing.T) {
	m := maskOf([]string{"marlin-Swims\r\n\n  {\n  second \"half\"\n}\n", "pass\\word\n", "a\n!?!?"})
	for in, want := range map[string]string{
		"join marlin-Swims":     "join (secret)",
		"  second \"half\" end": "  (secret) end",
		"MARLIN-SWIMS":          "(secret)",
		"x marlin-swims\r":      "x (secret)\r",
		`key "pass\\word"`:      `key "(secret)"`,
		`pass\word`:             "(secret)",
		`PASS\WORD`:             "(secret)",
		`PASS\\WORD`:            "(secret)",
		`"MARLIN-SWIMS\R\N\N  {\N  SECOND \"HALF\"\N}"`:   `"(secret)"`,
		`"marlin-Swims\r\n\n  {\n  second \"half\"\n}\n"`: `"(secret)\n"`,
		strings.Repeat("x", 5000) + "x":                   strings.Repeat("x", 4799) + "…",
		"}":                                               "}",
		" {":                                              " {",
		"port 7":                                          "port 7",
		"x !?!? y":                                        "x (secret) y",
	} {
		if got := m.text(in); got != want {
			t.Errorf("%.60q: got %.60q, want %.60q", in, got, want)
		}
	}
	long := strings.Repeat("0123456789", 2*longestMasked)
	if got := maskOf([]string{long}).text("a " + long + " b"); got != "a (secret) b" {
		t.Errorf("of a long value %.60q is shown", got)
	}
	many := maskOf([]string{strings.Repeat("a\nb", 3) + strings.Join(strings.Fields(fmt.Sprint(rand.Perm(mostForms))), "\n")})
	if got := many.value("image", "x"); !many.all || got != secretText || many.hides("/etc/x", nil) == "" {
		t.Errorf("of more lines than are looked for %q is shown", got)
	}
}

// Whatever is in a line, masking ends and leaves nothing of a known value.
func FuzzMask(f *testing.F) {
	f.Add("password = hunter2", "hunter2")
	f.Add("a=b=c:d", "b")
	f.Add("x ab\xff a!b", "a!b\na\nab\xff")
	f.Add("join hunter2\nABCD", "hunter2\n  abcd\r\n\n")
	f.Fuzz(func(t *testing.T, line, value string) {
		got := strings.ReplaceAll(maskOf([]string{value}).text(line), secretText, "\x00")
		for _, form := range append(strings.Split(value, "\n"), value, strings.ToUpper(value), strings.ToLower(value)) {
			form = strings.TrimSpace(form)
			if len(form) >= short && !strings.Contains(secretText, form) && strings.Contains(got, form) {
				t.Errorf("%q with the secret %q: got %q, which has %q", line, value, got, form)
			}
		}
	})
}

// A spec that was assigned long ago may have been rendered with a secret that
// no revision at hand has any more: what is written in none is not shown.
func TestMask_OfAnOlderSpec(t *testing.T) {
	text := func(s string) source { return source{size: int64(len(s)), data: []byte(s), read: true} }
	written := &literal{lines: map[string]bool{"port 7": true, "join {{ .vars.x }}": true, "password = hunter2": true}}
	look := func(written *literal) string {
		from, to := text("port 7\n}\nsame\njoin swordfish\npassword = hunter2\n"), text("same\njoin hunter2\n")
		return strings.Join(contentChange("/etc/x", from, to, maskOf([]string{"hunter2"}), written, 9).Lines[1:], "|")
	}
	if got, want := look(written), "-port 7|-}| same|-(secret)|-password = (secret)|+join (secret)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := look(nil), "-port 7|-}| same|-join swordfish|-password = (secret)|+join (secret)"; got != want {
		t.Errorf("of what is at hand: got  %s\nwant %s", got, want)
	}
	of := comparison{mask: maskOf([]string{"hunter2"}), literal: func(at string) *literal {
		return &literal{lines: map[string]bool{"edge:{{ .vars.x }}": true, "edge:1": at == "/os/image"}}
	}}
	value := func(v string) element {
		return element{section: "os", value: map[string]any{"image": v, "program": "for " + v}}
	}
	fields := func(from string) string {
		return fmt.Sprint(of.change("/os", value(from), value("edge:hunter2"), true, true).Fields)
	}
	if got, want := fields("edge:swordfish"), "[{image (secret) edge:(secret)  } {program for edge:swordfish for edge:(secret)  }]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := fields("edge:1"), "[{image edge:1 edge:(secret)  } {program for edge:1 for edge:(secret)  }]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if e := of.masked(Effect{Reboot: "edge:hunter2"}); e.Reboot != "edge:(secret)" {
		t.Errorf("it reboots into %s", e.Reboot)
	}
}
