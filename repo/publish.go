package repo

import (
	"bytes"
	"context"
	"fmt"
	"sort"
)

// servedSize is from how many bytes on a published blob is remembered, so
// that a payload is not sent again with every delivery that names it.
const servedSize = 4 << 10

// Publish moves refs by compare-and-swap, {old, new} each, "" = absent. lead
// goes first: if any of it is refused, nothing of rest moves and the error's
// Kind is race or refused. Where the server can, all goes in one atomic push.
// refused holds the refs of rest that did not move, and why.
//
// It sends what the new commits need and the other side is not known to have.
// After an error of the kinds network and timeout it is not known what has
// moved: list the refs.
func (r *Repo) Publish(ctx context.Context, lead, rest map[string][2]string) (refused map[string]string, err error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	first, err := parseUpdates(lead)
	if err != nil {
		return nil, r.wrap("publish", "", err)
	}
	others, err := parseUpdates(rest)
	if err != nil {
		return nil, r.wrap("publish", "", err)
	}
	refused = map[string]string{}
	if len(first)+len(others) == 0 {
		return refused, nil
	}
	r.made.nextRound()
	if r.local != nil {
		err = r.publishLocal(ctx, first, others, refused)
	} else {
		err = r.publishRemote(ctx, first, others, refused)
	}
	name := ""
	if len(first) == 1 {
		name = first[0].name
	}
	return refused, r.wrap("publish", name, err)
}

// parseUpdates checks and sorts; what does not move is left out.
func parseUpdates(m map[string][2]string) ([]refUpdate, error) {
	var list []refUpdate
	for name, v := range m {
		u := refUpdate{name: name}
		err := validRef(name)
		if err == nil {
			u.old, err = optionalOID(v[0])
		}
		if err == nil {
			u.new, err = optionalOID(v[1])
		}
		if err != nil {
			return nil, err
		}
		if u.old != u.new {
			list = append(list, u)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list, nil
}

// gather collects the objects that the updates need.
func (r *Repo) gather(ctx context.Context, g *gathering, cmds []refUpdate) error {
	for _, u := range cmds {
		if u.new.IsZero() {
			continue
		}
		if err := g.commit(ctx, u.new); err != nil {
			return fmt.Errorf("%s: %w", u.name, err)
		}
	}
	return nil
}

func (r *Repo) newGathering() *gathering {
	return &gathering{
		get:  func(ctx context.Context, id oid) (objectType, []byte, error) { return r.find(ctx, id, 0) },
		at:   map[oid]bool{},
		seen: map[oid]bool{},
		skip: func(oid) bool { return false },
	}
}

func (r *Repo) publishLocal(ctx context.Context, first, others []refUpdate, refused map[string]string) error {
	for _, u := range first {
		if err := r.mayMove(u); err != nil {
			return err
		}
	}
	g := r.newGathering()
	// What is in the repository is there with all it reaches.
	g.skip = r.objs.has
	for _, u := range append(append([]refUpdate(nil), first...), others...) {
		g.at[u.old] = true
		if !u.new.IsZero() && r.objs.has(u.new) {
			g.at[u.new] = true
		}
	}
	if err := r.gather(ctx, g, first); err != nil {
		return err
	}
	if err := r.gather(ctx, g, others); err != nil {
		return err
	}
	if err := addObjects(r.local, g.objs); err != nil {
		return err
	}
	if len(g.objs) > looseLimit {
		r.objs.reopen()
	}
	if err := r.refs.update(ctx, first, false); err != nil {
		return err
	}
	for _, u := range others {
		err := r.mayMove(u)
		if err == nil {
			err = r.refs.update(ctx, []refUpdate{u}, true)
		}
		if err != nil {
			refused[u.name] = err.Error()
		}
	}
	r.forgive(ctx, others, refused)
	if len(refused) == 0 {
		r.made.done(g.objs)
	}
	return nil
}

func (r *Repo) mayMove(u refUpdate) error {
	if r.local.checkedOut(u.name) {
		return fail(kindRefused, "%s is checked out in a work tree", u.name).
			hint("use a bare repository, or check another branch out there")
	}
	return nil
}

func (r *Repo) publishRemote(ctx context.Context, first, others []refUpdate, refused map[string]string) error {
	err := r.pushAll(ctx, first, others, refused, false)
	if err != nil && isIncomplete(err.Error()) || len(others) > 0 && allIncomplete(others, refused) {
		// The server lacks something that it once had: send it all.
		clear(refused)
		err = r.pushAll(ctx, first, others, refused, true)
	}
	return err
}

// pushAll sends lead and rest, together where that can be all or nothing.
func (r *Repo) pushAll(ctx context.Context, first, others []refUpdate, refused map[string]string, whole bool) error {
	g := r.newGathering()
	g.thin = !whole
	r.mu.Lock()
	served := r.served
	r.mu.Unlock()
	if !whole {
		g.skip = func(id oid) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return served[id]
		}
		for _, k := range r.store.all() {
			g.at[k.id] = true
		}
	}
	for _, u := range append(append([]refUpdate(nil), first...), others...) {
		g.at[u.old] = true
	}
	if err := r.gather(ctx, g, first); err != nil {
		return err
	}
	leading := len(g.objs)
	if err := r.gather(ctx, g, others); err != nil {
		return err
	}
	lead, all := g.objs[:leading], g.objs

	if len(first) > 0 {
		together := false
		res, err := r.remote.push(ctx, func(c capabilities) (*pushRequest, error) {
			together = len(others) > 0 && c.has("atomic")
			if together {
				return newPush(append(append([]refUpdate(nil), first...), others...), all, true)
			}
			return newPush(first, lead, len(first) > 1 && c.has("atomic"))
		})
		why := outcome(res, err, first)
		if together && err == nil && why == nil {
			why = outcome(res, nil, others)
		}
		if why != nil {
			if moved, verdict := r.judge(ctx, first, why); verdict != nil {
				return verdict
			} else if !moved {
				// Not the lead is at fault, or it is not known: alone it shows.
				if !together {
					return why
				}
				res, err := r.remote.push(ctx, func(c capabilities) (*pushRequest, error) {
					return newPush(first, lead, len(first) > 1 && c.has("atomic"))
				})
				if why := outcome(res, err, first); why != nil {
					moved, verdict := r.judge(ctx, first, why)
					if verdict != nil {
						return verdict
					}
					if !moved {
						return why
					}
				}
			}
		} else if together {
			r.published(ctx, first, lead, all)
			return nil
		}
		r.published(ctx, first, lead, lead)
	}
	if len(others) == 0 {
		return nil
	}
	res, err := r.remote.push(ctx, func(capabilities) (*pushRequest, error) { return newPush(others, all[leading:], false) })
	if err != nil {
		if len(first) == 0 {
			return err
		}
		for _, u := range others {
			refused[u.name] = err.Error()
		}
	} else {
		for _, u := range others {
			if why := res.reason(u.name); why != "" {
				refused[u.name] = withNotes(why, res.notes)
			}
		}
	}
	r.forgive(ctx, others, refused)
	if len(refused) == 0 {
		r.made.done(all)
	}
	return nil
}

// newPush packs the objects behind the commands.
func newPush(cmds []refUpdate, objs []outObject, atomic bool) (*pushRequest, error) {
	p := &pushRequest{cmds: cmds, atomic: atomic}
	for _, u := range cmds {
		if !u.new.IsZero() {
			var b bytes.Buffer
			if _, err := writePack(&b, objs); err != nil {
				return nil, err
			}
			p.pack = b.Bytes()
			break
		}
	}
	return p, nil
}

// published keeps what has been sent, so that it need not be fetched.
func (r *Repo) published(ctx context.Context, first []refUpdate, lead, sent []outObject) {
	r.mu.Lock()
	for _, o := range sent {
		if o.typ == typeBlob && len(o.data) >= servedSize {
			r.served[o.id] = true
		}
	}
	r.mu.Unlock()
	r.fetches.Lock()
	defer r.fetches.Unlock()
	history := false
	for _, u := range first {
		history = history || !r.store.get(u.name, true).IsZero()
	}
	whole := append([]outObject(nil), lead...)
	for i := range whole {
		whole[i].baseData = nil
	}
	err := r.store.add(whole, history)
	for _, u := range first {
		if err == nil && !u.new.IsZero() {
			err = r.store.keep(u.name, history, u.new)
		}
	}
	if err != nil {
		// What was published is fetched instead the next time.
		r.log.Warn("what was published could not be kept", "repo", r.at.String(), "cause", err)
	} else {
		r.tidy(withoutHeal(ctx))
	}
	r.made.done(sent)
}
