package sweep

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// maxTraced bounds the commits that are looked at for the devices of one pass:
// a day of a busy repository, and well under a second.
const maxTraced = 1000

// loadLooks is for how many of them the making of specs counts: it goes over
// all documents.
const loadLooks = 5

// trace goes back through the history of the source branch for the commits that
// made the desired specs of devices what they are. What differs between a commit
// and its parent is looked at first; only where that can matter to one of the
// devices, its spec as of the parent is made, of the few documents that it needs.
//
// A merge is followed to the first parent that has the same for a device, as git
// log does it: who made the change is found, not who merged it. A merge that
// brings two changes of one device together is the commit that made it what it
// is.
type trace struct {
	remote   Remote
	loader   *schema.Loader
	sought   []*sought
	devices  map[string]bool // their ids
	releases map[string]bool // those that they go to, line/version
	looks    int             // commits that may still be looked at
}

// sought is one device whose cause is looked for.
type sought struct {
	member *schema.Member
	last   *schema.Assignment // that it had before; nil = none is known
	commit string             // what was found; "" = nothing
	as     *schema.Because    // what its last assignment says, where that still holds
}

func newTrace(remote Remote, loader *schema.Loader) *trace {
	return &trace{
		remote: remote, loader: loader.Beside(),
		devices: map[string]bool{}, releases: map[string]bool{}, looks: maxTraced,
	}
}

// seek adds a device that has a desired spec.
func (t *trace) seek(m *schema.Member, last *schema.Assignment) {
	t.sought = append(t.sought, &sought{member: m, last: last})
	t.devices[m.ID] = true
	t.releases[m.Line+"/"+m.Version] = true
}

// trail is a commit at which some devices have what they are to have.
type trail struct {
	commit  string
	files   map[string]schema.Entry // those of it that are kept
	sources map[string]bool         // payloads of the devices
	sought  []*sought
}

// follow looks for all of them, from the fleet in which they have what they are
// assigned. Where the history is not here, or longer than what is looked at,
// what was not found is not.
func (t *trace) follow(ctx context.Context, from *loadedFleet) {
	start := &trail{commit: from.commit, files: map[string]schema.Entry{}, sources: t.sourcesOf(from.fleet, t.sought), sought: t.sought}
	for _, e := range from.entries {
		if t.keeps(e.Path) {
			start.files[e.Path] = e
		}
	}
	for todo := []*trail{start}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if t.looks--; t.looks < 0 {
			return
		}
		todo = append(todo, t.step(ctx, at)...)
	}
}

// step notes the commit for the devices that had something else at all of its
// parents, and gives the ways on which the others are followed. What cannot be
// read ends the search for those that it is read for.
func (t *trace) step(ctx context.Context, at *trail) (further []*trail) {
	left := unsettled(at)
	if len(left) == 0 {
		return nil
	}
	parents, err := t.remote.Parents(ctx, at.commit)
	if err != nil {
		return nil
	}
	for i, parent := range parents {
		files := at.files
		if i < len(parents)-1 {
			files = maps.Clone(files)
		}
		before, matters, err := t.before(ctx, at, parent, files)
		if err != nil {
			return further
		}
		if !matters {
			before.sought = left
			return append(further, before)
		}
		fleet, err := t.load(ctx, before)
		if err != nil {
			return further
		}
		if before.sought, left = split(left, fleet); len(before.sought) > 0 {
			before.sources = t.sourcesOf(fleet, before.sought)
			further = append(further, before)
		}
		if len(left) == 0 {
			return further
		}
	}
	for _, s := range left {
		s.commit = at.commit
	}
	return further
}

// before takes files back to a parent, and says whether anything of that can
// matter to the devices.
func (t *trace) before(ctx context.Context, at *trail, parent string, files map[string]schema.Entry) (*trail, bool, error) {
	matters := false
	err := t.remote.Diff(ctx, at.commit, parent, func(path, _, blob string, mode uint32) error {
		if !t.keeps(path) {
			return nil
		}
		if delete(files, path); blob != "" {
			files[path] = entryOf(path, blob, mode)
		}
		kind, _, _ := schema.DocumentAt(path)
		matters = matters || at.sources[path] || kind != "" && kind != schema.KindFleet
		return nil
	})
	return &trail{commit: parent, files: files, sources: at.sources}, matters, err
}

// keeps says whether a path can have a part in what the devices get: other
// devices and releases have none.
func (t *trace) keeps(path string) bool {
	switch kind, name, line := schema.DocumentAt(path); kind {
	case schema.KindDevice:
		return t.devices[name]
	case schema.KindRelease:
		return t.releases[line+"/"+name]
	}
	return true
}

// load makes the fleet of a trail, with no more in it than the devices.
func (t *trace) load(ctx context.Context, at *trail) (*schema.Fleet, error) {
	t.looks -= loadLooks
	return t.loader.Load(&filesSource{newCommitSource(ctx, t.remote, at.commit), at.files})
}

// filesSource is a commit of which only some files are looked at.
type filesSource struct {
	*commitSource
	files map[string]schema.Entry
}

// Entries lists those files by path.
func (s *filesSource) Entries() ([]schema.Entry, error) {
	return slices.SortedFunc(maps.Values(s.files), func(a, b schema.Entry) int { return strings.Compare(a.Path, b.Path) }), nil
}

func (t *trace) sourcesOf(fleet *schema.Fleet, of []*sought) map[string]bool {
	paths := map[string]bool{}
	for _, s := range of {
		for _, path := range fleet.SourcesOf(s.member.ID) {
			paths[path] = true
		}
	}
	return paths
}

// split parts the devices that have in a fleet what they are assigned from the
// others.
func split(all []*sought, fleet *schema.Fleet) (same, others []*sought) {
	for _, s := range all {
		if was := fleet.Member(s.member.ID); was != nil && was.Rendered != nil &&
			was.Version == s.member.Version && was.Rendered.Digest == s.member.Rendered.Digest {
			same = append(same, s)
		} else {
			others = append(others, s)
		}
	}
	return same, others
}

// unsettled leaves out the devices that a commit has led to their last
// assignment: what was not changed since then is not looked for further back,
// and has no other cause, unless it is no commit at all but another gitopsd.
func unsettled(at *trail) []*sought {
	var open []*sought
	for _, s := range at.sought {
		switch {
		case s.last == nil || s.last.Because == nil || s.last.Because.Commit != at.commit:
			open = append(open, s)
		case s.last.Version == s.member.Version && s.last.Digest == s.member.Rendered.Digest:
			s.as = s.last.Because
		}
	}
	return open
}
