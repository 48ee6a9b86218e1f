package repo

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
)

// Credentials name files, never secrets.
type Credentials struct {
	Username             string // for basic authentication and ssh; "" = the URL's, else "git"
	PasswordFile         string // password or personal access token (basic)
	TokenFile            string // bearer token
	SSHKeyFile           string // "" = the ssh agent
	SSHKeyPassphraseFile string
	KnownHostsFile       string // "" = ~/.ssh/known_hosts, /etc/ssh/ssh_known_hosts
	CAFile               string // PEM, beside the system's
	ClientCertFile       string
	ClientKeyFile        string
}

// maxCredentialFile bounds what is read of a credentials file, in bytes: a
// bundle of certificate authorities is the largest that makes sense.
const maxCredentialFile = 4 << 20

// readSecret reads a credentials file; its error names the file, never what
// it holds.
func readSecret(path, what string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fail(kindAuth, "%s: %w", what, err).hint("check the path and that this user may read it")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCredentialFile+1))
	if err != nil {
		return nil, fail(kindAuth, "%s: %w", what, err)
	}
	if len(b) > maxCredentialFile {
		return nil, fail(kindAuth, "%s: %s is larger than %d bytes", what, path, maxCredentialFile)
	}
	return b, nil
}

func readSecretLine(path, what string) (string, error) {
	b, err := readSecret(path, what)
	if err != nil {
		return "", err
	}
	s := strings.TrimRight(string(b), "\r\n")
	if s == "" {
		return "", fail(kindAuth, "%s: %s is empty", what, path)
	}
	if strings.ContainsAny(s, "\r\n\x00") {
		return "", fail(kindAuth, "%s: %s holds more than one line", what, path)
	}
	return s, nil
}

// given tells whether a request would carry something secret.
func (c Credentials) given(e endpoint) bool {
	return c.PasswordFile != "" || c.TokenFile != "" || c.ClientCertFile != "" || e.password != ""
}

// authorize reads the credentials afresh and puts them on the request.
func (c Credentials) authorize(req *http.Request, e endpoint) error {
	switch {
	case c.TokenFile != "":
		token, err := readSecretLine(c.TokenFile, "token")
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	case c.PasswordFile != "":
		password, err := readSecretLine(c.PasswordFile, "password")
		if err != nil {
			return err
		}
		req.SetBasicAuth(c.user(e), password)
	case e.password != "" || e.user != "":
		req.SetBasicAuth(e.user, e.password)
	}
	return nil
}

// credentialsOfSystemd is where a service finds copies of its credentials.
const credentialsOfSystemd = "/run/credentials/"

// kept says of files that are read again in vain why that is.
func (c Credentials) kept() string {
	if strings.HasPrefix(c.PasswordFile, credentialsOfSystemd) || strings.HasPrefix(c.TokenFile, credentialsOfSystemd) {
		return "; it is a copy that systemd made when the service started, so restart that when you have replaced the original"
	}
	return ""
}

func (c Credentials) user(e endpoint) string {
	switch {
	case c.Username != "":
		return c.Username
	case e.user != "":
		return e.user
	}
	return "git"
}

// tlsConfig reads the TLS files and gives the configuration with a sum of
// what they hold, by which a change is seen. It is nil when none is named.
func (c Credentials) tlsConfig() (*tls.Config, [sha256.Size]byte, error) {
	h := sha256.New()
	var sum [sha256.Size]byte
	if c.CAFile == "" && c.ClientCertFile == "" {
		return nil, sum, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := readSecret(c.CAFile, "certificate authorities")
		if err != nil {
			return nil, sum, err
		}
		h.Write(pem)
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, sum, fail(kindAuth, "certificate authorities: %s holds no PEM certificate", c.CAFile)
		}
		cfg.RootCAs = pool
	}
	if c.ClientCertFile != "" {
		cert, err := readSecret(c.ClientCertFile, "client certificate")
		if err != nil {
			return nil, sum, err
		}
		key, err := readSecret(c.ClientKeyFile, "client key")
		if err != nil {
			return nil, sum, err
		}
		h.Write(cert)
		h.Write(key)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, sum, fail(kindAuth, "client certificate %s: %w", c.ClientCertFile, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	h.Sum(sum[:0])
	return cfg, sum, nil
}
