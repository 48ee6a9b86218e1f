package github

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// maxSecretFile bounds a file with a token or a key, in bytes; a key of 16,384
// bits has some 13,000.
const maxSecretFile = 64 << 10

// readSecret reads a file with a secret. Its error names the file, never what
// it holds.
func readSecret(path, what string) (string, error) {
	trouble := func(err error) error {
		return &apiError{op: "read " + what, message: err.Error(), kind: kindCredentials, err: err}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", trouble(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	switch {
	case err != nil:
		return "", trouble(err)
	case len(data) > maxSecretFile:
		return "", trouble(fmt.Errorf("%s has more than %d bytes", path, maxSecretFile))
	case strings.TrimSpace(string(data)) == "":
		return "", trouble(fmt.Errorf("%s is empty", path))
	}
	return string(data), nil
}

// readToken reads a file that holds one token.
func readToken(path string) (string, error) {
	text, err := readSecret(path, "the token of GitHub")
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(text)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		err := fmt.Errorf("%s holds more than one word", path)
		return "", &apiError{op: "read the token of GitHub", message: err.Error(), kind: kindCredentials, err: err}
	}
	return token, nil
}

// keptSecrets is how many of the newest secrets are taken out of texts: an
// answer speaks of the request before it.
const keptSecrets = 8

// secrets knows what must not be repeated.
type secrets struct {
	mu   sync.Mutex
	list []string
}

func (s *secrets) add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.list {
		if known == secret {
			return
		}
	}
	if s.list = append(s.list, secret); len(s.list) > keptSecrets {
		s.list = s.list[1:]
	}
}

// scrub takes the secrets out of a text, plain and in base64.
func (s *secrets) scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range s.list {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			text = strings.ReplaceAll(text, form, "***")
		}
	}
	return text
}
