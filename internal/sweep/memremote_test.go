package sweep

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// memRepo is a git repository in memory, with the semantics that Remote
// promises: immutable objects, refs that move by compare-and-swap.
type memRepo struct {
	mu      sync.Mutex
	head    string // branch of HEAD
	blobs   map[string][]byte
	commits map[string]*memCommit
	refs    map[string]string
	refuse  func(ref string) string // why the server does not move a ref; "" = it does
}

type memCommit struct {
	parent  string
	merged  string // its second parent; "" = it is no merge
	tree    *memTree
	author  string
	when    time.Time
	message string
}

type memFile struct {
	blob string
	mode uint32
}

// memTree is a tree over another one, made flat when it is read.
type memTree struct {
	base    *memTree
	changes map[string]memFile // blob "" = dropped
	flat    map[string]memFile
}

func (t *memTree) files() map[string]memFile {
	if t == nil {
		return map[string]memFile{}
	}
	if t.flat == nil {
		t.flat = maps.Clone(t.base.files())
		for p, f := range t.changes {
			if f.blob == "" {
				delete(t.flat, p)
			} else {
				t.flat[p] = f
			}
		}
		t.base, t.changes = nil, nil
	}
	return t.flat
}

func newMemRepo() *memRepo {
	return &memRepo{head: "main", blobs: map[string][]byte{}, commits: map[string]*memCommit{}, refs: map[string]string{}}
}

func sum(parts ...string) string {
	h := sha1.Sum([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:])
}

func (r *memRepo) putBlob(data []byte) string {
	id := sum("blob", string(data))
	r.blobs[id] = slices.Clone(data)
	return id
}

func (r *memRepo) putCommit(parent string, tree *memTree, key, author, message string, when time.Time) string {
	id := sum("commit", parent, key, author, message, when.UTC().String())
	if r.commits[id] == nil {
		r.commits[id] = &memCommit{parent: parent, tree: tree, author: author, when: when, message: message}
	}
	return id
}

// push commits files on a branch, as a person does: content "" drops a path.
func (r *memRepo) push(branch, message string, when time.Time, files map[string]string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	parent := r.refs[branchRef(branch)]
	return r.pushOn(branch, parent, message, when, files)
}

func (r *memRepo) pushOn(branch, parent, message string, when time.Time, files map[string]string) string {
	changes := map[string]memFile{}
	var key []string
	for _, p := range slices.Sorted(maps.Keys(files)) {
		f := memFile{mode: 0o100644}
		if content := files[p]; content != "" {
			f.blob = r.putBlob([]byte(content))
		}
		changes[p] = f
		key = append(key, p+"="+f.blob)
	}
	var base *memTree
	if c := r.commits[parent]; c != nil {
		base = c.tree
	}
	id := r.putCommit(parent, &memTree{base: base, changes: changes}, strings.Join(key, "\n"), "op@example.com", message, when)
	r.refs[branchRef(branch)] = id
	return id
}

// file reads one file at the tip of a ref; nil = it is not there.
func (r *memRepo) file(ref, path string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.commits[r.refs[ref]]
	if c == nil {
		return nil
	}
	f, ok := c.tree.files()[path]
	if !ok {
		return nil
	}
	return r.blobs[f.blob]
}

func (r *memRepo) ref(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refs[name]
}

func (r *memRepo) set(name, commit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if commit == "" {
		delete(r.refs, name)
	} else {
		r.refs[name] = commit
	}
}

// force moves a ref to a parentless commit of these files, as a device does
// with its report.
func (r *memRepo) force(ref string, files map[string][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tree := map[string]memFile{}
	var key []string
	for _, p := range slices.Sorted(maps.Keys(files)) {
		f := memFile{blob: r.putBlob(files[p]), mode: 0o100644}
		tree[p] = f
		key = append(key, p+"="+f.blob)
	}
	r.refs[ref] = r.putCommit("", &memTree{flat: tree}, strings.Join(key, "\n"), "", "", time.Time{})
}

// count is the number of commits from a ref to the root.
func (r *memRepo) count(ref string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for c := r.commits[r.refs[ref]]; c != nil; c = r.commits[c.parent] {
		n++
	}
	return n
}

// memRemote is one client's view of a memRepo, which can be made to fail.
type memRemote struct {
	*memRepo
	calls  int
	failAt int  // the call that fails, from 1; 0 = none
	after  bool // it fails after it had its effect
	onCall func(n int, op string)
	log    []string
	// here are the commits that this client has: true = with all before them.
	here map[string]bool
}

// has notes a commit, with its history or without.
func (m *memRemote) has(commit string, history bool) {
	if m.here == nil {
		m.here = map[string]bool{}
	}
	for todo := []string{commit}; len(todo) > 0; todo = todo[1:] {
		id := todo[0]
		if id == "" || m.here[id] {
			continue
		}
		if m.here[id] = history; !history {
			return
		}
		todo = append(todo, m.commits[id].parent, m.commits[id].merged)
	}
}

type memError struct{ kind, text string }

func (e *memError) Error() string { return e.text }
func (e *memError) Kind() string  { return e.kind }

var errCut = &memError{"network", "the connection was cut"}

// enter counts a call; done gives the error that the call ends with.
func (m *memRemote) enter(ctx context.Context, op string) (before error, done func(error) error) {
	m.calls++
	n := m.calls
	m.log = append(m.log, op)
	if m.onCall != nil {
		m.onCall(n, op)
	}
	if err := ctx.Err(); err != nil {
		return err, nil
	}
	fails := n == m.failAt
	if fails && !m.after {
		return errCut, nil
	}
	return nil, func(err error) error {
		if fails {
			return errCut
		}
		return err
	}
}

func (m *memRemote) Refs(ctx context.Context, prefixes ...string) (map[string]string, error) {
	err, done := m.enter(ctx, "refs")
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for _, p := range prefixes {
		if strings.HasSuffix(p, "/") || len(prefixes) < 100 {
			for ref, commit := range m.refs {
				if strings.HasPrefix(ref, p) {
					out[ref] = commit
				}
			}
		} else if commit := m.refs[p]; commit != "" {
			out[p] = commit
		}
	}
	return out, done(nil)
}

func (m *memRemote) Head(ctx context.Context) (string, error) {
	err, done := m.enter(ctx, "head")
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head, done(nil)
}

func (m *memRemote) Fetch(ctx context.Context, ref, commit string, history bool) error {
	err, done := m.enter(ctx, "fetch")
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.commits[commit] == nil {
		return &memError{"not-found", "no commit " + commit}
	}
	m.has(commit, history)
	return done(nil)
}

func (m *memRemote) IsAncestor(ctx context.Context, ancestor, commit string) (bool, error) {
	err, done := m.enter(ctx, "ancestor")
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.commits[ancestor] != nil && m.commits[commit] == nil {
		return false, &memError{"not-found", "commit " + commit + " is not here"}
	}
	for id := commit; id != ""; {
		if id == ancestor {
			return true, done(nil)
		}
		c := m.commits[id]
		if c == nil {
			break
		}
		id = c.parent
	}
	return false, done(nil)
}

func (m *memRemote) Log(ctx context.Context, from, until string, fn func(hash, author string, when time.Time, message string) bool) error {
	err, done := m.enter(ctx, "log")
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	stop := map[string]bool{}
	for id := until; id != "" && m.commits[id] != nil; id = m.commits[id].parent {
		stop[id] = true
	}
	if m.commits[from] == nil {
		return &memError{"not-found", "no commit " + from}
	}
	for id := from; id != "" && !stop[id]; {
		c := m.commits[id]
		if c == nil || !fn(id, c.author, c.when, c.message) {
			break
		}
		if _, ok := m.here[c.parent]; !ok && c.parent != "" {
			return &memError{"not-found", "commit " + c.parent + " was not fetched"}
		}
		id = c.parent
	}
	return done(nil)
}

func (m *memRemote) Parents(ctx context.Context, commit string) ([]string, error) {
	err, done := m.enter(ctx, "parents")
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.commits[commit]
	if _, ok := m.here[commit]; c == nil || !ok {
		return nil, &memError{"not-found", "no commit " + commit}
	}
	parents := slices.DeleteFunc([]string{c.parent, c.merged}, func(p string) bool { return p == "" })
	return parents, done(nil)
}

func (m *memRemote) Diff(ctx context.Context, oldCommit, newCommit string, fn func(path, oldBlob, newBlob string, mode uint32) error) error {
	err, done := m.enter(ctx, "diff")
	if err != nil {
		return err
	}
	m.mu.Lock()
	var files [2]map[string]memFile
	for i, commit := range []string{oldCommit, newCommit} {
		c := m.commits[commit]
		if _, ok := m.here[commit]; c == nil || !ok {
			m.mu.Unlock()
			return &memError{"not-found", "no commit " + commit}
		}
		files[i] = c.tree.files()
	}
	m.mu.Unlock()
	paths := maps.Clone(files[0])
	maps.Copy(paths, files[1])
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if a, b := files[0][p], files[1][p]; a != b {
			if err := fn(p, a.blob, b.blob, paths[p].mode); err != nil {
				return err
			}
		}
	}
	return done(nil)
}

func (m *memRemote) Walk(ctx context.Context, commit string, fn func(path, blob string, mode uint32) error) error {
	err, done := m.enter(ctx, "walk")
	if err != nil {
		return err
	}
	m.mu.Lock()
	c := m.commits[commit]
	if c == nil {
		m.mu.Unlock()
		return &memError{"not-found", "no commit " + commit}
	}
	files := c.tree.files()
	m.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if err := fn(p, files[p].blob, files[p].mode); err != nil {
			return err
		}
	}
	return done(nil)
}

func (m *memRemote) Blob(ctx context.Context, hash string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.blobs[hash]
	if !ok {
		return nil, &memError{"not-found", "no blob " + hash}
	}
	if limit > 0 && int64(len(data)) > limit {
		return nil, &memError{"refused", "too large"}
	}
	return slices.Clone(data), nil
}

func (m *memRemote) Tips(ctx context.Context, refs map[string]string, limit int64) (map[string]map[string][]byte, error) {
	err, done := m.enter(ctx, "tips")
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]map[string][]byte{}
	for ref, commit := range refs {
		c := m.commits[commit]
		if c == nil {
			return nil, &memError{"not-found", "no commit " + commit}
		}
		files, total := map[string][]byte{}, int64(0)
		for p, f := range c.tree.files() {
			files[p] = m.blobs[f.blob]
			total += int64(len(files[p]))
		}
		if total <= limit {
			out[ref] = files
		}
	}
	return out, done(nil)
}

func (m *memRemote) PutBlob(ctx context.Context, data []byte) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.putBlob(data), nil
}

func (m *memRemote) Commit(ctx context.Context, parent string, changes map[string]string, when time.Time, message string) (string, error) {
	err, done := m.enter(ctx, "commit")
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	files := map[string]memFile{}
	var key []string
	for _, p := range slices.Sorted(maps.Keys(changes)) {
		if b := changes[p]; b != "" && m.blobs[b] == nil {
			return "", fmt.Errorf("commit names an unknown blob at %s", p)
		}
		files[p] = memFile{blob: changes[p], mode: 0o100644}
		key = append(key, p+"="+changes[p])
	}
	var base *memTree
	if parent != "" {
		if m.commits[parent] == nil {
			return "", errors.New("no parent " + parent)
		}
		base = m.commits[parent].tree
	}
	id := m.putCommit(parent, &memTree{base: base, changes: files}, strings.Join(key, "\n"), "gitopsd", message, when)
	m.has(id, false)
	return id, done(nil)
}

func (m *memRemote) Orphan(ctx context.Context, files map[string]string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	tree := map[string]memFile{}
	var key []string
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if m.blobs[files[p]] == nil {
			return "", fmt.Errorf("delivery names an unknown blob at %s", p)
		}
		tree[p] = memFile{blob: files[p], mode: 0o100644}
		key = append(key, p+"="+files[p])
	}
	return m.putCommit("", &memTree{flat: tree}, strings.Join(key, "\n"), "", "", time.Time{}), nil
}

func (m *memRemote) Publish(ctx context.Context, lead, rest map[string][2]string) (map[string]string, error) {
	err, done := m.enter(ctx, "publish")
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for ref, move := range lead {
		if m.refuse != nil && m.refuse(ref) != "" {
			return nil, &memError{"refused", m.refuse(ref)}
		}
		if m.refs[ref] != move[0] {
			return nil, &memError{"race", ref + " moved"}
		}
	}
	apply := func(ref string, move [2]string) {
		if move[1] == "" {
			delete(m.refs, ref)
		} else {
			m.refs[ref] = move[1]
		}
	}
	for ref, move := range lead {
		apply(ref, move)
	}
	refused := map[string]string{}
	for ref, move := range rest {
		switch {
		case m.refuse != nil && m.refuse(ref) != "":
			refused[ref] = m.refuse(ref)
		case m.refs[ref] != move[0]:
			refused[ref] = "stands elsewhere"
		default:
			apply(ref, move)
		}
	}
	return refused, done(nil)
}
