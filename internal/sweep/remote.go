package sweep

import (
	"context"
	"time"
)

// Remote is a git repository as the daemon needs it; package repo's *Repo is
// one. Hashes are hex strings and "" is no object. Every method that takes a
// context ends at its deadline. An error may have a method Kind() string:
// "auth", "not-found", "network", "timeout", "refused", "race", "corrupt".
type Remote interface {
	// Refs lists the refs whose names begin with one of the prefixes; a
	// whole ref name is a prefix too, so compare names.
	Refs(ctx context.Context, prefixes ...string) (map[string]string, error)
	// Head is the name of the branch that the remote's HEAD points to.
	Head(ctx context.Context) (string, error)
	// Fetch makes a commit and what it reaches readable: with its whole
	// history, or only its own tree. ref is where the remote has it.
	Fetch(ctx context.Context, ref, commit string, history bool) error
	// IsAncestor needs the histories of both commits; a commit that is not
	// there any more is no ancestor.
	IsAncestor(ctx context.Context, ancestor, commit string) (bool, error)
	// Log calls fn for the commits reachable from `from` but not from `until`
	// ("" = to the root), newest first, while it returns true.
	Log(ctx context.Context, from, until string, fn func(hash, author string, when time.Time, message string) bool) error
	// Parents are those of a commit, of which some may not be here.
	Parents(ctx context.Context, commit string) ([]string, error)
	// Diff calls fn for every path that differs between two commits, sorted by
	// path: its blob is "" where it is absent, and mode is that of the new entry,
	// or of the old one when it is gone. It costs what differs.
	Diff(ctx context.Context, oldCommit, newCommit string, fn func(path, oldBlob, newBlob string, mode uint32) error) error
	// Walk calls fn for every entry of the commit's tree but trees, sorted by
	// path. mode is git's: 0100644, 0100755, 0120000 or 0160000.
	Walk(ctx context.Context, commit string, fn func(path, blob string, mode uint32) error) error
	// Blob reads a blob of a fetched commit, of at most limit bytes (0 = any).
	Blob(ctx context.Context, hash string, limit int64) ([]byte, error)
	// Tips reads the trees of small parentless commits (reports, deliveries),
	// fetching all of them in one exchange: ref → commit in, ref → path →
	// content out. A tip over limit bytes in total is left out; one that cannot
	// be read (gone, damaged, no commit) has a nil map.
	Tips(ctx context.Context, refs map[string]string, limit int64) (map[string]map[string][]byte, error)
	// PutBlob keeps a blob for a commit to come and gives its hash.
	PutBlob(ctx context.Context, data []byte) (string, error)
	// Commit makes a commit on parent ("" = none): path → blob hash, "" drops
	// the path. Empty folders go.
	Commit(ctx context.Context, parent string, changes map[string]string, when time.Time, message string) (string, error)
	// Orphan makes a parentless commit of just these files (path → blob
	// hash); the same files give the same commit.
	Orphan(ctx context.Context, files map[string]string) (string, error)
	// Publish moves refs by compare-and-swap, {old, new} each, "" = absent.
	// It pushes everything that the new commits need. lead goes first: if any
	// of it is refused, nothing of rest moves and the error's Kind is "race"
	// or "refused". Where the server can, all goes in one atomic push. refused
	// holds the refs of rest that did not move and what the server said.
	Publish(ctx context.Context, lead, rest map[string][2]string) (refused map[string]string, err error)
}
