package github

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitopsd/gitopsd/internal/githubtest"
)

// asApp makes a daemon authenticate as an App.
func (w *world) asApp(may map[string]string) func(*Config) {
	key := w.write("key.pem", string(w.server.AddApp(w.t, 12, 34, "fleet-app", may, 0)))
	return func(c *Config) { c.TokenFile, c.AppID, c.PrivateKeyFile = "", 12, key }
}

func TestB16_TokensOfAnAppAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.start(w.asApp(nil))
		for n := range 30 {
			w.open(1, commit(n+2))
			w.event(s, 1, commit(n+2))
			time.Sleep(20 * time.Minute)
			w.wantComment(1, "plan of "+commit(n+2))
		}
		for _, r := range w.server.Requests() {
			if r.Status == http.StatusUnauthorized {
				t.Errorf("a token was used for too long: %s", r)
			}
		}
		for _, r := range w.server.Requests() {
			if strings.HasSuffix(r.Path, "/access_tokens") && !strings.Contains(r.Body, `"repositories":["fleet"]`) {
				t.Errorf("a token for more than the repository was asked for: %s", r.Body)
			}
		}
		if n := w.server.Issued(); n < 10 || n > 13 {
			t.Errorf("%d tokens in ten hours, want one for each 55 minutes", n)
		}
	})
}

func TestB16_RejectedTokenIsReadAgain(t *testing.T) {
	t.Run("app", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.open(1, commit(2))
			s := w.start(w.asApp(nil))
			time.Sleep(time.Minute)
			w.server.Revoke("")
			w.open(1, commit(3))
			w.event(s, 1, commit(3))
			time.Sleep(10 * time.Second)
			w.wantComment(1, "plan of "+commit(3))
			if strings.Contains(w.logs.String(), "WARN") {
				t.Errorf("a token that was taken back was trouble:\n%s", w.logs.String())
			}
		})
	})
	t.Run("file", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.open(1, commit(2))
			s := w.start()
			time.Sleep(time.Minute)
			w.server.Revoke(testToken)
			w.open(1, commit(3))
			w.event(s, 1, commit(3))
			w.server.Forget()
			time.Sleep(30 * time.Minute)
			if n := strings.Count(w.logs.String(), "Bad credentials"); n < 1 || n > 2 {
				t.Errorf("said %d times:\n%s", n, w.logs.String())
			}
			if n := len(w.server.Requests()); n > 40 {
				t.Errorf("%d requests in half an hour with a token that is not accepted", n)
			}
			w.server.AddToken("github_pat_SecretNew", testLogin, nil)
			w.write("token", "github_pat_SecretNew\n")
			time.Sleep(15 * time.Minute)
			w.wantComment(1, "plan of "+commit(3))
		})
	})
}

// A missing right costs what it is for, and one line.
func TestB115_MissingRightsDegrade(t *testing.T) {
	cases := []struct {
		missing string
		says    string
		want    func(w *world)
	}{
		{"statuses", "no commit statuses are written", func(w *world) {
			w.wantStatus(commit(4), contextValidate, "")
			w.wantComment(1, "plan of "+commit(4))
		}},
		{"checks", "no check runs are written", func(w *world) {
			w.wantStatus(commit(4), contextValidate, "success: valid")
			w.wantComment(1, "plan of "+commit(4))
		}},
	}
	for _, c := range cases {
		t.Run(c.missing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				may := githubtest.AllPermissions()
				delete(may, c.missing)
				s := w.start(w.asApp(may))
				for n := 2; n < 5; n++ {
					w.open(1, commit(n))
					w.event(s, 1, commit(n))
					s.Swept(FleetState{Commit: commit(n), State: Success, Words: "all well"})
					time.Sleep(3 * time.Hour)
				}
				c.want(w)
				if n := strings.Count(w.logs.String(), c.says); n != 1 || strings.Count(w.logs.String(), "WARN") != 1 {
					t.Errorf("it is not said once:\n%s", w.logs.String())
				}
				// The right is given: it works again by itself.
				w.server.AddApp(t, 12, 34, "fleet-app", nil, 0)
				time.Sleep(2 * time.Hour)
				w.wantStatus(commit(4), contextValidate, "success: valid") // a merge may wait for it
				w.open(1, commit(9))
				w.event(s, 1, commit(9))
				time.Sleep(time.Minute)
				w.wantStatus(commit(9), contextValidate, "success: valid")
				if len(w.server.Checks(commit(9))) != 1 {
					t.Error("there is no check run")
				}
			})
		})
	}
}

func TestB115_ReadOnlyComments(t *testing.T) {
	for name, pull := range map[string]githubtest.Pull{
		"fork":   {Number: 1, Base: "main", Head: commit(2), Fork: "mallory", ReadOnlyComments: true},
		"locked": {Number: 1, Base: "main", Head: commit(2), Locked: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.server.SetPull(pull)
				w.start()
				time.Sleep(10 * time.Minute)
				w.wantStatus(commit(2), contextValidate, "success: valid")
				if n := strings.Count(w.logs.String(), "WARN"); n != 1 || len(w.server.Comments(1)) != 0 {
					t.Errorf("%d warnings:\n%s", n, w.logs.String())
				}
				if looks := w.looked(); len(looks) != 1 || looks[0].Fork != (name == "fork") {
					t.Errorf("the looks: %+v", looks)
				}
				// A conversation that is locked does not silence the others.
				w.open(2, commit(3))
				time.Sleep(10 * time.Minute)
				if name == "locked" {
					w.wantComment(2, "plan of")
				}
			})
		})
	}
}

func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		app := w.asApp(nil)
		good, err := os.ReadFile(w.dir + "/key.pem")
		if err != nil {
			t.Fatal(err)
		}
		s := w.start(app)
		block, _ := pem.Decode(good)
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		other, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		says := map[string]string{
			"":        "is empty",
			"not PEM": "no private key in PEM",
			"-----BEGIN RSA PRIVATE KEY-----\nU2VjcmV0\n-----END RSA PRIVATE KEY-----\n":                               "no RSA private key that can be read",
			string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(other)})): "could not be decoded",
			string(bytes.Repeat([]byte("x"), maxSecretFile+1)):                                                         "has more than",
		}
		n := 2
		for text, want := range says {
			w.write("key.pem", text)
			w.server.Revoke("") // so that it is needed
			n++
			w.open(1, commit(n))
			w.event(s, 1, commit(n))
			time.Sleep(10 * time.Minute)
			if !strings.Contains(w.logs.String(), want) {
				t.Errorf("a bad key is not said as %q:\n%s", want, w.logs.String())
			}
		}
		for _, text := range [][]byte{good, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
			w.write("key.pem", string(text))
			w.server.Revoke("")
			n++
			w.open(1, commit(n))
			w.event(s, 1, commit(n))
			time.Sleep(20 * time.Minute)
			w.wantComment(1, "plan of "+commit(n))
		}
	})
}

func TestTokensStayAtTheAPI(t *testing.T) {
	for _, to := range []string{"https://evil.example/x", "http://api.github.com/x"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.open(1, commit(2))
			elsewhere := 0
			w.server.Fault(func(r githubtest.Request) *githubtest.Answer {
				return &githubtest.Answer{Status: 301, Header: map[string]string{"Location": to}, Body: "{}"}
			})
			w.start(func(c *Config) {
				next := c.Transport
				c.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.URL.Host != "api.github.com" || r.URL.Scheme != "https" {
						elsewhere++
					}
					return next.RoundTrip(r)
				})
			})
			time.Sleep(time.Hour)
			if elsewhere != 0 || !strings.Contains(w.logs.String(), "another host") {
				t.Errorf("%d requests went elsewhere:\n%s", elsewhere, w.logs.String())
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that repeats what it was sent, in an error, gets nothing said.
func TestB124_RepeatedSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open(1, commit(2))
		var status atomic.Int64
		app := w.asApp(nil)
		s := w.start(app, func(c *Config) {
			next := c.Transport
			c.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				w.server.Fault(func(githubtest.Request) *githubtest.Answer {
					if strings.HasSuffix(r.URL.Path, "/access_tokens") && status.Load() != 401 {
						return nil
					}
					token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
					return &githubtest.Answer{Status: int(status.Load()), Header: map[string]string{"X-Accepted-GitHub-Permissions": "none"},
						Body: fmt.Sprintf(`{"message": "you sent %s", "errors": [{"field": %q}]}`, token, token)}
				})
				return next.RoundTrip(r)
			})
		})
		for _, n := range []int64{400, 401, 403, 404, 409, 422, 429, 500} {
			status.Store(n)
			w.event(s, 1, commit(2))
			time.Sleep(2 * time.Hour)
		}
		said := w.logs.String()
		if !strings.Contains(said, "you sent ***") || strings.Contains(said, "eyJ") || strings.Contains(said, "ghs_") {
			t.Errorf("the log:\n%s", said)
		}
	})
}

func TestConfigurations(t *testing.T) {
	w := newWorld(t)
	for name, edit := range map[string]func(*Config){
		"both":          func(c *Config) { c.AppID = 1 },
		"neither":       func(c *Config) { c.TokenFile = "" },
		"no key":        func(c *Config) { c.TokenFile, c.AppID = "", 1 },
		"repository":    func(c *Config) { c.Repository = "fleet" },
		"dots":          func(c *Config) { c.Repository = "acme/.." },
		"query":         func(c *Config) { c.Repository = "acme/fleet?x=y" },
		"clear text":    func(c *Config) { c.URL = "http://api.github.com" },
		"password":      func(c *Config) { c.URL = "https://u:Secret@api.github.com" },
		"no URL":        func(c *Config) { c.URL = "://Secret" },
		"no branch":     func(c *Config) { c.Branch = "" },
		"nobody looks":  func(c *Config) { c.Look = nil },
		"other schemes": func(c *Config) { c.URL = "ftp://api.github.com" },
	} {
		cfg := w.config()
		edit(&cfg)
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "Secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range [][3]string{
		{"https://github.com/acme/fleet.git", "", "acme/fleet"},
		{"https://x:y@github.com/acme/fleet", "", "acme/fleet"},
		{"git@github.com:acme/fleet.git", "", "acme/fleet"},
		{"ssh://git@github.com:22/acme/fleet.git", "", "acme/fleet"},
		{"https://ghe.example/acme/fleet.git", "https://ghe.example/api/v3", "acme/fleet"},
		{"https://ghe.example/acme/fleet.git", "", ""},
		{"https://acme.ghe.com/acme/fleet.git", "https://api.acme.ghe.com", "acme/fleet"},
		{"/srv/git/fleet.git", "", ""},
		{"https://github.com/acme/fleet/extra", "", ""},
		{"https://notgithub.com/acme/fleet", "", ""},
	} {
		if got := RepositoryOf(c[0], c[1]); got != c[2] {
			t.Errorf("the repository of %s at %s is %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
