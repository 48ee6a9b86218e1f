package repo

import (
	"crypto/sha1"
	"encoding/hex"
	"hash"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/pjbgf/sha1cd"
)

// oid is an object's name, in binary.
type oid = plumbing.Hash

var zero oid

// parseOID reads 40 hex digits.
func parseOID(s string) (oid, error) {
	var h oid
	if len(s) == 64 {
		return h, fail(kindRefused, "%s… is a sha256 object", sanitize(s[:12], 12)).
			hint("repositories with sha256 objects are not supported; use one with sha1")
	}
	if len(s) != 40 {
		return h, fail(kindCorrupt, "%q is no object name", sanitize(s, 50))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return h, fail(kindCorrupt, "%q is no object name", sanitize(s, 50))
	}
	return h, nil
}

// optionalOID is parseOID where "" stands for no object.
func optionalOID(s string) (oid, error) {
	if s == "" {
		return zero, nil
	}
	return parseOID(s)
}

// optional is "" for no object.
func optional(h oid) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

// kind of object, numbered as in packs.
type objectType byte

const (
	typeCommit objectType = 1
	typeTree   objectType = 2
	typeBlob   objectType = 3
	typeTag    objectType = 4

	typeOfsDelta objectType = 6
	typeRefDelta objectType = 7
)

func (t objectType) String() string {
	switch t {
	case typeCommit:
		return "commit"
	case typeTree:
		return "tree"
	case typeBlob:
		return "blob"
	case typeTag:
		return "tag"
	}
	return "object of type " + strconv.Itoa(int(t))
}

// hashObject names what this program makes itself.
func hashObject(t objectType, data []byte) oid {
	return sumObject(sha1.New(), t, data)
}

// hashForeign names what came from elsewhere. It sees the known ways to make
// two objects of one name, which would let a server change content after it
// was read.
func hashForeign(t objectType, data []byte) oid {
	return sumObject(sha1cd.New(), t, data)
}

func sumObject(h hash.Hash, t objectType, data []byte) (id oid) {
	startObject(h, t, int64(len(data)))
	h.Write(data)
	h.Sum(id[:0])
	return id
}

func startObject(h hash.Hash, t objectType, size int64) {
	h.Write([]byte(t.String() + " " + strconv.FormatInt(size, 10) + "\x00"))
}
