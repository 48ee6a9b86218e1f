package githubtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// token is who a bearer is and what it may do.
type token struct {
	login   string
	may     map[string]string // permission → read or write
	scopes  string            // of a classic token
	ends    time.Time         // zero = never
	install bool              // of an App's installation
}

// app is a GitHub App, installed in the repository.
type app struct {
	id, installation int64
	slug             string
	key              *rsa.PublicKey
	may              map[string]string
	life             time.Duration
	issued           int
}

// AllPermissions are those that an App needs for everything.
func AllPermissions() map[string]string {
	return map[string]string{"metadata": "read", "contents": "read", "pull_requests": "write", "statuses": "write", "checks": "write"}
}

// AddToken makes a person's token with these permissions; nil = all that a
// token can have.
func (s *Server) AddToken(text, login string, may map[string]string) {
	if may == nil {
		may = AllPermissions()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[text] = &token{login: login, may: may}
}

// AddClassicToken makes a token of the kind that has scopes.
func (s *Server) AddClassicToken(text, login, scopes string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	may := map[string]string{}
	if strings.Contains(scopes, "repo") {
		may = AllPermissions()
	}
	s.tokens[text] = &token{login: login, may: may, scopes: scopes}
}

// Revoke makes a token invalid; "" = all tokens of installations.
func (s *Server) Revoke(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.tokens {
		if name == text || text == "" && t.install {
			delete(s.tokens, name)
		}
	}
}

// keyBits is as small as a key for RS256 may be in Go, so that making one
// costs a test little.
const keyBits = 2048

// testKey is made once: it is a second of work.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, keyBits) })

// AddApp installs an App in the repository and gives its private key in PEM.
// Its tokens last for life; 0 = an hour, as GitHub's do.
func (s *Server) AddApp(t testing.TB, id, installation int64, slug string, may map[string]string, life time.Duration) []byte {
	t.Helper()
	key, err := testKey()
	if err != nil {
		t.Fatal(err)
	}
	if may == nil {
		may = AllPermissions()
	}
	if life == 0 {
		life = time.Hour
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app = &app{id: id, installation: installation, slug: slug, key: &key.PublicKey, may: may, life: life}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// Issued is how many tokens the installation was given.
func (s *Server) Issued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.app == nil {
		return 0
	}
	return s.app.issued
}

// bearer is the valid token of a request; nil = there is none.
func (s *Server) bearer(r *http.Request) *token {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	t := s.tokens[text]
	if !ok || t == nil || !t.ends.IsZero() && !time.Now().Before(t.ends) {
		return nil
	}
	return t
}

// appToken checks what an App says of itself, as RFC 7519 and GitHub want it.
func (s *Server) appToken(r *http.Request) (message string) {
	const longest = 10 * time.Minute
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(text, ".")
	if len(parts) != 3 || s.app == nil {
		return "A JSON web token could not be decoded"
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(s.app.key, crypto.SHA256, sum[:], signature) != nil {
		return "A JSON web token could not be decoded"
	}
	var head struct{ Alg, Typ string }
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	for i, into := range []any{&head, &claims} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(data, into) != nil {
			return "A JSON web token could not be decoded"
		}
	}
	now := time.Now()
	switch {
	case head.Alg != "RS256" || claims.Iss != fmt.Sprint(s.app.id):
		return "Integration not found"
	case time.Unix(claims.Iat, 0).After(now):
		return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	case !time.Unix(claims.Exp, 0).After(now):
		return "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	case time.Unix(claims.Exp, 0).Sub(now) > longest:
		return "'Expiration time' claim ('exp') is too far in the future"
	}
	return ""
}

// apps answers what an App asks for itself.
func (s *Server) apps(r *http.Request, body []byte) reply {
	if message := s.appToken(r); message != "" {
		return refuse(http.StatusUnauthorized, message)
	}
	a := s.app
	installation := map[string]any{"id": a.installation, "app_id": a.id, "app_slug": a.slug, "permissions": a.may}
	switch {
	case r.URL.Path == "/app":
		return reply{status: 200, body: map[string]any{"id": a.id, "slug": a.slug, "name": a.slug, "permissions": a.may}}
	case r.URL.Path == s.at("/installation") && a.installation != 0:
		return reply{status: 200, body: installation}
	case r.URL.Path == fmt.Sprintf("/app/installations/%d", a.installation):
		return reply{status: 200, body: installation}
	case r.Method == http.MethodPost && r.URL.Path == fmt.Sprintf("/app/installations/%d/access_tokens", a.installation) && a.installation != 0:
		var want struct{ Repositories []string }
		_ = json.Unmarshal(body, &want) // nothing is wanted then
		for _, name := range want.Repositories {
			if name != s.name {
				return refuse(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
			}
		}
		a.issued++
		text := fmt.Sprintf("ghs_installation%04dSecret", a.issued)
		s.tokens[text] = &token{login: a.slug + "[bot]", may: a.may, ends: time.Now().Add(a.life), install: true}
		return reply{status: 201, body: map[string]any{"token": text, "expires_at": time.Now().Add(a.life).UTC().Format(time.RFC3339), "permissions": a.may}}
	}
	return refuse(http.StatusNotFound, "Not Found")
}
