package repo

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// pending holds the objects that were made here and are not yet on the other
// side.
type pending struct {
	mu    sync.Mutex
	objs  map[oid]*pendingObject
	round int // rises with every publication
}

type pendingObject struct {
	typ   objectType
	data  []byte
	round int
}

// pendingRounds is how many publications an object outlives that none of them
// needed, as those of commits that lost their race; a caller builds a commit
// and publishes it in the same pass.
const pendingRounds = 16

func (p *pending) put(typ objectType, id oid, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objs == nil {
		p.objs = map[oid]*pendingObject{}
	}
	if o, ok := p.objs[id]; ok {
		o.round = p.round
		return
	}
	p.objs[id] = &pendingObject{typ: typ, data: data, round: p.round}
}

func (p *pending) get(id oid) (objectType, []byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, ok := p.objs[id]
	if !ok {
		return 0, nil, false
	}
	return o.typ, o.data, true
}

// done forgets what has been published.
func (p *pending) done(objs []outObject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range objs {
		delete(p.objs, o.id)
	}
}

// nextRound counts a publication and drops what nobody will publish any more.
func (p *pending) nextRound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	for id, o := range p.objs {
		if p.round-o.round > pendingRounds {
			delete(p.objs, id)
		}
	}
}

// gathering collects what the other side needs before refs can move.
type gathering struct {
	get    func(ctx context.Context, id oid) (objectType, []byte, error)
	at     map[oid]bool // commits that the other side has, with all they reach
	skip   func(oid) bool
	seen   map[oid]bool
	objs   []outObject
	thin   bool
	budget int64
}

// maxPush bounds what one publication may hold in memory, in bytes.
const maxPush = 1 << 30

func (g *gathering) add(o outObject) error {
	g.seen[o.id] = true
	if g.budget += int64(len(o.data)); g.budget > maxPush {
		return fail(kindRefused, "more than %d bytes to publish at once", maxPush)
	}
	g.objs = append(g.objs, o)
	return nil
}

func (g *gathering) read(ctx context.Context, id oid, typ objectType) ([]byte, error) {
	t, data, err := g.get(ctx, id)
	if err != nil {
		if errors.Is(err, errMissing) {
			return nil, fail(kindNotFound, "the %s %s is not here", typ, id).hint("it was neither fetched nor made here")
		}
		return nil, err
	}
	if t != typ {
		return nil, fail(kindCorrupt, "%s is a %s, not a %s", id, t, typ)
	}
	return data, nil
}

// commit gathers a commit that the other side lacks and what it reaches.
func (g *gathering) commit(ctx context.Context, id oid) error {
	// A list instead of recursion: a history may be long.
	var chain []oid
	todo := []oid{id}
	parsed := map[oid]*commit{}
	raw := map[oid][]byte{}
	for len(todo) > 0 {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if g.at[c] || g.seen[c] || parsed[c] != nil {
			continue
		}
		data, err := g.read(ctx, c, typeCommit)
		if err != nil {
			return err
		}
		pc, err := parseCommit(data)
		if err != nil {
			return err
		}
		parsed[c], raw[c] = pc, data
		chain = append(chain, c)
		todo = append(todo, pc.parents...)
	}
	// Oldest last in the chain; an order in which parents come first is not
	// needed, only that every commit is looked at once.
	for i := len(chain) - 1; i >= 0; i-- {
		c := parsed[chain[i]]
		base := zero
		if len(c.parents) > 0 {
			data, err := g.read(ctx, c.parents[0], typeCommit)
			if err == nil {
				var pc *commit
				if pc, err = parseCommit(data); err == nil {
					base = pc.tree
				}
			}
			if err != nil {
				return fmt.Errorf("parent of %s: %w", chain[i], err)
			}
		}
		if err := g.tree(ctx, c.tree, base, 0); err != nil {
			return err
		}
		if err := g.add(outObject{id: chain[i], typ: typeCommit, data: raw[chain[i]]}); err != nil {
			return err
		}
	}
	return nil
}

// tree gathers what is in a tree but not in base, which the other side has or
// gets in the same pack.
func (g *gathering) tree(ctx context.Context, id, base oid, depth int) error {
	if id == base || g.seen[id] {
		return nil
	}
	if depth > maxDepth {
		return fail(kindRefused, "folders nested deeper than %d", maxDepth)
	}
	data, err := g.read(ctx, id, typeTree)
	if err != nil {
		return err
	}
	entries, err := parseTree(data)
	if err != nil {
		return err
	}
	o := outObject{id: id, typ: typeTree, data: data}
	old := map[string]treeEntry{}
	if !base.IsZero() {
		baseData, err := g.read(ctx, base, typeTree)
		if err != nil {
			return err
		}
		list, err := parseTree(baseData)
		if err != nil {
			return err
		}
		for _, e := range list {
			old[e.name] = e
		}
		if g.thin {
			o.base, o.baseData = base, baseData
		}
	}
	if err := g.add(o); err != nil {
		return err
	}
	for _, e := range entries {
		was := old[e.name]
		switch {
		case e.id == was.id || e.mode == modeGitlink:
		case e.mode == modeTree:
			sub := zero
			if was.mode == modeTree {
				sub = was.id
			}
			if err := g.tree(ctx, e.id, sub, depth+1); err != nil {
				return err
			}
		case g.seen[e.id] || g.skip(e.id):
		default:
			blob, err := g.read(ctx, e.id, typeBlob)
			if err != nil {
				return err
			}
			if err := g.add(outObject{id: e.id, typ: typeBlob, data: blob}); err != nil {
				return err
			}
		}
	}
	return nil
}
