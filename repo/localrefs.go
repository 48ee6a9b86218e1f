package repo

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// localRefs are the refs of a repository folder, read and moved as git itself
// does: gitrepository-layout(5), git-pack-refs(1), and the lock files of
// lockfile.h. go-git writes refs in place, without lock and without rename,
// so it is not used here.
type localRefs struct {
	dir    string // the common folder: of objects and refs
	shared bool   // see localDir
}

const (
	// maxSymref is git's own bound for refs that point to refs.
	maxSymref = 5
	// maxRefFile bounds a loose ref in bytes: a hash, or the name of a ref.
	maxRefFile = 4 << 10
)

// readFile gives the content of a loose ref: a hash or the target of a
// symbolic one. A name that is no regular file is no ref.
func (l localRefs) readFile(name string) (id oid, target string, err error) {
	path := filepath.Join(l.dir, filepath.FromSlash(name))
	fi, err := os.Lstat(path)
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			err = fs.ErrNotExist
		}
		return zero, "", err
	}
	if !fi.Mode().IsRegular() {
		return zero, "", fs.ErrNotExist
	}
	f, err := os.Open(path)
	if err != nil {
		return zero, "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRefFile))
	if err != nil {
		return zero, "", err
	}
	text := strings.TrimRight(string(b), "\n\r\t ")
	if t, ok := strings.CutPrefix(text, "ref:"); ok {
		return zero, strings.TrimSpace(t), nil
	}
	id, err = parseOID(text)
	if err != nil {
		return zero, "", fail(kindCorrupt, "the ref file %s holds no hash", path).
			hint("`git fsck` in that repository says more; remove the file if the ref is not needed")
	}
	return id, "", nil
}

// read gives the value of a ref, zero when it does not exist.
func (l localRefs) read(name string) (oid, error) {
	for range maxSymref {
		id, target, err := l.readFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			packed, err := l.packed(func(n string) bool { return n == name })
			if err != nil {
				return zero, err
			}
			return packed[name], nil
		case err != nil:
			return zero, err
		case target == "":
			return id, nil
		}
		if err := validRef(target); err != nil {
			return zero, err
		}
		name = target
	}
	return zero, fail(kindCorrupt, "%s: symbolic refs that point to each other", name)
}

// head is the ref that HEAD points to, "" when it is detached.
func (l localRefs) head() (string, error) {
	b, err := os.ReadFile(filepath.Join(l.dir, "HEAD"))
	if err != nil {
		return "", err
	}
	if t, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "ref:"); ok {
		t = strings.TrimSpace(t)
		return t, validRef(t)
	}
	return "", nil
}

// packed reads packed-refs, as far as want says.
func (l localRefs) packed(want func(string) bool) (map[string]oid, error) {
	refs := map[string]oid{}
	f, err := os.Open(filepath.Join(l.dir, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return refs, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = scanPacked(f, func(line, name string, id oid) error {
		if name != "" && want(name) {
			refs[name] = id
		}
		return nil
	})
	return refs, err
}

// scanPacked gives each line of packed-refs; name is "" for headers and for
// the peeled value of a tag, which belongs to the ref of the line before.
func scanPacked(r io.Reader, fn func(line, name string, id oid) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 4<<10), 64<<10)
	for sc.Scan() {
		line := sc.Text()
		if line == "" || line[0] == '#' || line[0] == '^' {
			if err := fn(line, "", zero); err != nil {
				return err
			}
			continue
		}
		hash, name, ok := strings.Cut(line, " ")
		id, err := parseOID(hash)
		if !ok || err != nil {
			return fail(kindCorrupt, "packed-refs cannot be read at %q", sanitize(line, 60))
		}
		if err := fn(line, name, id); err != nil {
			return err
		}
	}
	return sc.Err()
}

// list gives the refs that begin with one of the prefixes. A ref whose file
// holds no value is left out, and is broken: a power cut leaves such files, and
// one must not hide the others. Asked for by its whole name it is an error.
func (l localRefs) list(ctx context.Context, prefixes []string) (refs map[string]oid, broken map[string]error, err error) {
	want := anyPrefix(prefixes)
	// Loose first: a ref that is packed meanwhile is then found packed, while
	// the other way round it would be missed.
	loose := map[string]oid{}
	broken = map[string]error{}
	for _, p := range prefixes {
		dir := p[:strings.LastIndexByte(p, '/')]
		if err := l.walk(ctx, dir, p, loose, broken); err != nil {
			return nil, nil, err
		}
	}
	refs, err = l.packed(func(n string) bool { return want(n) && validRef(n) == nil })
	if err != nil {
		return nil, nil, err
	}
	for name, id := range loose {
		refs[name] = id
	}
	for name := range broken {
		delete(refs, name) // an older value
	}
	return refs, broken, nil
}

// walk collects the loose refs below a folder that begin with prefix.
func (l localRefs) walk(ctx context.Context, dir, prefix string, into map[string]oid, broken map[string]error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if dir != "refs" && validPrefix(dir+"/") != nil {
		return nil
	}
	if fi, err := os.Lstat(filepath.Join(l.dir, filepath.FromSlash(dir))); err != nil || !fi.IsDir() {
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil
		}
		return err
	}
	entries, err := os.ReadDir(filepath.Join(l.dir, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			if strings.HasPrefix(name+"/", prefix) || strings.HasPrefix(prefix, name+"/") {
				if err := l.walk(ctx, name, prefix, into, broken); err != nil {
					return err
				}
			}
			continue
		}
		if !strings.HasPrefix(name, prefix) || validRef(name) != nil {
			continue
		}
		id, target, err := l.readFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if hasKind(err, kindCorrupt) && name != prefix {
			broken[name] = err
			continue
		}
		if err != nil {
			return err
		}
		if target != "" {
			if id, err = l.read(name); err != nil || id.IsZero() {
				continue
			}
		}
		into[name] = id
	}
	return nil
}
