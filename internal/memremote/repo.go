package memremote

import (
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Repo is a repository. The zero value is not usable, see [New].
type Repo struct {
	// Moved is told of every ref that moved, with the lock held: it may keep
	// what it hears, and must not call back. nil = nobody.
	Moved func(ref, old, new string)
	// History is how many former states of the refs are kept, for clients
	// that are served by replicas which lag; 0 = none.
	History int

	mu      sync.Mutex
	head    string // branch of HEAD
	blobs   map[string][]byte
	commits map[string]*commit
	refs    map[string]string
	past    []map[string]string // oldest first
	moves   int                 // of refs, ever
}

// Lag is how far behind a replica is.
type Lag struct {
	Moves int    // of refs that it has not heard of yet; 0 = it is up to date
	But   string // prefix of refs of which it has heard all the same; "" = none
}

type commit struct {
	parent  string
	files   map[string]entry // never changed once it is there
	author  string
	when    time.Time
	message string
	pushed  int // the move by which it came to the server; 0 = only its maker has it
}

type entry struct {
	blob string
	mode uint32
}

// regular is git's mode of a plain file.
const regular = 0o100644

// New makes an empty repository whose HEAD is the branch main.
func New() *Repo {
	return &Repo{head: "main", blobs: map[string][]byte{}, commits: map[string]*commit{}, refs: map[string]string{}}
}

// Error is what a server answers; Kind is one of package repo's words.
type Error struct{ kind, text string }

// NewError makes an error of a kind, for hooks.
func NewError(kind, text string) *Error { return &Error{kind, text} }

func (e *Error) Error() string { return e.text }

// Kind is the word by which callers branch.
func (e *Error) Kind() string { return e.kind }

func hash(parts ...string) string {
	h := sha1.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (r *Repo) putBlob(data []byte) string {
	id := hash("blob", string(data))
	if _, ok := r.blobs[id]; !ok {
		r.blobs[id] = slices.Clone(data)
	}
	return id
}

func (r *Repo) putCommit(parent string, files map[string]entry, author, message string, when time.Time) string {
	parts := []string{"commit", parent, author, message, when.UTC().String()}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		parts = append(parts, p, files[p].blob)
	}
	id := hash(parts...)
	if r.commits[id] == nil {
		r.commits[id] = &commit{parent: parent, files: files, author: author, when: when, message: message}
	}
	return id
}

// move sets a ref; "" removes it.
func (r *Repo) move(ref, to string) {
	old := r.refs[ref]
	if old == to {
		return
	}
	r.moves++
	if c := r.commits[to]; c != nil && c.pushed == 0 {
		c.pushed = r.moves
	}
	if r.History > 0 && len(r.refs) > 0 { // nobody mirrors a repository without a ref
		r.past = append(r.past, maps.Clone(r.refs))
		if over := len(r.past) - r.History; over > 0 {
			r.past = slices.Delete(r.past, 0, over)
		}
	}
	if to == "" {
		delete(r.refs, ref)
	} else {
		r.refs[ref] = to
	}
	if r.Moved != nil {
		r.Moved(ref, old, to)
	}
}

// shown are the refs that a replica shows where it is asked for a prefix; the
// lock is held.
func (r *Repo) shown(l Lag, prefix string) map[string]string {
	n := min(l.Moves, len(r.past))
	if n <= 0 || l.But != "" && strings.HasPrefix(prefix, l.But) {
		return r.refs
	}
	return r.past[len(r.past)-n]
}

// has says whether a replica has heard of a commit; the lock is held.
func (r *Repo) has(l Lag, commit string) bool {
	k := r.commits[commit]
	if k == nil || l.Moves <= 0 {
		return k != nil
	}
	return k.pushed > 0 && k.pushed <= r.moves-min(l.Moves, len(r.past))
}

// Push commits files on a branch, as a person does; nil content drops a path.
func (r *Repo) Push(branch, message string, when time.Time, files map[string][]byte) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref := "refs/heads/" + branch
	parent := r.refs[ref]
	tree := map[string]entry{}
	if c := r.commits[parent]; c != nil {
		tree = maps.Clone(c.files)
	}
	for p, content := range files {
		if content == nil {
			delete(tree, p)
		} else {
			tree[p] = entry{r.putBlob(content), regular}
		}
	}
	id := r.putCommit(parent, tree, "op@example.com", message, when)
	r.move(ref, id)
	return id
}

// Ref is the commit that a ref points to; "" = there is no such ref.
func (r *Repo) Ref(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refs[name]
}

// Refs lists the refs below a prefix.
func (r *Repo) Refs(prefix string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]string{}
	for ref, id := range r.refs {
		if strings.HasPrefix(ref, prefix) {
			out[ref] = id
		}
	}
	return out
}

// Set moves a ref by force, "" removes it: what somebody with an account can
// do to a repository.
func (r *Repo) Set(ref, commit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.move(ref, commit)
}

// Files lists a commit's files: path → blob.
func (r *Repo) Files(commit string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.commits[commit]
	if c == nil {
		return nil
	}
	out := make(map[string]string, len(c.files))
	for p, f := range c.files {
		out[p] = f.blob
	}
	return out
}

// Content is that of a blob; it must not be changed.
func (r *Repo) Content(blob string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blobs[blob]
}

// File reads one file at the tip of a ref; nil = it is not there.
func (r *Repo) File(ref, path string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.commits[r.refs[ref]]; c != nil {
		return r.blobs[c.files[path].blob]
	}
	return nil
}

// Commits counts the commits from a ref to its root.
func (r *Repo) Commits(ref string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for c := r.commits[r.refs[ref]]; c != nil; c = r.commits[c.parent] {
		n++
	}
	return n
}

// Message is a commit's message.
func (r *Repo) Message(commit string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.commits[commit]; c != nil {
		return c.message
	}
	return ""
}
