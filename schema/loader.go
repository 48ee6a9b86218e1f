package schema

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Loader turns revisions into fleets and remembers by content id what it has
// parsed and rendered, so that a later Load costs what changed. It is not safe
// for concurrent use; the fleets that it gives are.
type Loader struct {
	// OwnVersion is the version that an empty targetVersion means.
	OwnVersion string
	// ProblemsOnly is for those who want to know what is wrong, and no more:
	// each device is let go once it was looked at, which takes a tenth of the
	// memory. The problems are the same; but no member has its Rendered, its
	// Rollout, variables or a part of its own, those of devices that differ in
	// nothing else share one that has the name of one of them, ReleaseDigest
	// and Origins know nothing, and a later Load begins anew.
	ProblemsOnly bool
	// Readers is how many goroutines may call Read of a source at once, beside
	// the one that calls Load; with 0, only that one does. It is for
	// ProblemsOnly, and more than a few are not made use of.
	Readers int
	// Stop is asked before each device, and its error ends the Load: what a
	// stranger wrote may take hours. nil = nobody stops it.
	Stop func() error

	contents  map[contentKey]*content
	files     map[string]*file // by path
	payloads  map[string]*payload
	templates map[string]*triedTemplate // by text
	// templateBytes is the size of those texts.
	templateBytes int
	groups        map[string]*group
	states        map[string]*deviceState   // by path
	shared        [sha256.Size]byte         // over all that is not a device's own
	zones         map[string]*time.Location // by name, of the windows
}

// Beside gives a loader that knows what this one has parsed and leaves it as it
// is, for other revisions that are looked at beside those that it loads.
func (l *Loader) Beside() *Loader {
	return &Loader{OwnVersion: l.OwnVersion, contents: l.contents, files: l.files, payloads: l.payloads}
}

// contentKey: the same bytes say different things as different kinds.
type contentKey struct {
	id   string
	kind Kind
}

// Load reads, checks and renders one revision. The error is for a source that
// cannot be read; wrong content is in the fleet's Problems.
func (l *Loader) Load(src Source) (*Fleet, error) {
	entries, err := src.Entries()
	if err != nil {
		return nil, fmt.Errorf("list the fleet repository: %w", err)
	}
	p := &pass{loader: l, src: src, entries: entries,
		contents: map[contentKey]*content{}, files: map[string]*file{}, payloads: map[string]*payload{},
		groups: map[string]*group{}, states: map[string]*deviceState{}, uses: map[*file]*policyUse{}, overlaps: map[policyPair]*spreadFinding{},
		lines: map[string]map[string]*file{}, unusable: map[*file]bool{}, keys: map[*file]string{},
		spread: map[findingKey]*spreadFinding{}, documents: map[*file]*document{}, interned: map[string][]byte{}, renderedOnce: map[[8]byte]struct{}{}, groupsAlike: map[alikeKey]*group{},
		names: map[string][]string{}, known: map[findingKey]*findingKey{}, areVersions: map[string]bool{}}
	if err := p.readFiles(); err != nil {
		return nil, err
	}
	p.checkIDs()
	if err := p.checkSources(); err != nil {
		return nil, err
	}
	p.beginUses()
	p.everyone = make([]*Member, 0, len(p.devices)+len(p.later))
	if l.ProblemsOnly {
		if err := p.stream(); err != nil {
			return nil, err
		}
		p.checkPolicies()
		p.warnings()
		fleet := p.fleet()
		fleet.zones = p.loadZones()
		return fleet, nil
	}
	p.sharedKey()
	if err := p.members(); err != nil {
		return nil, err
	}
	for _, f := range p.devices {
		p.use(f, p.states[f.path], p.states[f.path].member)
	}
	p.checkPolicies()
	p.rollouts()
	for i, f := range p.devices {
		p.everyone[i] = p.states[f.path].member
		p.settle(f, p.states[f.path])
	}
	p.warnings()
	fleet := p.fleet()
	fleet.states = make(map[*Member]*deviceState, len(p.devices))
	for _, f := range p.devices {
		fleet.states[p.states[f.path].member] = p.states[f.path]
	}
	fleet.releases = p.releaseDigests()
	p.keepWritten(fleet)
	fleet.zones = p.loadZones()
	l.contents, l.files, l.payloads, l.groups, l.states, l.shared =
		p.contents, p.files, p.payloads, p.groups, p.states, p.shared
	if l.templateBytes > maxTemplatesKept {
		l.templates, l.templateBytes = nil, 0
	}
	return fleet, nil
}

// maxTemplatesKept bounds the texts of the compiled templates that outlive a
// Load, in bytes; a fleet has a few for each release.
const maxTemplatesKept = 16 << 20
