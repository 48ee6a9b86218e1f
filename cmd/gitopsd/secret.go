package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gitopsd/gitopsd/internal/seal"
	"github.com/gitopsd/gitopsd/schema"
)

// secretKey is the JSON of gitopsd secret key.
type secretKey struct {
	schema.TypeMeta
	File      string `json:"file"`      // with the identity
	Recipient string `json:"recipient"` // what secrets are encrypted for
}

// encryptedSecret is the JSON of gitopsd secret encrypt.
type encryptedSecret struct {
	schema.TypeMeta
	Secret     string `json:"secret"`     // an age file in its text form
	Recipients int    `json:"recipients"` // that it is encrypted for
}

func secretCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "secret",
		Short:   "Encrypt secrets for devices",
		GroupID: groupAuthor,
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(secretKeyCommand(a), secretEncryptCommand(a))
	return cmd
}

func secretKeyCommand(a *app) *cobra.Command {
	format := newOutput("text", "json")
	cmd := &cobra.Command{
		Use:   "key FILE",
		Short: "Make a key that opens secrets",
		Long: `Make a key of age: the private one into FILE, which must not exist, for its
owner alone; the public one is printed. On the device, FILE is what
secrets.identities of the agent's configuration names; the public key is what
secrets are encrypted for, and may be known to everybody. A device that has an
SSH host key needs no other one.`,
		Args: args(1, 1, "FILE"),
		Example: `  gitopsd secret key /etc/gitopsd/identity
  gitopsd secret key gw-1.key > gw-1.pub`,
	}
	format.bind(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		identity, recipient, err := seal.NewIdentity()
		if err != nil {
			return fmt.Errorf("make a key: %w", err)
		}
		if err := writeKey(args[0], "# public key: "+recipient+"\n"+identity+"\n"); err != nil {
			return withHint(fmt.Errorf("cannot write the key: %w", err), "name a file that does not exist: a key that is overwritten opens nothing any more")
		}
		if format.value == "json" {
			return writeJSON(a.out, secretKey{schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "SecretKey"}, args[0], recipient})
		}
		_, err = fmt.Fprintln(a.out, recipient)
		return err
	}
	return cmd
}

// writeKey writes a file that only its owner may read, whole or not at all.
func writeKey(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

func secretEncryptCommand(a *app) *cobra.Command {
	format := newOutput("text", "json")
	var to []string
	cmd := &cobra.Command{
		Use:   "encrypt [FILE] --to KEY",
		Short: "Encrypt a secret for devices",
		Long: fmt.Sprintf(`Encrypt FILE, or standard input, for one or more keys, and print it as the text
that secret of a file in a spec holds. Only who has the private key of one of
them can open it. All of the input is the secret, with the end of its last line.

KEY is a public key (age1…, or ssh-ed25519 and ssh-rsa as .pub files have them),
or a file with one in each line. Once encrypted, a secret has at most %d KiB.
Each call gives another text, also for the same secret, and a device takes
another text for another version.`, schema.MaxSecret>>10),
		DisableFlagsInUseLine: true,
		Args:                  args(0, 1, "[FILE]"),
		Example: `  gitopsd secret encrypt --to gw-1.pub < password
  gitopsd secret encrypt tls.key --to gw-1.pub --to gw-2.pub
  gitopsd secret encrypt token --to "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA…"`,
	}
	format.bind(cmd)
	cmd.Flags().StringArrayVar(&to, "to", nil, "a public `key`, or a file with some; may be given again")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		keys, err := recipientsOf(to)
		if err != nil {
			return err
		}
		var content []byte
		if len(args) == 0 || args[0] == "-" {
			if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
				a.sayln("the secret is read from here, and seen while it is typed; Ctrl-D on a line of its own ends it")
			}
			content, err = readAll(a.in, "standard input", schema.MaxSecret)
		} else {
			content, err = readLimited(args[0], schema.MaxSecret)
		}
		if err != nil {
			return fmt.Errorf("read the secret: %w", err)
		}
		if len(bytes.TrimSpace(content)) == 0 { // a program before a pipe has failed
			return withHint(usagef("the secret is empty"), "look whether what writes it works")
		}
		sealed, err := seal.Encrypt(content, keys...)
		if err != nil {
			return fmt.Errorf("encrypt the secret: %w", err)
		}
		if len(sealed) > schema.MaxSecret {
			return withHint(fmt.Errorf("the encrypted secret has %d bytes, more than the %d that one may have", len(sealed), schema.MaxSecret), "a spec is no place for it; let the device fetch it, with a small secret that lets it in")
		}
		if format.value == "json" {
			return writeJSON(a.out, encryptedSecret{schema.TypeMeta{APIVersion: schema.APIVersion, Kind: "EncryptedSecret"}, sealed, len(keys)})
		}
		_, err = fmt.Fprint(a.out, sealed)
		return err
	}
	return cmd
}

// recipientsOf reads the values of --to.
func recipientsOf(to []string) (all []age.Recipient, err error) {
	if len(to) == 0 {
		return nil, withHint(usagef("the secret is encrypted for nobody: --to is missing"), "name the public key of each device that is to open it")
	}
	for _, text := range to {
		what := "--to"
		if !strings.HasPrefix(text, "age1") && !strings.HasPrefix(text, "ssh-") && !strings.HasPrefix(text, "AGE-SECRET-KEY-") {
			what = text
			data, err := readLimited(text, schema.MaxSecret)
			if err != nil {
				return nil, withHint(usagef("cannot read the keys: %w", err), "--to takes a public key, which begins with age1 or ssh-, or a file with some")
			}
			text = string(data)
		}
		keys, err := seal.Recipients(text)
		if err != nil {
			return nil, usagef("%s: %w", what, err)
		}
		all = append(all, keys...)
	}
	return all, nil
}
