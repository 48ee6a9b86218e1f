package main

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// bindReason takes the reason that a hold, a pause and a stop have.
func bindReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, in a `line` for whoever will ask")
	// The error is for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("reason", offerNothing)
}

// longestReason is what the schema allows, in characters.
const longestReason = 500

// checkReason wants a reason of one line.
func checkReason(cmd *cobra.Command, reason *string) error {
	*reason = strings.TrimSpace(*reason)
	switch {
	case *reason == "":
		return withHint(usagef("--reason is missing"), "say why, for whoever will ask: %s --reason \"disk being replaced\"", typed(cmd))
	case !utf8.ValidString(*reason) || strings.IndexFunc(*reason, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0:
		return usagef("--reason: %q is not one line of text", *reason)
	case utf8.RuneCountInString(*reason) > longestReason:
		return usagef("--reason has %d characters; at most %d are kept", utf8.RuneCountInString(*reason), longestReason)
	}
	return nil
}

// typed is the command line as it was given, as far as it was understood.
func typed(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	for _, arg := range cmd.Flags().Args() {
		words = append(words, shellWord(arg))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "reason":
		case f.NoOptDefVal != "" && f.Value.String() == f.NoOptDefVal:
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, shellWord(redact(f.Value.String())))
		}
	})
	return strings.Join(words, " ")
}
