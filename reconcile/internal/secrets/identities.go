package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"

	"github.com/gitopsd/gitopsd/schema"
)

// ErrNoIdentity says that the device has no key for a secret. It may be given
// one at any time.
var ErrNoIdentity = errors.New("no identity of this device opens it")

// errDamaged is about a secret that no key would open. What age says of it stays
// out: it repeats what it read.
var errDamaged = errors.New("the age file is damaged; encrypt it again")

// maxIdentity bounds a file with identities in bytes: hundreds of them.
const maxIdentity = 64 << 10

// Identities are files with private keys: one with a key of age in each line, or
// one with a key of SSH.
type Identities []string

// Open gives what is in a secret. The error is [ErrNoIdentity], with each file
// and why it is no help, or about the secret itself. An agent that was not
// restarted knows only the files of its start: that is seen by their names.
func (files Identities) Open(sealed string) ([]byte, error) {
	if len(sealed) > schema.MaxSecret {
		return nil, errDamaged
	}
	keys, useless := files.read()
	opened, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), append(keys, nobody{})...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, fmt.Errorf("%w%s", ErrNoIdentity, useless)
	case err != nil:
		return nil, errDamaged
	}
	data, err := io.ReadAll(opened)
	if err != nil {
		return nil, errDamaged
	}
	return data, nil
}

// nobody opens nothing: a secret is looked at where there is no key, too.
type nobody struct{}

func (nobody) Unwrap([]*age.Stanza) ([]byte, error) { return nil, age.ErrIncorrectIdentity }

// read gives the keys that can be read, and why each file is no help if none of
// them opens a secret.
func (files Identities) read() (keys []age.Identity, useless string) {
	if len(files) == 0 {
		return nil, "; secrets.identities named none when the agent started"
	}
	for _, file := range files {
		found, err := readIdentity(file)
		if err != nil {
			useless += "; " + file + ": " + err.Error()
		} else {
			useless += "; " + file + ": it is for another key"
		}
		keys = append(keys, found...)
	}
	return keys, useless
}

// readIdentity reads one file. A pipe would keep the agent waiting.
func readIdentity(file string) ([]age.Identity, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIdentity+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(data) > maxIdentity {
		return nil, errors.New("it is too large for a key")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN")) {
		keys, err := age.ParseIdentities(bytes.NewReader(data))
		if err != nil {
			return nil, errors.New("it holds no identity of age, and no key of SSH")
		}
		return keys, nil
	}
	key, err := agessh.ParseIdentity(data)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, errors.New("the key has a passphrase, which nobody enters here")
	case err != nil:
		return nil, errors.New("it is no key of SSH of the kind ed25519 or rsa")
	}
	return []age.Identity{key}, nil
}

// bare is what the operating system said, without the name of the file.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
