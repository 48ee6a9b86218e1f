package repo

import (
	"container/heap"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the name of a revision: git takes abbreviations from four digits
// on, and nobody types a chain of steps longer than this.
const (
	minAbbreviation = 4
	maxRevision     = 1024
	maxPeel         = 16 // tags of tags
)

// Revision finds the commit that a person names in a local repository, by the
// part of gitrevisions(7) that is about commits: HEAD or @, a branch, a tag, a
// remote's branch, a whole ref, a hash or the beginning of one, each followed by
// any of ^, ^N, ~N and ^{commit}. In a linked work tree HEAD is that tree's.
// What names nothing is an error of the kind not-found.
func (r *Repo) Revision(ctx context.Context, name string) (string, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	id, err := r.revision(ctx, name)
	if err != nil {
		return "", r.wrap("find", sanitize(name, 100), err)
	}
	return id.String(), nil
}

func (r *Repo) revision(ctx context.Context, name string) (oid, error) {
	if r.local == nil {
		return zero, fail(kindRefused, "only a local repository can be asked for revisions")
	}
	if len(name) > maxRevision {
		return zero, fail(kindNotFound, "the name is too long")
	}
	base, steps := name, ""
	if i := strings.IndexAny(name, "^~"); i >= 0 {
		base, steps = name[:i], name[i:]
	}
	id, err := r.named(ctx, base)
	if err == nil {
		id, err = r.peel(ctx, id)
	}
	for err == nil && steps != "" {
		id, steps, err = r.step(ctx, id, steps)
	}
	return id, err
}

// named finds what a name without steps stands for, in the order of git: a
// ref goes before a hash.
func (r *Repo) named(ctx context.Context, name string) (oid, error) {
	switch name {
	case "":
		return zero, fail(kindNotFound, "the name of a revision is empty")
	case "HEAD", "@":
		return r.localHead()
	}
	full := []string{name}
	if !strings.HasPrefix(name, "refs/") {
		full = []string{"refs/" + name, "refs/tags/" + name, "refs/heads/" + name, "refs/remotes/" + name, "refs/remotes/" + name + "/HEAD"}
	}
	for _, ref := range full {
		if validRef(ref) != nil {
			continue
		}
		if id, err := r.refs.read(ref); err != nil || !id.IsZero() {
			return id, err
		}
	}
	return r.abbreviated(ctx, name)
}

// localHead is the commit that is checked out.
func (r *Repo) localHead() (oid, error) {
	own := localRefs{dir: r.local.own}
	ref, err := own.head()
	if err != nil {
		return zero, err
	}
	if ref == "" {
		id, _, err := own.readFile("HEAD")
		return id, err
	}
	id, err := r.refs.read(ref)
	if err == nil && id.IsZero() {
		err = fail(kindNotFound, "the branch %s has no commits yet", sanitize(strings.TrimPrefix(ref, "refs/heads/"), 100))
	}
	return id, err
}

// abbreviated finds the one commit or tag whose hash begins so.
func (r *Repo) abbreviated(ctx context.Context, name string) (oid, error) {
	unknown := fail(kindNotFound, "there is no such branch, tag or commit").
		hint("`git log --oneline --all` lists what there is; a shallow clone has only a part of it (git fetch --unshallow)")
	digits := strings.ToLower(name)
	if len(digits) < minAbbreviation || len(digits) > 40 || strings.Trim(digits, "0123456789abcdef") != "" {
		return zero, unknown
	}
	if len(digits) == 40 {
		id, err := parseOID(digits)
		if err == nil && !r.objs.has(id) {
			err = unknown
		}
		return id, err
	}
	prefix, err := hex.DecodeString(digits[:len(digits)/2*2])
	if err != nil {
		return zero, unknown
	}
	found, err := r.objs.withPrefix(prefix)
	if err != nil {
		return zero, err
	}
	var commits []oid
	for _, id := range found {
		if !strings.HasPrefix(id.String(), digits) || slices.Contains(commits, id) {
			continue
		}
		if typ, _, err := r.find(ctx, id, 0); err == nil && (typ == typeCommit || typ == typeTag) {
			commits = append(commits, id)
		}
	}
	switch len(commits) {
	case 0:
		return zero, unknown
	case 1:
		return commits[0], nil
	}
	return zero, fail(kindNotFound, "more than one commit begins with %s", digits).hint("give more digits of it")
}

// withPrefix lists the objects whose names begin with these bytes.
func (o *objects) withPrefix(prefix []byte) (ids []oid, err error) {
	defer func() {
		if r := recover(); r != nil {
			ids, err = nil, fail(kindCorrupt, "the objects cannot be listed: %v", r)
		}
	}()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.storage().HashesWithPrefix(prefix)
}

// peel follows a tag to its commit.
func (r *Repo) peel(ctx context.Context, id oid) (oid, error) {
	for range maxPeel {
		typ, data, err := r.find(ctx, id, 0)
		switch {
		case errors.Is(err, errMissing):
			return zero, fail(kindNotFound, "the commit %s is not here", id).hint("a shallow clone has only a part of the history: git fetch --unshallow")
		case err != nil:
			return zero, err
		case typ == typeCommit:
			return id, nil
		case typ != typeTag:
			return zero, fail(kindNotFound, "it is a %s, not a commit", typ)
		}
		line, _, _ := strings.Cut(string(data), "\n")
		hash, ok := strings.CutPrefix(line, "object ")
		if !ok {
			return zero, fail(kindCorrupt, "the tag %s names no object", id)
		}
		if id, err = parseOID(hash); err != nil {
			return zero, err
		}
	}
	return zero, fail(kindCorrupt, "more than %d tags of tags", maxPeel)
}

// step takes the first of the steps from a commit to an ancestor.
func (r *Repo) step(ctx context.Context, id oid, steps string) (oid, string, error) {
	if rest, ok := strings.CutPrefix(steps, "^{commit}"); ok {
		return id, rest, nil
	}
	sign, rest := steps[0], steps[1:]
	if sign != '^' && sign != '~' {
		return zero, "", fail(kindNotFound, "%q is no way to name an ancestor", sanitize(steps, 40)).hint("it is written as in main~2 or main^")
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	rest = rest[len(digits):]
	n := 1
	if digits != "" {
		var err error
		if n, err = strconv.Atoi(digits); err != nil {
			return zero, "", fail(kindNotFound, "%q is no number of commits", sanitize(digits, 40))
		}
	}
	which, times := 1, n // ~n: the first parent, n times
	if sign == '^' {
		which, times = n, 1
	}
	if which == 0 {
		return id, rest, nil
	}
	for range times {
		c, err := r.commit(ctx, id)
		if err != nil {
			return zero, "", err
		}
		if which > len(c.parents) {
			return zero, "", fail(kindNotFound, "the commit %s has no parent number %d, but %d in all", id, which, len(c.parents))
		}
		id = c.parents[which-1]
		if _, err := r.peel(ctx, id); err != nil {
			return zero, "", err
		}
	}
	return id, rest, nil
}

// IsShallow says whether the history of a local repository was cut off when it
// was cloned.
func (r *Repo) IsShallow() bool {
	if r.local == nil {
		return false
	}
	fi, err := os.Stat(filepath.Join(r.local.dir, "shallow"))
	return err == nil && fi.Size() > 0
}

// MergeBase is the newest commit that two commits both come from, "" where
// there is none. In a shallow clone history ends where it was cut off.
func (r *Repo) MergeBase(ctx context.Context, a, b string) (string, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	x, err := parseOID(a)
	if err != nil {
		return "", r.wrap("compare", a, err)
	}
	y, err := parseOID(b)
	if err != nil {
		return "", r.wrap("compare", b, err)
	}
	id, err := r.mergeBase(ctx, x, y)
	return optional(id), r.wrap("compare", b, err)
}

// Marks of commits on the way down from the two: whose ancestor it is, and
// whether it lies below a common one.
const (
	fromLeft = 1 << iota
	fromRight
	belowCommon
)

func (r *Repo) mergeBase(ctx context.Context, left, right oid) (oid, error) {
	w := &logWalk{repo: r, seen: map[oid]bool{}, hidden: map[oid]bool{}}
	marks := map[oid]int{}
	add := func(id oid, mark int) error {
		if marks[id]&mark == mark {
			return nil
		}
		c, err := r.commit(ctx, id)
		if errors.Is(err, errMissing) && marks[id] == 0 && id != left && id != right {
			return nil // cut off here
		}
		if err != nil {
			return err
		}
		marks[id] |= mark
		heap.Push(w, &logNode{commit: c, id: id})
		return nil
	}
	if err := errors.Join(add(left, fromLeft), add(right, fromRight)); err != nil {
		return zero, err
	}
	var common []oid
	for slop := logSlop; w.Len() > 0 && slop > 0; {
		n := heap.Pop(w).(*logNode)
		mark := marks[n.id]
		if mark == fromLeft|fromRight && !slices.Contains(common, n.id) {
			common = append(common, n.id)
			mark |= belowCommon
		}
		for _, p := range n.parents {
			if err := add(p, mark); err != nil {
				return zero, err
			}
		}
		// Clocks differ: what is left may still turn out to be below.
		if slices.ContainsFunc(w.queue, func(q *logNode) bool { return marks[q.id]&belowCommon == 0 }) {
			slop = logSlop
		} else {
			slop--
		}
	}
	for _, id := range common {
		if marks[id]&belowCommon == 0 {
			return id, nil
		}
	}
	return zero, nil
}
