package repo

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// defaultTimeout ends an operation whose context has no nearer deadline. It
// leaves room for the first fetch of a large fleet over a slow line.
const defaultTimeout = 2 * time.Minute

// Config says where a repository is and how it is used.
type Config struct {
	URL         string // a local path, or a URL: file, http, https, ssh, user@host:path
	Credentials Credentials
	// Store is the folder for the copy of a remote repository; one process at
	// a time. Not used for local paths, which are opened where they are.
	Store   string
	Timeout time.Duration // of one operation; 0 = 2 minutes
	Author  Author        // of commits; empty = gitopsd
	Logger  *slog.Logger  // nil = silent
}

// connection is what daemon and device have in common.
type connection struct {
	at      endpoint
	timeout time.Duration
	log     *slog.Logger

	// Exactly one of the two is set.
	local  *localDir
	remote transport

	refs localRefs // local only
	told sync.Map  // names of broken refs that were told
	objs *objects  // of the local repository or of the store
}

func connect(cfg Config) (*connection, error) {
	c := &connection{timeout: cfg.Timeout, log: cfg.Logger}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if c.at, err = parseURL(cfg.URL); err != nil {
		return nil, wrap("open", "", "", err)
	}
	switch c.at.scheme {
	case "file":
		l, err := openLocal(c.at.path)
		if err != nil {
			return nil, wrap("open", c.at.String(), "", err)
		}
		c.local, c.refs, c.objs = &l, localRefs{dir: l.dir, shared: l.shared}, newObjects(l.dir, true)
	case "ssh":
		c.remote = newSSHRemote(c.at, cfg.Credentials)
	default:
		c.remote = newHTTPRemote(c.at, cfg.Credentials, c.log)
	}
	return c, nil
}

// within gives the operation its deadline.
func (c *connection) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

func (c *connection) wrap(op, ref string, err error) error { return wrap(op, c.at.String(), ref, err) }

func (c *connection) close() error {
	if c.remote != nil {
		c.remote.close()
	}
	if c.objs != nil {
		c.objs.reopen()
	}
	return nil
}

// list gives the refs below the prefixes, from either side.
func (c *connection) list(ctx context.Context, prefixes []string) (map[string]oid, error) {
	for _, p := range prefixes {
		if err := validPrefix(p); err != nil {
			return nil, err
		}
	}
	if len(prefixes) == 0 {
		return map[string]oid{}, nil
	}
	if c.local != nil {
		refs, broken, err := c.refs.list(ctx, prefixes)
		if err == nil {
			c.tellBroken(prefixes, broken)
		}
		return refs, err
	}
	var refs map[string]oid
	err := c.remote.upload(ctx, question{prefixes: prefixes}, func(l *listing) (*fetchRequest, error) {
		refs = l.refs
		return nil, nil
	}, nil)
	return refs, err
}

// tellBroken logs refs that cannot be read, each once until it can be.
func (c *connection) tellBroken(prefixes []string, broken map[string]error) {
	for name, why := range broken {
		if _, before := c.told.LoadOrStore(name, nil); !before {
			c.log.Warn("a ref cannot be read and is taken for absent", "repo", c.at.String(), "ref", name, "cause", why)
		}
	}
	listed := anyPrefix(prefixes)
	c.told.Range(func(key, _ any) bool {
		if name, ok := key.(string); ok && listed(name) && broken[name] == nil {
			c.told.Delete(name)
		}
		return true
	})
}

// Repo is a repository as the daemon uses it.
type Repo struct {
	*connection
	author  Author
	store   *store // of a remote repository
	made    pending
	fetches sync.Mutex // one fetch or repair of the store at a time

	mu     sync.Mutex
	served map[oid]bool // blobs that were published before, see publish
	healed time.Time
}

// Open opens the repository for the daemon. A local one has to be there; for
// a remote one only the store is touched, so that a server that is down is
// the matter of the first operation.
func Open(cfg Config) (*Repo, error) {
	c, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	r := &Repo{connection: c, author: cfg.Author, served: map[oid]bool{}}
	if c.remote == nil {
		return r, nil
	}
	if cfg.Store == "" {
		return nil, c.wrap("open", "", fail(kindRefused, "no folder is given for the copy of a remote repository").hint("set the state folder"))
	}
	ctx, cancel := c.within(context.Background())
	defer cancel()
	s, damaged, err := openStore(ctx, cfg.Store)
	if err != nil {
		return nil, wrap("open", cfg.Store, "", err)
	}
	if damaged != nil {
		c.log.Warn("the copy of the repository is damaged and is fetched again", "repo", c.at.String(), "store", cfg.Store, "cause", damaged)
	}
	if len(s.cleared) > 0 {
		c.log.Info("removed what an earlier process did not finish", "repo", c.at.String(), "store", cfg.Store, "files", len(s.cleared))
	}
	r.store, r.objs = s, s.objs
	return r, nil
}

// Close gives back connections and files.
func (r *Repo) Close() error { return r.close() }

// Path is the folder of a local repository, where its refs are; "" for a
// remote one.
func (r *Repo) Path() string {
	if r.local == nil {
		return ""
	}
	return r.local.dir
}

// URL is where the repository is, for people: without user info.
func (r *Repo) URL() string { return r.at.String() }

// Refs lists the refs whose names begin with one of the prefixes. In a local
// repository a ref whose file holds no value is logged and left out; asked for
// by its whole name it is an error of the kind corrupt.
func (r *Repo) Refs(ctx context.Context, prefixes ...string) (map[string]string, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	refs, err := r.list(ctx, prefixes)
	if err != nil {
		return nil, r.wrap("list refs", "", err)
	}
	out := make(map[string]string, len(refs))
	for name, id := range refs {
		out[name] = id.String()
	}
	return out, nil
}

// Head is the name of the branch that HEAD points to, such as "main"; a HEAD
// that points to no branch gives "".
func (r *Repo) Head(ctx context.Context) (string, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	var head string
	var err error
	if r.local != nil {
		head, err = r.refs.head()
	} else {
		err = r.remote.upload(ctx, question{head: true}, func(l *listing) (*fetchRequest, error) {
			head = l.head
			return nil, nil
		}, nil)
	}
	if err != nil {
		return "", r.wrap("read HEAD", "", err)
	}
	const branches = "refs/heads/"
	if len(head) > len(branches) && head[:len(branches)] == branches {
		return head[len(branches):], nil
	}
	return "", nil
}

// find gives an object that was made or fetched here, without repairing.
func (r *Repo) find(ctx context.Context, id oid, limit int64) (objectType, []byte, error) {
	if typ, data, ok := r.made.get(id); ok {
		if limit > 0 && int64(len(data)) > limit {
			return 0, nil, tooLarge(id, int64(len(data)), limit)
		}
		return typ, data, nil
	}
	return r.objs.read(ctx, id, limit)
}

// object gives an object of a type. Where the store should have it and has
// not, or holds it damaged, the store is fetched again, once.
func (r *Repo) object(ctx context.Context, id oid, typ objectType, limit int64) ([]byte, error) {
	t, data, err := r.find(ctx, id, limit)
	if err != nil && r.store != nil && ctx.Err() == nil && (errors.Is(err, errMissing) || hasKind(err, kindCorrupt)) {
		if herr := r.heal(ctx, err); herr != nil {
			return nil, herr
		}
		t, data, err = r.find(ctx, id, limit)
	}
	if err != nil {
		if errors.Is(err, errMissing) {
			kind := kindNotFound
			if r.local != nil {
				kind = kindCorrupt
			}
			return nil, fail(kind, "the %s %s is missing", typ, id).hint("`git fsck` in that repository says more")
		}
		return nil, err
	}
	if t != typ {
		return nil, fail(kindCorrupt, "%s is a %s, not a %s", id, t, typ)
	}
	return data, nil
}

// get is object in the form that trees are read with.
func (r *Repo) get(ctx context.Context, id oid, typ objectType) ([]byte, error) {
	return r.object(ctx, id, typ, 0)
}

// commit reads a commit that a caller named: one that is not here is no
// damage.
func (r *Repo) commit(ctx context.Context, id oid) (*commit, error) {
	t, data, err := r.find(ctx, id, 0)
	if r.store != nil && (hasKind(err, kindCorrupt) || errors.Is(err, errMissing) && r.store.isTip(id)) {
		data, err = r.object(ctx, id, typeCommit, 0)
		t = typeCommit
	}
	if err != nil {
		if errors.Is(err, errMissing) {
			return nil, fail(kindNotFound, "commit %s is not here: %w", id, errMissing).hint("it was not fetched, or it is gone from the repository")
		}
		return nil, err
	}
	if t != typeCommit {
		return nil, fail(kindRefused, "%s is a %s, not a commit", id, t)
	}
	return parseCommit(data)
}

// Walk calls fn for every entry of the commit's tree but folders, sorted by
// path. A tree that is damaged or hostile is an error of the kind corrupt, which
// names the path: nobody but a person mends it.
func (r *Repo) Walk(ctx context.Context, commit string, fn func(path, blob string, mode uint32) error) error {
	id, err := parseOID(commit)
	if err != nil {
		return r.wrap("read", commit, err)
	}
	c, err := r.commit(ctx, id)
	if err != nil {
		return r.wrap("read", commit, err)
	}
	var own error
	w := &walker{get: r.get}
	err = w.walk(ctx, c.tree, "", 0, func(path string, e treeEntry) error {
		own = fn(path, e.id.String(), e.mode)
		return own
	})
	if own != nil {
		return own
	}
	return r.wrap("read", commit, err)
}

// Diff calls fn for every path that differs between two commits, sorted by
// path; a blob is "" where the path is absent, and mode is that of the new
// entry, or of the old one when it is gone. "" for oldCommit stands for
// nothing. It costs what has changed, not what there is.
func (r *Repo) Diff(ctx context.Context, oldCommit, newCommit string, fn func(path, oldBlob, newBlob string, mode uint32) error) error {
	var trees [2]oid
	for i, name := range []string{oldCommit, newCommit} {
		id, err := optionalOID(name)
		if err != nil {
			return r.wrap("compare", name, err)
		}
		if id.IsZero() {
			continue
		}
		c, err := r.commit(ctx, id)
		if err != nil {
			return r.wrap("compare", name, err)
		}
		trees[i] = c.tree
	}
	var own error
	w := &walker{get: r.get}
	err := w.diff(ctx, trees[0], trees[1], "", 0, func(path string, a, b treeEntry) error {
		mode := b.mode
		if b.name == "" {
			mode = a.mode
		}
		own = fn(path, optional(a.id), optional(b.id), mode)
		return own
	})
	if own != nil {
		return own
	}
	return r.wrap("compare", newCommit, err)
}

// Blob reads a blob of at most limit bytes (0 = any); a larger one is an
// error of the kind refused.
func (r *Repo) Blob(ctx context.Context, hash string, limit int64) ([]byte, error) {
	id, err := parseOID(hash)
	if err != nil {
		return nil, r.wrap("read blob", hash, err)
	}
	data, err := r.object(ctx, id, typeBlob, limit)
	return data, r.wrap("read blob", hash, err)
}
