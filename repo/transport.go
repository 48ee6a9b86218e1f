package repo

import (
	"context"
	"io"
)

// transport is the way to a repository on another machine: http or ssh. The
// calls of one transport may run side by side.
type transport interface {
	// upload is one conversation with git-upload-pack. It lists the refs that
	// begin with one of the prefixes and asks decide what to fetch; nil ends
	// it there, otherwise the pack goes to sink. With no prefixes and head
	// unset, protocol v2 saves the listing, and decide sees an empty one.
	upload(ctx context.Context, ask question, decide func(*listing) (*fetchRequest, error), sink func(io.Reader) error) error
	// push sends the commands and the pack that pack gives once the server's
	// capabilities are known; it is not sent when every command deletes.
	push(ctx context.Context, makePush func(capabilities) (*pushRequest, error)) (*pushResult, error)
	// answers is nil if the repository answers anything at all.
	answers(ctx context.Context) error
	close()
}

// question is what to list.
type question struct {
	prefixes []string
	exact    bool // only refs of just these names are kept
	head     bool
	// byHash says that the object to ask for is known already: v2 saves the
	// listing, and v0 keeps all of it, to know what may be wanted.
	byHash bool
}

// choose tells which refs of an answer are kept.
func (q question) choose() func(string) bool {
	if !q.exact {
		return anyPrefix(q.prefixes)
	}
	return func(name string) bool {
		for _, p := range q.prefixes {
			if name == p {
				return true
			}
		}
		return false
	}
}

type pushRequest struct {
	cmds   []refUpdate
	atomic bool
	pack   []byte // nil when every command deletes
}
