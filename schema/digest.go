package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
)

const digestPrefix = "sha256:"

// Digest is sha256 over the canonical JSON (RFC 8785) of a spec as assigned.
func Digest(spec map[string]any) (string, error) {
	canonical, err := canonicalJSON(spec)
	if err != nil {
		return "", fmt.Errorf("digest of a spec: %w", err)
	}
	return PayloadDigest(canonical), nil
}

// PayloadDigest is "sha256:<hex>" of the bytes.
func PayloadDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return digestPrefix + hex.EncodeToString(sum[:])
}

func canonicalJSON(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jcs.Transform(plain)
}
