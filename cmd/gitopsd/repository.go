package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// credentialsOf turns the configured names of files into those of package
// repo; the two structs have the same fields.
func credentialsOf(r schema.RepoConfig) repo.Credentials {
	if r.Credentials == nil {
		return repo.Credentials{}
	}
	return repo.Credentials(*r.Credentials)
}

// reportsOf is the repository for reports; own is false where that is the
// fleet repository itself. Without credentials of its own it is given the
// fleet repository's, but only on the same host: they must not wander.
func reportsOf(fleet schema.RepoConfig, reports schema.ReportsConfig) (r schema.RepoConfig, own bool) {
	if reports.Repo == nil || reports.Repo.URL == "" || reports.Repo.URL == fleet.URL {
		return fleet, false
	}
	r = *reports.Repo
	if r.Credentials == nil && sameHost(r.URL, fleet.URL) {
		r.Credentials = fleet.Credentials
	}
	return r, true
}

func sameHost(a, b string) bool {
	x, errA := url.Parse(a)
	y, errB := url.Parse(b)
	return errA == nil && errB == nil && x.Host != "" && x.Scheme == y.Scheme && x.Host == y.Host
}

// repoHint says what to do about an error of a repository by its kind, where
// the error does not say it itself.
func repoHint(err error, where string) error {
	var e *repo.Error
	if !errors.As(err, &e) || e.Hint != "" {
		return err
	}
	switch e.Kind() {
	case "auth":
		return withHint(err, "check the credentials: --password-file, --token-file or --ssh-key-file, or credentials in the configuration file")
	case "not-found":
		return withHint(err, "check --repo and the branch; git ls-remote %s shows what is there", shellWord(redact(where)))
	case "network":
		return withHint(err, "check the address and the network; git ls-remote %s tries the same", shellWord(redact(where)))
	case "timeout":
		return withHint(err, "the server did not answer in time; --timeout allows more")
	}
	return err
}

// isWorkTree says whether a folder is a clone that people work in.
func isWorkTree(path string) bool {
	_, err := os.Stat(filepath.Join(path, ".git"))
	return path != "" && err == nil
}

// isBare says whether a folder is a git repository without a working tree.
func isBare(path string) bool {
	head, err := os.Stat(filepath.Join(path, "HEAD"))
	return err == nil && head.Mode().IsRegular() && isFolder(filepath.Join(path, "objects")) && isFolder(filepath.Join(path, "refs"))
}

// openError is for a repository that cannot be opened: package repo names
// operation and repository too, which would only say it twice.
func openError(what, where string, err error) error {
	var e *repo.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("cannot open %s %s: %w", what, redact(where), err)
	}
	opened := fmt.Errorf("cannot open %s %s: %w", what, redact(where), e.Err)
	if e.Hint != "" {
		return withHint(opened, "%s", e.Hint)
	}
	return opened
}

// readerOptions find the repository for commands that only look.
type readerOptions struct {
	*serveOptions
}

// bindReader takes the flags of the daemon that say where things are, and the
// daemon's configuration file: on its host the commands need no flag.
func bindReader(cmd *cobra.Command) *readerOptions {
	o := &readerOptions{newServeOptions()}
	idle := map[string]bool{
		"interval": true, "state": true, "author-name": true, "author-email": true, "device-refs": true, "log-format": true, "log-level": true,
	}
	var list []setting[schema.ServeSpec]
	for _, s := range o.settings.list {
		if idle[s.flag] || s.group == endpointFlags || s.group == githubFlags {
			continue
		}
		if s.group == "" && s.flag != "repo" {
			s.group = connectionFlags
		}
		list = append(list, s)
	}
	o.settings.list = list
	o.settings.bind(cmd)
	cmd.Flags().Var((*nonEmpty)(&o.config), flagConfig, "configuration `file` of gitopsd serve (default "+defaultServeConfig+" if it exists)")
	under(cmd.Flags().Lookup(flagConfig), connectionFlags)
	return o
}

// look is how text should look, with the flags that a suggested command needs
// to look at the same fleet.
func (o *readerOptions) look(cmd *cobra.Command, a *app) view.Look {
	look := a.look()
	var again []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if o.settings.values[f.Name] != nil || f.Name == flagConfig {
			again = append(again, "--"+f.Name, shellWord(f.Value.String()))
		}
	})
	look.Again = strings.Join(again, " ")
	return look
}

// shellWord writes a word so that a shell takes it as it is.
func shellWord(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@+,=%", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// reader is an open repository for commands that only look.
type reader struct {
	spec    schema.ServeSpec
	fleet   *repo.Repo
	reports *repo.Repo // may be fleet
	cleanup []func() error
}

// open opens the repositories; what has to be fetched goes into a temporary
// folder that close removes.
func (o *readerOptions) open(cmd *cobra.Command, a *app) (*reader, error) {
	spec, err := o.named(cmd, a)
	if err != nil {
		return nil, err
	}
	return openReader(spec)
}

// named is the configuration of a command that needs a repository.
func (o *readerOptions) named(cmd *cobra.Command, a *app) (schema.ServeSpec, error) {
	spec, _, _, err := o.resolve(cmd, a.env)
	if err == nil {
		err = needRepo(spec.Repo.URL)
	}
	return spec, err
}

func openReader(spec schema.ServeSpec) (*reader, error) {
	store, err := os.MkdirTemp("", "gitopsd-read-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	r := &reader{spec: spec, cleanup: []func() error{func() error { return os.RemoveAll(store) }}}
	timeout := spec.Timeout.D(defaultTimeout)
	r.fleet, err = r.openRepo(spec.Repo, filepath.Join(store, "fleet.git"), timeout)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.reports = r.fleet
	if where, own := reportsOf(spec.Repo, spec.Reports); own {
		r.reports, err = r.openRepo(where, filepath.Join(store, "reports.git"), timeout)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

func (r *reader) openRepo(where schema.RepoConfig, store string, timeout time.Duration) (*repo.Repo, error) {
	one, err := repo.Open(repo.Config{
		URL: where.URL, Credentials: credentialsOf(where), Store: store, Timeout: timeout, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, openError("the repository", where.URL, err)
	}
	r.cleanup = append(r.cleanup, one.Close)
	return one, nil
}

func (r *reader) branch() string { return or(r.spec.Branch, schema.DefaultBranch) }

func (r *reader) statusBranch() string { return or(r.spec.StatusBranch, schema.DefaultStatusBranch) }

// close gives back what open took, last first.
func (r *reader) close() error {
	var err error
	for i := len(r.cleanup) - 1; i >= 0; i-- {
		err = errors.Join(err, r.cleanup[i]())
	}
	return err
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
