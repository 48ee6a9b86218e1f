package repo

import (
	"context"
	"errors"
	"io"
	"sort"
	"strings"
)

const (
	// tipEntries bounds the files of one small commit.
	tipEntries = 4096
	// tipsAtOnce bounds the commits of one request: 50 bytes each on the wire.
	tipsAtOnce = 5000
	// tipSlack is what commit and trees may take beside the content, in bytes.
	tipSlack = 256 << 10
	// tipsMemory bounds what one exchange may take, in bytes, however many
	// tips it is for; a fleet of honest reports is far below it.
	tipsMemory = 256 << 20
	// defaultTip bounds a tip for which the caller names no limit, in bytes.
	defaultTip = 64 << 20
)

// tipLimits bound the pack of n tips of limit bytes each. Compressed content
// may be slightly larger than the content itself.
func tipLimits(limit int64, n int) packLimits {
	each := limit + limit/100 + tipSlack
	all := max(min(each*int64(n), tipsMemory), each)
	return packLimits{
		packBytes:  all,
		objects:    int64(tipEntries+64) * int64(n),
		objectSize: limit + tipSlack,
		totalSize:  2 * all,
	}
}

// errTipLimit marks a tip that is larger than the caller wants it.
var errTipLimit = errors.New("larger than allowed")

// tipFiles reads the files of a commit's tree, of at most limit bytes in
// total, names included. lacking is asked of a file that is not there: whether
// to go on with no content for it; nil = no.
func tipFiles(ctx context.Context, get func(context.Context, oid, objectType, int64) ([]byte, error), id oid, limit int64, lacking func(path string, blob oid) bool) (map[string][]byte, error) {
	data, err := get(ctx, id, typeCommit, tipSlack)
	if err != nil {
		return nil, err
	}
	c, err := parseCommit(data)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	left := limit
	w := &walker{get: func(ctx context.Context, id oid, typ objectType) ([]byte, error) { return get(ctx, id, typ, tipSlack) }}
	err = w.walk(ctx, c.tree, "", 0, func(path string, e treeEntry) error {
		if e.mode != modeFile && e.mode != modeExec {
			return nil
		}
		if w.seen > tipEntries {
			return fail(kindRefused, "more than %d files: %w", tipEntries, errTipLimit)
		}
		if left -= int64(len(path)); left <= 0 {
			return fail(kindRefused, "more than %d bytes: %w", limit, errTipLimit)
		}
		blob, err := get(ctx, e.id, typeBlob, left)
		switch {
		case errors.Is(err, errMissing) && lacking != nil && lacking(path, e.id):
			files[path] = nil
			return nil
		case err != nil:
			return err
		case blob == nil:
			blob = []byte{} // which is there
		}
		if left -= int64(len(blob)); left < 0 {
			return fail(kindRefused, "more than %d bytes: %w", limit, errTipLimit)
		}
		files[path] = blob
		return nil
	})
	return files, err
}

// Tips reads the trees of small parentless commits, all of them in one
// exchange: ref → commit in, ref → path → content out. A tip that is over
// limit bytes in total is left out. One that cannot be read has a nil map: it
// is gone meanwhile, damaged, or no commit.
func (r *Repo) Tips(ctx context.Context, refs map[string]string, limit int64) (map[string]map[string][]byte, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	out, err := r.tips(ctx, refs, limit)
	return out, r.wrap("read tips", "", err)
}

func (r *Repo) tips(ctx context.Context, refs map[string]string, limit int64) (map[string]map[string][]byte, error) {
	if limit <= 0 {
		limit = defaultTip
	}
	want := map[oid][]string{}
	for ref, commit := range refs {
		id, err := parseOID(commit)
		if err != nil {
			return nil, err
		}
		want[id] = append(want[id], ref)
	}
	out := map[string]map[string][]byte{}
	take := func(id oid, get func(context.Context, oid, objectType, int64) ([]byte, error)) error {
		files, err := tipFiles(ctx, get, id, limit, nil)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// One hostile or half-written tip must not hide the others.
			r.log.Debug("a tip is left out", "repo", r.at.String(), "refs", strings.Join(want[id], " "), "cause", err)
			if hasKind(err, kindRefused) { // what makes it too large
				return nil
			}
			files = nil
		}
		for _, ref := range want[id] {
			out[ref] = files
		}
		return nil
	}
	var ask []oid
	for id := range want {
		ask = append(ask, id)
	}
	sort.Slice(ask, func(i, j int) bool { return ask[i].String() < ask[j].String() })
	if r.local != nil {
		for _, id := range ask {
			if err := take(id, r.localObject); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	f := &tipsFetch{r: r, limit: limit, take: take, left: tipsDamaged}
	for len(ask) > 0 {
		n := min(len(ask), tipsAtOnce)
		if err := f.fetch(ctx, ask[:n]); err != nil {
			return nil, err
		}
		ask = ask[n:]
	}
	return out, nil
}

func (r *Repo) localObject(ctx context.Context, id oid, typ objectType, limit int64) ([]byte, error) {
	t, data, err := r.find(ctx, id, limit)
	if err == nil && t != typ {
		err = fail(kindCorrupt, "%s is a %s, not a %s", id, t, typ)
	}
	return data, err
}

// tipsDamaged bounds the exchanges that fail over damage on the server: to find
// the damaged tips among thousands takes some dozen each.
const tipsDamaged = 500

// tipsFetch reads tips of a remote repository.
type tipsFetch struct {
	r     *Repo
	limit int64
	take  func(oid, func(context.Context, oid, objectType, int64) ([]byte, error)) error
	left  int // of tipsDamaged
}

// fetch reads tips in one exchange. When together they are over what they may
// be, or the server cannot give one of them, each half is asked for alone, down
// to the one that is at fault.
func (f *tipsFetch) fetch(ctx context.Context, ids []oid) error {
	file := &memoryPack{}
	var pack *packData
	err := f.r.remote.upload(ctx, question{byHash: true}, func(l *listing) (*fetchRequest, error) {
		req := &fetchRequest{depth: 1}
		for _, id := range ids {
			if l.v2 || l.all[id] {
				req.wants = append(req.wants, id)
			}
		}
		if len(req.wants) == 0 {
			return nil, nil
		}
		return req, nil
	}, func(rd io.Reader) (err error) {
		pack, err = readPack(rd, file, tipLimits(f.limit, len(ids)), nil)
		return err
	})
	damaged := hasKind(err, kindCorrupt)
	if damaged {
		f.left--
	}
	switch {
	case err == nil:
	case damaged && f.left <= 0:
		return err
	case !damaged && !errors.Is(err, ErrTooLarge) && !hasKind(err, kindNotFound):
		return err
	case hasKind(err, kindNotFound) && !strings.Contains(err.Error(), "not our ref"):
		return err
	case len(ids) > 1:
		half := len(ids) / 2
		if err := f.fetch(ctx, ids[:half]); err != nil {
			return err
		}
		return f.fetch(ctx, ids[half:])
	}
	get := func(ctx context.Context, id oid, typ objectType, limit int64) ([]byte, error) {
		switch {
		case err != nil:
			return nil, err
		case pack == nil:
			return nil, errMissing
		}
		return pack.typed(ctx, id, typ, limit)
	}
	for _, id := range ids {
		if err := f.take(id, get); err != nil {
			return err
		}
	}
	return nil
}

// typed is object for a type, of at most limit bytes.
func (p *packData) typed(_ context.Context, id oid, typ objectType, limit int64) ([]byte, error) {
	t, data, err := p.object(id)
	switch {
	case err != nil:
		return nil, err
	case t != typ:
		return nil, fail(kindCorrupt, "%s is a %s, not a %s", id, t, typ)
	case limit > 0 && int64(len(data)) > limit:
		return nil, tooLarge(id, int64(len(data)), limit)
	}
	return data, nil
}
