package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// signaturePrefix names the one algorithm that is taken.
const signaturePrefix = "sha256="

// signature reads the signature of a request: one header, of the form that its
// sender documents and no other.
func signature(r *http.Request, header string) (mac []byte, wrong answer) {
	values := r.Header.Values(header)
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return nil, answer{http.StatusUnauthorized, "the header " + header + " is missing; is a secret set where the request comes from?"}
	case len(values) > 1:
		return nil, answer{http.StatusUnauthorized, "there is more than one header " + header}
	}
	text, found := strings.CutPrefix(values[0], signaturePrefix)
	if found && len(text) == hex.EncodedLen(sha256.Size) && strings.ToLower(text) == text {
		if mac, err := hex.DecodeString(text); err == nil {
			return mac, answer{}
		}
	}
	return nil, answer{http.StatusUnauthorized, "the header " + header + " is not " + signaturePrefix + " and 64 lower-case hex digits"}
}

// signedBody reads a body whose signature, of lead and body, holds. done is to
// be called in any case, when nothing refers to the body any more.
func (h *Hooks) signedBody(w http.ResponseWriter, r *http.Request, limit int64, mac []byte, lead ...[]byte) (body []byte, done func(), wrong answer) {
	nothing := func() {}
	if r.ContentLength > limit {
		return nil, nothing, tooLargeAnswer()
	}
	secrets, wrong := h.secrets()
	if wrong.status != 0 {
		return nil, nothing, wrong
	}
	body, done, wrong = h.bodies.read(w, r, limit)
	if wrong.status == 0 && !signed(mac, secrets, append(lead, body)...) {
		wrong = answer{http.StatusUnauthorized, "the signature does not fit; is the secret the same on both sides?"}
	}
	return body, done, wrong
}

// signed says whether mac is that of the parts with one of the secrets. It
// takes the same time for each that is wrong.
func signed(mac []byte, secrets [][]byte, parts ...[]byte) bool {
	ok := false
	for _, secret := range secrets {
		sum := hmac.New(sha256.New, secret)
		for _, part := range parts {
			sum.Write(part)
		}
		if hmac.Equal(sum.Sum(nil), mac) {
			ok = true
		}
	}
	return ok
}
