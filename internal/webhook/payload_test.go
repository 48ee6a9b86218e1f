package webhook

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestForms(t *testing.T) {
	b := newBench(t)
	form := func(body string) *http.Request {
		r := b.request("push", body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		return r
	}
	good := url.Values{"payload": {pushBody("refs/heads/main", commitA, commitB)}}.Encode()
	b.want(form(good), http.StatusAccepted, "push main a..b")
	for _, bad := range []string{"", "payload", "other=x", good + "&payload=%7B%7D", "payload=%zz", pushBody("refs/heads/main", commitA, commitB)} {
		b.want(form(bad), http.StatusBadRequest, "")
	}
	r := b.request("push", good)
	b.want(r, http.StatusBadRequest, "")
	for _, kind := range []string{"", "text/plain", "multipart/form-data; boundary=x", "application/json/x", "application/xml"} {
		r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
		r.Header.Set("Content-Type", kind)
		b.want(r, http.StatusUnsupportedMediaType, "")
	}
}

func TestB110_PayloadsThatMakeNoSense(t *testing.T) {
	b := newBench(t)
	good := pushBody("refs/heads/main", commitA, commitB)
	marker := "PAYLOADTEXT"
	bad := map[string][]string{
		"push": {
			"", "{}", "[]", "null", "5", `"x"`, "true", good[:len(good)/2], good + "x", "\xff\xfe", "{\"ref\": \"" + marker,
			strings.Replace(good, `"ref": "refs/heads/main"`, `"ref": 5`, 1),
			strings.Replace(good, `"ref": "refs/heads/main"`, `"ref": null`, 1),
			strings.Replace(good, `"ref": "refs/heads/main"`, `"ref": "`+marker+`"`, 1),
			strings.Replace(good, `"ref": "refs/heads/main"`, `"ref": {"`+marker+`": []}`, 1),
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `", "commits": null, ` + acme + `}`,
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `", "commits": "` + marker + `", ` + acme + `}`,
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `"}`,
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `", "repository": {}}`,
			`{"ref": "refs/heads/main", "before": "` + commitA + `", "after": "` + commitB + `", "repository": "` + marker + `"}`,
			`{"ref": "refs/heads/main", "after": 5, ` + acme + `}`,
			`{"ref": "refs/heads/main", "after": "` + marker + `", ` + acme + `}`,
			`{"ref": "refs/heads/main", "after": "` + strings.ToUpper(commitB) + `", ` + acme + `}`,
			`{"ref": "refs/heads/main", ` + acme + `}`,
			strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
			`{"ref": ` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
			`{"x": ` + strings.Repeat(`{"x":`, 100_000),
		},
		"pull_request": {
			"", "{}", "[]", "null", `{"pull_request": null}`, `{"pull_request": {"head": null, "base": null}, "number": 1}`,
			strings.Replace(pullBody("opened", "main", ""), `"number": 7`, `"number": "`+marker+`"`, 1),
			strings.Replace(pullBody("opened", "main", ""), `"number": 7`, `"number": -7`, 1),
			strings.Replace(pullBody("opened", "main", ""), `"number": 7`, `"number": 7e300`, 1),
			strings.Replace(pullBody("opened", "main", ""), commitB, marker, 1),
			strings.Replace(pullBody("opened", "main", ""), acme, `"repository": null`, 1),
			pullBody("edited", "main", `"changes": [],`),
		},
	}
	for event, list := range bad {
		for _, body := range list {
			b.logs.Reset()
			b.want(b.request(event, body), http.StatusBadRequest, "")
			said := b.logs.String()
			if strings.Count(said, "\n") != 1 || !strings.Contains(said, "cannot be read") || strings.Contains(said, marker) || len(said) > 400 {
				t.Errorf("%.80s: the log says\n%s", body, said)
			}
			if t.Failed() {
				t.Logf("after %.200s", body)
			}
		}
	}
	b.want(b.request("push", good), http.StatusAccepted, "push main a..b")
}

// What a sender writes anywhere does not get to the log, in whichever place.
func TestNothingOfASenderReachesTheLog(t *testing.T) {
	b := newBench(t)
	evil := "x\nlevel=ERROR msg=EVIL \x1b[31m\u202e"
	for _, body := range []string{
		pushBody("refs/heads/"+evil, commitA, commitB),
		strings.ReplaceAll(pushBody("refs/heads/main", commitA, commitB), "acme", "EVIL\\n"),
		`{"ref": "refs/heads/main", "after": "EVIL\n", ` + acme + `}`,
	} {
		b.do(b.request("push", body))
		b.do(b.request("EVIL", body))
		r := b.request("push", body)
		r.Header.Set(headerDelivery, "EVIL\n")
		b.do(r)
		r = b.request("push", body)
		r.Header[headerSignature] = []string{"EVIL"}
		b.do(r)
	}
	r := b.request("push", pushBody("refs/heads/main", commitA, commitB))
	r.Header.Set(headerDelivery, "72d3\nlevel=ERROR EVIL")
	b.want(r, http.StatusBadRequest, "")
	r = b.request("push", pushBody("refs/heads/main", commitA, commitB))
	r.Header.Set(headerDelivery, strings.Repeat("1", maxDelivery+1))
	b.want(r, http.StatusBadRequest, "")
	if said := b.logs.String(); strings.Contains(said, "EVIL") || strings.Contains(said, "\x1b") || said == "" {
		t.Errorf("the log says\n%s", said)
	}
}
