package webhook

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzPayload sends whatever it likes as a signed delivery, as JSON and as a
// form: the answer is one that the sender understands, what is told is of the
// watched repository and well-formed, and the log has no more than a line, in
// which nothing of the payload stands.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "[]", "null", `{"ref": 5}`, pushBody("refs/heads/main", commitA, commitB), pushBody("refs/heads/main", commitA, zeros),
		pushBody("refs/heads/gitopsd/brake", commitA, commitB), pushBody("refs/tags/v1", commitA, commitB),
		pullBody("opened", "main", ""), pullBody("edited", "main", `"changes": {"base": {"ref": {"from": "x"}}},`),
		`{"ref": "refs/heads/main", "after": "` + commitB + `", "commits": null, ` + acme + `}`,
		strings.Repeat("[", 100), strings.Repeat(`{"repository":`, 100),
	} {
		for event := range byte(4) {
			f.Add(event, seed)
		}
	}
	f.Fuzz(func(t *testing.T, how byte, body string) {
		b := newBench(t)
		event := []string{"push", "pull_request"}[how%2]
		sent := body
		if how&2 != 0 {
			sent = url.Values{"payload": {body}}.Encode()
		}
		r := b.request(event, sent)
		if how&2 != 0 {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		status, text := b.do(r)
		heard, said := b.take(), b.logs.String()
		if status != http.StatusAccepted && status != http.StatusBadRequest {
			t.Errorf("%d %s", status, text)
		}
		if status == http.StatusBadRequest && (heard != "" || strings.Count(said, "\n") != 1) {
			t.Errorf("refused, and told %q; the log says\n%s", heard, said)
		}
		if heard != "" && (!strings.Contains(strings.ToLower(body), "fleet") && !strings.Contains(body, `\u`) || strings.Contains(heard, ";")) {
			t.Errorf("told %q", heard)
		}
		if strings.Count(said, "\n") > 1 || len(said) > 500 || len(text) > 200 {
			t.Errorf("the answer %q, and the log says\n%s", text, said)
		}
	})
}
