package seal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
)

// NewIdentity makes a key of age: the identity, which opens secrets and stays on
// its device, and the recipient, which they are encrypted for.
func NewIdentity() (identity, recipient string, err error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return "", "", err
	}
	return key.String(), key.Recipient().String(), nil
}

// Recipients reads public keys of age (age1…) and of SSH (ssh-ed25519, ssh-rsa),
// one in each line; empty lines and those that begin with # say nothing. No
// error repeats any of them: one may be a private key.
func Recipients(text string) ([]age.Recipient, error) {
	var all []age.Recipient
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		one, err := recipient(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no key")
	}
	return all, nil
}

func recipient(line string) (age.Recipient, error) {
	switch {
	case strings.HasPrefix(line, "age1"):
		found, err := age.ParseRecipients(strings.NewReader(line))
		if err != nil {
			return nil, errors.New("this is no public key of age: a letter is wrong, or some are missing")
		}
		return found[0], nil
	case strings.HasPrefix(line, "ssh-"):
		found, err := agessh.ParseRecipient(line)
		if err != nil {
			return nil, errors.New("this is no public key of SSH that can be encrypted for: ssh-ed25519, or ssh-rsa of 2048 bits at least")
		}
		return found, nil
	case strings.HasPrefix(line, "AGE-SECRET-KEY-"), strings.Contains(line, "PRIVATE KEY"):
		return nil, errors.New("this is a private key: the public one is wanted, which begins with age1 or ssh-")
	}
	if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], "ssh-") {
		return nil, errors.New("this is a line of ssh-keyscan: take the host's name off, so that it begins with ssh-")
	}
	return nil, errors.New("this is no public key: one begins with age1, ssh-ed25519 or ssh-rsa")
}

// Encrypt gives an age file in its text form, for all who have the key of one of
// the recipients.
func Encrypt(content []byte, to ...age.Recipient) (string, error) {
	var text bytes.Buffer
	armored := armor.NewWriter(&text)
	sealed, err := age.Encrypt(armored, to...)
	if err != nil {
		return "", err
	}
	if _, err := sealed.Write(content); err != nil {
		return "", err
	}
	if err := errors.Join(sealed.Close(), armored.Close()); err != nil {
		return "", err
	}
	return text.String(), nil
}
