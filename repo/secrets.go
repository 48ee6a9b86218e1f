package repo

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

const (
	// secretLead is how much of a secret is looked for, in bytes: what a
	// server says is cut somewhere, so the whole of it may not be there.
	secretLead = 12
	// secretLeast is the length from which on a text is looked for. Shorter
	// ones are words, such as the user "git", that errors are made of.
	secretLeast = 5
)

// withoutSecrets gives an error whose text does not repeat what the request
// was authorized with. Servers, and proxies in front of them, do that: error
// pages show the headers and the address that they were asked with.
func withoutSecrets(err error, req *http.Request) error {
	if err == nil || req == nil || !repeatsSecret(err.Error(), req) {
		return err
	}
	var e *Error
	if !errors.As(err, &e) {
		return fail(kindOf(err), "what the server says repeats the credentials, and is left out")
	}
	c := *e
	c.Err = errors.New("what the server says repeats the credentials, and is left out")
	return &c
}

func repeatsSecret(text string, req *http.Request) bool {
	// Escapes are written in either case.
	text = strings.ToLower(text)
	for _, secret := range secretForms(req) {
		if secret = strings.ToLower(secret[:min(len(secret), secretLead)]); strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

// secretForms are the ways in which the secrets of a request are written.
func secretForms(req *http.Request) []string {
	var forms []string
	add := func(secret string) {
		if len(secret) >= secretLeast {
			forms = append(forms, secret, sanitize(secret, len(secret)), url.QueryEscape(secret), url.PathEscape(secret),
				base64.StdEncoding.EncodeToString([]byte(secret)))
		}
	}
	if user, password, ok := req.BasicAuth(); ok {
		add(password)
		if password == "" {
			add(user) // a token that stands before the host alone
		}
	}
	if _, value, ok := strings.Cut(req.Header.Get("Authorization"), " "); ok {
		add(value)
	}
	if req.URL != nil {
		for name, values := range req.URL.Query() {
			for _, v := range values {
				if name != "service" { // ours
					add(v)
				}
			}
		}
	}
	return forms
}
