package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/repo"
)

// author is who commits: what the flags say, else the variables that git
// reads, else git config. Like git it guesses nothing: a stop without a name
// is one that nobody can ask about.
func (a *app) author(ctx context.Context, name, address string) (repo.Author, error) {
	who := repo.Author{
		Name:  strings.TrimSpace(or(name, or(a.env["GIT_AUTHOR_NAME"], a.gitConfig(ctx, "user.name")))),
		Email: strings.TrimSpace(or(address, or(a.env["GIT_AUTHOR_EMAIL"], a.gitConfig(ctx, "user.email")))),
	}
	for _, part := range []struct{ what, value string }{{"name", who.Name}, {"address", who.Email}} {
		switch {
		case part.value == "":
			return repo.Author{}, withHint(fmt.Errorf("cannot commit: nobody knows your %s", part.what),
				"git config --global user.name \"You\" and user.email you@example.com; or --author-name and --author-email")
		case strings.ContainsAny(part.value, "<>\n\x00"):
			return repo.Author{}, usagef("%q is no %s that git can store", part.value, part.what)
		}
	}
	return who, nil
}

// gitConfigLimit is what the git program may take to read its configuration.
const gitConfigLimit = 10 * time.Second

// gitConfig asks the git program, if there is one, for a setting of the folder
// here or of the user; "" = it has none.
func (a *app) gitConfig(ctx context.Context, key string) string {
	git, err := exec.LookPath("git")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, gitConfigLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, "config", "--get", key)
	for name, value := range a.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	slices.Sort(cmd.Env)
	out, err := cmd.Output()
	if err != nil {
		return "" // not set, most often
	}
	return strings.TrimSpace(string(out))
}
