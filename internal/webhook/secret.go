package webhook

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
)

const (
	// maxSecrets may be valid at once: a rotation needs two. A file with many
	// lines is a key or a list, and was named by mistake.
	maxSecrets = 4
	// maxSecretFile bounds the file in bytes.
	maxSecretFile = 4 << 10
)

// ReadSecrets reads a file with one secret a line. Line ends are no part of
// it, and a line of nothing but blanks is none.
func ReadSecrets(path string) ([][]byte, error) {
	data, err := readSecretFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the secret of the webhook: %w", err)
	}
	var secrets [][]byte
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) > 0 {
			secrets = append(secrets, line)
		}
	}
	switch {
	case len(secrets) == 0:
		return nil, fmt.Errorf("read the secret of the webhook from %s: there is no secret in it", path)
	case len(secrets) > maxSecrets:
		return nil, fmt.Errorf("read the secret of the webhook from %s: it has more than %d lines, and each would be a secret", path, maxSecrets)
	}
	return secrets, nil
}

func readSecretFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err == nil && len(data) > maxSecretFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxSecretFile)
	}
	return data, err
}

// secrets are those that are valid now.
func (h *Hooks) secrets() ([][]byte, answer) {
	list, err := ReadSecrets(h.cfg.SecretFile)
	if err == nil {
		return list, answer{}
	}
	if n := h.secretless.due(h.cfg.Now()); n > 0 {
		h.log.Error("nobody is believed while there is no secret", keyError, err.Error(), keyCount, n)
	}
	return nil, answer{http.StatusServiceUnavailable, "the daemon has no secret at the moment"}
}
