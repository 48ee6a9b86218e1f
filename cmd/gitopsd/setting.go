package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/schema"
)

// setting is one value of a long-running command. It has one name in three
// spellings: the flag --status-branch, the variable GITOPSD_STATUS_BRANCH and
// the field spec.statusBranch of the configuration file.
type setting[S any] struct {
	flag  string // "" = only in the file
	field string
	group string // heading in the help; "" = the flags of every day
	kind  string // what stands for the value in the help
	usage string
	known []string // its words, where it is one of a few
	def   string   // shown where nothing sets it; the consumer applies it
	get   func(*S) string
	set   func(*S, string) error
}

// urlKind is the kind of settings that say where a repository is.
const urlKind = "url"

// Sources of a value, as config show writes them.
const (
	fromFlag    = "flag"
	fromEnv     = "environment"
	fromFile    = "file"
	fromDefault = "default"
)

// resolved is one effective value and where it comes from.
type resolved struct {
	Name   string `json:"name"`   // field of the file, without spec
	Value  string `json:"value"`  // secrets are never values, only names of files
	Source string `json:"source"` // flag, environment, file or default
	Origin string `json:"origin"` // the flag, the variable or the file; "" for a default
}

// settings are those of one command.
type settings[S any] struct {
	list   []setting[S]
	values map[string]*value // by flag
}

// value is what a flag was given, as it was written.
type value struct{ text, kind string }

// String is the value as written.
func (v *value) String() string { return v.text }

// Set keeps the value; the setting judges it, wherever it comes from.
func (v *value) Set(s string) error {
	if s == "" {
		return errEmpty
	}
	v.text = s
	return nil
}

// Type is what the help shows in place of the value.
func (v *value) Type() string { return v.kind }

// bind defines the flags. Their defaults are empty: an absent flag must not
// hide what the environment or the file says.
func (s *settings[S]) bind(cmd *cobra.Command) {
	s.values = map[string]*value{}
	for _, one := range s.list {
		if one.flag == "" {
			continue
		}
		usage := one.usage
		if one.def != "" {
			usage += " (default " + one.def + ")"
		}
		s.values[one.flag] = &value{kind: one.kind}
		cmd.Flags().Var(s.values[one.flag], one.flag, usage)
		under(cmd.Flags().Lookup(one.flag), one.group)
		completeFlag(cmd, one.flag, one.kind, one.known)
	}
}

// variable is the environment's spelling of a flag.
func variable(flag string) string {
	return "GITOPSD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// resolve lays flags over environment over file, in place: spec holds the
// file's values before and the effective ones afterwards. from is the file that
// a field stands in.
func (s *settings[S]) resolve(cmd *cobra.Command, env environment, from func(field string) string, spec *S) ([]resolved, error) {
	var out []resolved
	for _, one := range s.list {
		r := resolved{Name: one.field, Source: fromDefault}
		if one.get(spec) != "" {
			r.Source, r.Origin = fromFile, from(one.field)
		}
		if one.flag != "" {
			value, source, origin := "", "", ""
			if v := env[variable(one.flag)]; v != "" {
				value, source, origin = v, fromEnv, variable(one.flag)
			}
			if f := cmd.Flags().Lookup(one.flag); f != nil && f.Changed {
				value, source, origin = s.values[one.flag].text, fromFlag, "--"+one.flag
				if one.secret(value) {
					return nil, withHint(usagef("%s carries a credential, which every user of this machine could read in the list of processes", origin),
						"put it into a file and name that with --password-file or --token-file")
				}
			}
			if source != "" {
				if err := one.set(spec, value); err != nil {
					return nil, usagef("%s %s: %w", source, origin, err)
				}
				r.Source, r.Origin = source, origin
			}
		}
		r.Value = one.shown(one.get(spec))
		if r.Value == "" {
			r.Value = one.def
		}
		out = append(out, r)
	}
	return out, nil
}

// shown is a value without its credentials.
func (s setting[S]) shown(value string) string {
	if s.kind == urlKind {
		return redact(value)
	}
	return redactText(value)
}

// secret says whether a value carries a credential.
func (s setting[S]) secret(value string) bool {
	if s.kind == urlKind {
		return hasPassword(value)
	}
	return strings.Contains(value, "://") && hasPassword(value)
}

// text is a setting that is a string.
func text[S any](flag, kind, field, def, usage string, at func(*S) *string) setting[S] {
	return setting[S]{
		flag: flag, kind: kind, field: field, def: def, usage: usage,
		get: func(s *S) string { return *at(s) },
		set: func(s *S, v string) error { *at(s) = v; return nil },
	}
}

// word is a text that is one of a few words.
func word[S any](flag, field, usage string, known []string, at func(*S) *string) setting[S] {
	one := text(flag, "word", field, known[0], usage+": "+strings.Join(known, ", "), at)
	one.known = known
	one.set = func(s *S, v string) error {
		for _, k := range known {
			if v == k {
				*at(s) = v
				return nil
			}
		}
		return fmt.Errorf("%q is none of %s", v, strings.Join(known, ", "))
	}
	return one
}

// duration is a setting that is a length of time.
func duration[S any](flag, field string, def time.Duration, usage string, at func(*S) **schema.Duration) setting[S] {
	return setting[S]{
		flag: flag, kind: "duration", field: field, def: schema.Duration(def).String(), usage: usage,
		get: func(s *S) string {
			if d := *at(s); d != nil {
				return d.String()
			}
			return ""
		},
		set: func(s *S, v string) error {
			d, err := time.ParseDuration(v)
			if _, isNumber := strconv.ParseFloat(v, 64); isNumber == nil && err != nil {
				return withHint(fmt.Errorf("%q has no unit", v), "write %ss for seconds, %sm for minutes", v, v)
			}
			switch {
			case err != nil:
				return withHint(fmt.Errorf("%q is no length of time", v), "write it like 30s or 1m30s")
			case d <= 0:
				return withHint(fmt.Errorf("%q is not more than zero", v), "leave it away for the default, %s", schema.Duration(def))
			}
			value := schema.Duration(d)
			*at(s) = &value
			return nil
		},
	}
}

// argv is a program with its arguments; it stands in the file only, because a
// flag could not say where one argument ends.
func argv[S any](field string, at func(*S) []string) setting[S] {
	return setting[S]{
		field: field,
		get:   func(s *S) string { return strings.Join(at(s), " ") },
	}
}

// credentials are the settings of one repository's credentials: names of
// files, never a secret itself.
func credentials[S any](prefix, field string, at func(*S) *schema.Credentials) []setting[S] {
	one := func(flag, name, usage string, of func(*schema.Credentials) *string) setting[S] {
		kind := "file"
		if name == "username" {
			kind = "name"
		}
		made := text(prefix+flag, kind, field+"."+name, "", usage, func(s *S) *string { return of(at(s)) })
		made.group = credentialFlags
		if prefix != "" {
			made.group = reportsFlags
		}
		return made
	}
	return []setting[S]{
		one("username", "username", "user name for basic authentication and ssh", func(c *schema.Credentials) *string { return &c.Username }),
		one("password-file", "passwordFile", "file with a password or an access token", func(c *schema.Credentials) *string { return &c.PasswordFile }),
		one("token-file", "tokenFile", "file with a bearer token", func(c *schema.Credentials) *string { return &c.TokenFile }),
		one("ssh-key-file", "sshKeyFile", "file with a private key; without it the ssh agent is asked", func(c *schema.Credentials) *string { return &c.SSHKeyFile }),
		one("ssh-key-passphrase-file", "sshKeyPassphraseFile", "file with the passphrase of the private key", func(c *schema.Credentials) *string { return &c.SSHKeyPassphraseFile }),
		one("known-hosts-file", "knownHostsFile", "file with the known host keys", func(c *schema.Credentials) *string { return &c.KnownHostsFile }),
		one("ca-file", "caFile", "file with certificates to trust beside the system's", func(c *schema.Credentials) *string { return &c.CAFile }),
		one("client-cert-file", "clientCertFile", "file with the client's certificate", func(c *schema.Credentials) *string { return &c.ClientCertFile }),
		one("client-key-file", "clientKeyFile", "file with the client's key", func(c *schema.Credentials) *string { return &c.ClientKeyFile }),
	}
}

// repoCredentials makes room for credentials; noCredentials takes an empty
// room away again, so that none stays none.
func repoCredentials(r *schema.RepoConfig) *schema.Credentials {
	if r.Credentials == nil {
		r.Credentials = &schema.Credentials{}
	}
	return r.Credentials
}

func noCredentials(r *schema.RepoConfig) {
	if r.Credentials != nil && *r.Credentials == (schema.Credentials{}) {
		r.Credentials = nil
	}
}
