package failure

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"edge: cannot open /etc/edge.conf: no such file":  "edge: cannot open /etc/edge.conf: no such file",
		"DB_PASSWORD=hunter22 user=edge":                  "DB_PASSWORD=[removed] user=edge",
		`{"apiKey": "k-123456", "port": 80}`:              `{"apiKey": "[removed]", "port": 80}`,
		"connect to postgres://edge:hunter22@db:5432/a":   "connect to postgres://[removed]@db:5432/a",
		"Authorization: Bearer abcdefghijklmnop":          "Authorization: Bearer [removed]",
		"push failed for ghp_abcdefghijklmnopqrstuvwxyz1": "push failed for [removed]",
		"Error: token=hunter22hunter22":                   "Error: token=[removed]",
		"shop_db_1 | DB_PASSWORD: hunter22":               "shop_db_1 | DB_PASSWORD: [removed]",
		"password=/run/secrets/db":                        "password=/run/secrets/db",
		strings.Repeat("x", 40):                           strings.Repeat("x", 40),
	} {
		if got := WithoutSecrets(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	e := &Error{Component: "units", Element: "a.service", Output: "token=abcdef123456", Err: errors.New("it failed")}
	if strings.Contains(e.Error(), "abcdef123456") {
		t.Errorf("the message is %q", e.Error())
	}
}
