package github

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/internal/comment"
)

// marked is a comment of one's own.
type marked struct {
	note
	mark comment.Mark
}

// ownComments are the comments of a pull request that this author wrote and
// that carry the mark, the oldest first. Anybody may copy the mark.
func (s *Service) ownComments(ctx context.Context, number int) ([]marked, error) {
	author, err := s.forge.self(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.forge.comments(ctx, number, author)
	if err != nil {
		return nil, err
	}
	var own []marked
	for _, n := range all {
		if mark, found := comment.Find(n.body); found && mark.Name == "" {
			own = append(own, marked{n, mark})
		}
	}
	slices.SortFunc(own, func(a, b marked) int { return cmp.Compare(a.id, b.id) })
	return own, nil
}

// showComment sees to it that there is one comment, and that it says this. Two
// daemons may both find none and write one; the oldest stays, and whoever sees
// more than one removes the others, which harms nobody when both do.
func (s *Service) showComment(ctx context.Context, number int, text string) error {
	if text == "" {
		return nil
	}
	own, err := s.ownComments(ctx, number)
	if err != nil {
		return err
	}
	if len(own) == 0 {
		if _, err := s.forge.addComment(ctx, number, text); err != nil {
			return err
		}
		if own, err = s.ownComments(ctx, number); err != nil {
			return err
		}
		if len(own) == 0 { // a list that lags; the next look sees it
			return nil
		}
	}
	for _, more := range own[1:] {
		if err := s.forge.removeComment(ctx, more.id); err != nil {
			return err
		}
	}
	if sameText(own[0].body, text) {
		return nil
	}
	return s.forge.editComment(ctx, own[0].id, text)
}

// text is the comment with a mark that says what was compared, by the newest
// commit of the branch: that is what the next look asks for.
func (r *Review) text() string {
	_, rest, found := strings.Cut(r.Comment, "\n")
	if !found {
		return ""
	}
	return comment.Mark{Head: r.Head, Base: r.Base}.String() + "\n" + rest
}

// sameText compares what was sent with what the server made of it: line ends
// may differ, and white space at the end.
func sameText(a, b string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(a) == plain(b)
}

// judge queues a pull request whose comment has a banner and should have none,
// or the other way round. It should where it speaks of another commit of the
// branch than the newest.
func (s *Service) judge(number int, k known) {
	head := s.fleet.head()
	if k.base == "" || head == "" || k.stale == (k.base != head) {
		return
	}
	if err := s.queue.put(&item{number: number, stale: true}); err != nil {
		s.trouble("queue", err)
	}
}

// markStale puts a banner into the comment of a pull request, or takes it away.
func (s *Service) markStale(ctx context.Context, p Pull) error {
	k := s.known[p.Number]
	head := s.fleet.head()
	stale := k.base != head
	if k.base == "" || head == "" || k.stale == stale {
		return nil
	}
	return s.try(ctx, featureComment, pullText(p.Number), func() error {
		own, err := s.ownComments(ctx, p.Number)
		if err != nil {
			return err
		}
		if len(own) > 0 && own[0].mark.Base == k.base {
			reason := ""
			if stale {
				reason = fmt.Sprintf("%s has moved to %s since", s.cfg.Branch, short(head))
			}
			if text := comment.Stale(own[0].body, reason); !sameText(text, own[0].body) {
				if err := s.forge.editComment(ctx, own[0].id, text); err != nil {
					return err
				}
			}
		}
		k.stale = stale
		s.known[p.Number] = k
		return nil
	})
}

// ofOne says whether a refusal is about this pull request alone, such as a
// conversation that is locked, and not about a right that is missing.
func ofOne(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "locked") || strings.Contains(text, "blocked")
}
