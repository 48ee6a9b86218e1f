package github

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	gh "github.com/google/go-github/v60/github"
)

const (
	// jwtAge and jwtLife are the two ends of what an App says of itself: GitHub
	// allows ten minutes, and advises to begin one earlier because clocks
	// differ.
	jwtAge  = time.Minute
	jwtLife = 8 * time.Minute
	// renewBefore is how long before its end a token is no longer used: longer
	// than a request and its wait for the rate limit mostly take.
	renewBefore = 5 * time.Minute
)

// source gives the token that requests are made with.
type source interface {
	// token gives one that is good as far as this side can know.
	token(ctx context.Context) (string, error)
	// rejected says that the server did not take a token.
	rejected(token string)
}

// fileSource is a token in a file, which is read for each request: a rotated
// one is used from then on.
type fileSource struct{ path string }

func (f fileSource) token(context.Context) (string, error) { return readToken(f.path) }
func (fileSource) rejected(string)                         {}

// authorized puts the token on each request to the API, and asks for another
// one, once, when the server does not take it.
type authorized struct {
	next    http.RoundTripper
	api     *url.URL
	from    source
	secrets *secrets
}

// RoundTrip sends one request.
func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != a.api.Host || req.URL.Scheme != a.api.Scheme {
		return nil, errors.New("the request is for another host than the API")
	}
	ctx := req.Context()
	token, err := a.from.token(ctx)
	if err != nil {
		return nil, err
	}
	r, err := a.send(req, token)
	if err != nil || r.StatusCode != http.StatusUnauthorized {
		return r, err
	}
	a.from.rejected(token)
	again, err := a.from.token(ctx)
	if err != nil {
		return nil, err
	}
	if again == token || req.Body != nil && req.GetBody == nil {
		return r, nil
	}
	return a.send(req, again)
}

func (a *authorized) send(req *http.Request, token string) (*http.Response, error) {
	a.secrets.add(token)
	one := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		one.Body = body
	}
	one.Header.Set("Authorization", "Bearer "+token)
	return a.next.RoundTrip(one)
}

// jwtSource is an App that speaks for itself.
type jwtSource struct {
	id      int64
	keyFile string
}

func (j jwtSource) token(context.Context) (string, error) {
	text, err := readSecret(j.keyFile, "the private key of the GitHub App")
	if err != nil {
		return "", err
	}
	key, err := parseKey([]byte(text))
	if err == nil {
		text, err = signJWT(key, j.id, time.Now())
	}
	if err != nil {
		return "", &apiError{op: "use the private key of the GitHub App", message: j.keyFile + ": " + err.Error(), kind: kindCredentials, err: err}
	}
	return text, nil
}

func (jwtSource) rejected(string) {}

// parseKey reads a private key in PEM. No error repeats what it holds.
func parseKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it holds no private key in PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it holds no RSA private key that can be read")
	}
	key, ok := any.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("its key is not of the kind RSA")
	}
	return key, nil
}

// signJWT makes the token of RFC 7519 with which an App authenticates.
func signJWT(key *rsa.PrivateKey, id int64, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iat": now.Add(-jwtAge).Unix(), "exp": now.Add(jwtLife).Unix(), "iss": strconv.FormatInt(id, 10),
	})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// installation is an App in one repository. Its tokens last an hour and are
// renewed before that.
type installation struct {
	app         *gh.Client // authenticates as the App itself
	owner, name string
	scrub       func(string) string

	mu      sync.Mutex
	id      int64 // 0 = it is looked for
	found   bool  // id was looked for, and may be looked for again
	current string
	ends    time.Time
}

func (i *installation) token(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current != "" && time.Now().Add(renewBefore).Before(i.ends) {
		return i.current, nil
	}
	if i.id == 0 {
		at, _, err := i.app.Apps.FindRepositoryInstallation(ctx, i.owner, i.name)
		if err != nil {
			return "", failed(fmt.Sprintf("find the installation of the GitHub App for %s/%s", i.owner, i.name), err, i.scrub)
		}
		i.id, i.found = at.GetID(), true
	}
	// For this repository alone, whatever else the installation may see.
	fresh, _, err := i.app.Apps.CreateInstallationToken(ctx, i.id, &gh.InstallationTokenOptions{Repositories: []string{i.name}})
	if err != nil {
		err = failed("get a token for the installation of the GitHub App", err, i.scrub)
		if kindOf(err) == kindNotFound && i.found {
			i.id = 0 // it was uninstalled, and may be installed anew
		}
		return "", err
	}
	if fresh.GetToken() == "" {
		return "", &apiError{op: "get a token for the installation of the GitHub App", message: "the answer holds none", kind: kindUnavailable}
	}
	i.current, i.ends = fresh.GetToken(), fresh.GetExpiresAt().Time
	return i.current, nil
}

func (i *installation) rejected(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current == token {
		i.current = ""
	}
}
