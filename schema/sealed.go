package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// MaxSecret bounds a secret in bytes, encrypted and in its text form: it travels
// within the spec, and some fifty kilobytes are more than any key or password.
const MaxSecret = 64 << 10

// recipientKinds are what an agent can have an identity for: the keys of age and
// of SSH. Programs of their own, which age calls plugins, are not run.
var recipientKinds = []string{"X25519", "mlkem768x25519", "ssh-ed25519", "ssh-rsa"}

// sealedRest is the least that follows the header of an age file, in bytes: a
// nonce, and the tag of an empty content (age-encryption.org/v1).
const sealedRest = 16 + 16

// privateKey is what somebody pastes who takes one half of a key for the other.
var privateKey = regexp.MustCompile(`AGE-SECRET-KEY-|-----BEGIN [A-Z0-9 ]*PRIVATE KEY|AGE-PLUGIN-`)

const (
	plainSecret     = "this is not encrypted: an age file in its text form is wanted"
	plainSecretHint = "gitopsd secret encrypt makes one; what stood here stays in the history of the repository, so change it where it is used, too"
	largeSecretHint = "let the device fetch what is large from elsewhere"
)

var largeSecret = fmt.Sprintf("the secret has more than the %d KiB that one may have", MaxSecret>>10)

// sealedTrouble says what is wrong with the text of a secret, as far as that can
// be told without an identity; "" = nothing. It never repeats any of it, nor
// what age says, which may: what stands there may be the very secret.
func sealedTrouble(text string) (msg, hint string) {
	behind, armored := strings.CutPrefix(strings.TrimSpace(text), armor.Header)
	switch {
	case len(text) > MaxSecret:
		return largeSecret, largeSecretHint
	case privateKey.MatchString(text):
		return "this is a private key, and belongs on one machine alone", "make another one with gitopsd secret key: this one is known to all who read the repository"
	case !armored:
		return plainSecret, plainSecretHint
	case !strings.HasPrefix(strings.TrimLeft(behind, "\r"), "\n"):
		return "the age file has lost its line breaks", "write it as a block: secret: |, and below it each line, indented"
	}
	raw, err := io.ReadAll(armor.NewReader(strings.NewReader(text)))
	if err != nil {
		return "the age file is damaged: it cannot be read from its text form", "copy it whole, with its first and its last line and nothing behind that"
	}
	var kinds *age.NoIdentityMatchError
	if _, err := age.Decrypt(bytes.NewReader(raw), nobody{}); !errors.As(err, &kinds) {
		return "the age file is damaged: its header cannot be read", "encrypt it again"
	}
	header, err := age.ExtractHeader(bytes.NewReader(raw))
	if err != nil || len(raw)-len(header) < sealedRest {
		return "the age file is cut off behind its header", "encrypt it again"
	}
	if slices.Contains(kinds.StanzaTypes, "scrypt") {
		return "the age file is encrypted with a passphrase, which no device has", "encrypt it for the key of each device: gitopsd secret encrypt --to KEY"
	}
	if !slices.ContainsFunc(kinds.StanzaTypes, func(kind string) bool { return slices.Contains(recipientKinds, kind) }) {
		return "the age file is for no kind of key that an agent can have", "encrypt it for keys of age (age1…) or of SSH (ssh-ed25519, ssh-rsa)"
	}
	return "", ""
}

// nobody is an identity that opens nothing.
type nobody struct{}

func (nobody) Unwrap([]*age.Stanza) ([]byte, error) { return nil, age.ErrIncorrectIdentity }

// sealedFindings are those of the secret of one file.
func sealedFindings(file map[string]any, at string) []finding {
	text, ok := file["secret"].(string)
	if !ok {
		return nil
	}
	if file["template"] == true {
		return []finding{{pointer: at + "/template", rule: ruleSealed, msg: "a secret cannot be a template: nobody but the device can read it", hint: "take template away"}}
	}
	if msg, hint := sealedTrouble(text); msg != "" {
		return []finding{{pointer: at + "/secret", rule: ruleSealed, msg: msg, hint: hint}}
	}
	return nil
}

// secretAt is the pointer to the secret of a file, or to a variable of a name,
// and what is below it where something else stands there.
var secretAt = regexp.MustCompile(`(/files/[^/]*/secret|/vars/([^/]*))(/.*)?$`)

// withoutSealed replaces what is said of the form of a secret, which may repeat
// it: a password that is a number has the wrong type, and one that begins with
// an asterisk names an anchor. One problem of each secret is enough.
func withoutSealed(problems []Problem) []Problem {
	said := map[string]bool{}
	kept := problems[:0]
	for _, p := range problems {
		m := secretAt.FindStringSubmatch(p.Pointer)
		isVariable := m != nil && m[2] != ""
		switch {
		case m == nil, isVariable && !SecretLike(m[2], "x"), m[3] == "" && (!formRules[p.Rule] || p.Rule == ruleDuplicate),
			m[3] == "" && isVariable && p.Rule == ruleForm: // of its name
			kept = append(kept, p)
			continue
		case isVariable && p.Rule == ruleSize:
			p.Message, p.Hint = "it is too long for a variable", largeSecretHint
		case isVariable:
			p.Rule, p.Message, p.Hint = ruleType, "a string is wanted", "quote it, or write it as a block: "+m[2]+": |"
		case p.Rule == ruleSize:
			p.Rule, p.Message, p.Hint = ruleSealed, largeSecret, largeSecretHint
		default:
			p.Rule, p.Message, p.Hint = ruleSealed, plainSecret, plainSecretHint
		}
		p.Pointer = strings.TrimSuffix(p.Pointer, m[3])
		if !said[p.Pointer] {
			said[p.Pointer] = true
			kept = append(kept, p)
		}
	}
	return kept
}
