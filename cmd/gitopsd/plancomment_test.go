package main

import (
	"testing"

	"github.com/gitopsd/gitopsd/internal/preview"
)

func TestPlanCommandOfAComment(t *testing.T) {
	base := &preview.Place{Name: "main", Commit: "0123456789abcdef0123456789abcdef01234567"}
	for _, c := range []struct {
		dir, repo string
		head      preview.Place
		base      *preview.Place
		want      string
	}{
		{dir: ".", head: preview.Place{Name: workingTree}, want: "gitopsd plan"},
		{dir: "my fleet", head: preview.Place{Commit: "fedcba9876543210"}, base: base, want: "gitopsd plan 'my fleet' --base 0123456789ab --head fedcba987654"},
		{dir: ".", repo: "https://op:hunter2@git.example/fleet.git?token=hunter2", base: base, want: "gitopsd plan --base 0123456789ab --repo https://git.example/fleet.git"},
		{dir: ".", repo: "git@git.example:fleet.git", base: &preview.Place{Name: "what was assigned"}, want: "gitopsd plan --repo git@git.example:fleet.git"},
	} {
		s := &sides{dir: c.dir}
		s.spec.Repo.URL = c.repo
		if got := s.command(c.head, c.base); got != c.want {
			t.Errorf("the command for %+v is\n%s, want\n%s", c, got, c.want)
		}
	}
}
