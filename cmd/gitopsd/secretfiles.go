package main

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/gitopsd/gitopsd/schema"
)

// forAllToRead is said of a file with a secret that others can read, with what
// to do about it. It keeps nobody from working: in a container there may be no
// others.
const (
	forAllToRead = "every user of this machine can read a file with a secret"
	makePrivate  = "give the file to the user that needs it, and chmod 600 it; in Kubernetes, defaultMode of the secret"
)

// secretsOf are the files with secrets that credentials name.
func secretsOf(repos ...*schema.RepoConfig) []string {
	var list []string
	for _, r := range repos {
		if r != nil && r.Credentials != nil {
			c := r.Credentials
			list = append(list, c.PasswordFile, c.TokenFile, c.SSHKeyFile, c.SSHKeyPassphraseFile, c.ClientKeyFile)
		}
	}
	return list
}

// serveSecrets are the files with secrets of the daemon.
func serveSecrets(spec schema.ServeSpec) []string {
	return append(secretsOf(&spec.Repo, spec.Reports.Repo), spec.Webhook.SecretFile, spec.GitHub.TokenFile, spec.GitHub.App.PrivateKeyFile)
}

// agentSecrets are the files with secrets of an agent.
func agentSecrets(spec schema.AgentSpec) []string {
	return append(secretsOf(&spec.Repo, spec.Reports.Repo), spec.Secrets.Identities...)
}

// readByAll are those of the files that every user of this machine can read.
func readByAll(files []string) []string {
	files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" || !canAllRead(f) })
	slices.Sort(files)
	return slices.Compact(files)
}

// canAllRead says whether a file, and each folder on the way to it, lets
// everybody in. What cannot be looked at shows when it is used.
func canAllRead(file string) bool {
	real, err := filepath.EvalSymlinks(file)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return false
	}
	const readable, passable = 0o004, 0o001
	lets := func(path string, everybody fs.FileMode) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().Perm()&everybody != 0
	}
	if !lets(real, readable) {
		return false
	}
	for at := filepath.Dir(real); ; at = filepath.Dir(at) {
		if !lets(at, passable) {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

func warnOfReadable(logger *slog.Logger, files []string) {
	for _, f := range readByAll(files) {
		logger.Warn(forAllToRead, "file", f, "remedy", makePrivate)
	}
}
