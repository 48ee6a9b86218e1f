package repo

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// dial connects and authenticates; hangUp closes all of it and must be called.
func (s *sshRemote) dial(ctx context.Context) (client *ssh.Client, hangUp func(), err error) {
	address := s.address()
	files, err := s.creds.knownHosts()
	if err != nil {
		return nil, nil, err
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, nil, fail(kindHostKey, "known hosts cannot be read: %w", err).hint("correct %s", strings.Join(files, ", "))
	}
	methods, release, err := s.creds.sshMethods(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	var hostKey *Error
	verify := db.HostKeyCallback()
	cfg := &ssh.ClientConfig{
		User:              s.creds.user(s.at),
		Auth:              methods,
		HostKeyAlgorithms: db.HostKeyAlgorithms(address),
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			if err := verify(host, addr, key); err != nil {
				hostKey = hostKeyError(err, address, key, files)
				return hostKey
			}
			return nil
		},
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, timedOut(ctx, fail(kindOf(err), "%w", err))
	}
	// The handshake and everything after it know no context: closing the
	// connection is what ends them.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	hang := func() {
		stop()
		conn.Close()
	}
	c, chans, reqs, err := ssh.NewClientConn(conn, address, cfg)
	if err != nil {
		hang()
		switch {
		case hostKey != nil:
			return nil, nil, hostKey
		case ctx.Err() != nil:
			return nil, nil, timedOut(ctx, err)
		case strings.Contains(err.Error(), "unable to authenticate"):
			return nil, nil, fail(kindAuth, "the server %s %w of the user %s", address, errKeyRefused, sanitize(cfg.User, 50)).
				hint("add the public key there, or name another sshKeyFile")
		case strings.Contains(err.Error(), "no common algorithm for host key"):
			return nil, nil, fail(kindHostKey, "the server %s has no host key of the kinds that are known of it", address).
				hint("compare its keys with %s and add the right one", strings.Join(files, ", "))
		}
		return nil, nil, fail(kindNetwork, "ssh to %s: %w", address, err)
	}
	client = ssh.NewClient(c, chans, reqs)
	return client, func() { client.Close(); hang() }, nil
}

// hostKeyError says which server shows what, and where to correct it.
func hostKeyError(err error, address string, key ssh.PublicKey, files []string) *Error {
	where := strings.Join(files, ", ")
	if where == "" {
		where = "known_hosts"
	}
	shown := fmt.Sprintf("%s %s", key.Type(), ssh.FingerprintSHA256(key))
	switch {
	case knownhosts.IsHostKeyChanged(err):
		return fail(kindHostKey, "the host key of %s has changed: it shows %s", address, shown).
			hint("if the server really has a new key, replace its line in %s; otherwise somebody stands in between", where)
	case knownhosts.IsHostUnknown(err):
		return fail(kindHostKey, "the host key of %s is not known: it shows %s", address, shown).
			hint("compare the fingerprint and add it: ssh-keyscan %s >> %s", scanArguments(address), where)
	}
	return fail(kindHostKey, "the host key of %s (%s) is not accepted: %w", address, shown, err).hint("see %s", where)
}

func scanArguments(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == sshPort {
		return host
	}
	return "-p " + port + " " + host
}

// knownHosts gives the files that exist; a named one has to.
func (c Credentials) knownHosts() ([]string, error) {
	if c.KnownHostsFile != "" {
		if _, err := readSecret(c.KnownHostsFile, "known hosts"); err != nil {
			return nil, err
		}
		return []string{c.KnownHostsFile}, nil
	}
	var candidates []string
	if home, err := os.UserHomeDir(); err == nil {
		candidates = append(candidates, filepath.Join(home, ".ssh", "known_hosts"))
	}
	candidates = append(candidates, "/etc/ssh/ssh_known_hosts")
	var files []string
	for _, f := range candidates {
		if _, err := os.Stat(f); err == nil {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, fail(kindHostKey, "no known_hosts file is there").
			hint("compare the server's key and write it to %s, or set knownHostsFile", candidates[0])
	}
	return files, nil
}

// sshMethods gives the ways to authenticate: the key file, else the agent.
func (c Credentials) sshMethods(ctx context.Context) ([]ssh.AuthMethod, func(), error) {
	nothing := func() {}
	if c.SSHKeyFile != "" {
		pem, err := readSecret(c.SSHKeyFile, "ssh key")
		if err != nil {
			return nil, nil, err
		}
		var signer ssh.Signer
		if c.SSHKeyPassphraseFile != "" {
			phrase, perr := readSecretLine(c.SSHKeyPassphraseFile, "passphrase of the ssh key")
			if perr != nil {
				return nil, nil, perr
			}
			signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(phrase))
		} else {
			signer, err = ssh.ParsePrivateKey(pem)
		}
		var missing *ssh.PassphraseMissingError
		if errors.As(err, &missing) {
			return nil, nil, fail(kindAuth, "the ssh key %s needs a passphrase", c.SSHKeyFile).hint("set sshKeyPassphraseFile")
		}
		if errors.Is(err, x509.IncorrectPasswordError) {
			return nil, nil, fail(kindAuth, "the ssh key %s does not open with the passphrase that is given", c.SSHKeyFile).hint("correct %s", c.SSHKeyPassphraseFile)
		}
		if err != nil {
			return nil, nil, fail(kindAuth, "the ssh key %s cannot be read: %w", c.SSHKeyFile, err).hint("it has to be a private key as ssh-keygen writes one")
		}
		return []ssh.AuthMethod{ssh.PublicKeys(signer)}, nothing, nil
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, nil, fail(kindAuth, "there is no ssh key").hint("set sshKeyFile, or run an ssh agent (SSH_AUTH_SOCK)")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil, fail(kindAuth, "the ssh agent does not answer: %w", err).hint("set sshKeyFile, or start the agent")
	}
	// An agent may wait for a person: it, too, has only until the deadline.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	release := func() { stop(); conn.Close() }
	return []ssh.AuthMethod{ssh.PublicKeysCallback(agent.NewClient(conn).Signers)}, release, nil
}
