package schema

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// pass is one Load.
type pass struct {
	loader  *Loader
	src     Source
	entries []Entry

	contents map[contentKey]*content
	files    map[string]*file
	payloads map[string]*payload
	groups   map[string]*group
	states   map[string]*deviceState
	shared   [sha256.Size]byte

	policies  []*file // sorted by path, and so by name
	overlays  []*file
	devices   []*file
	releases  []*file
	fleetFile *file     // fleet.yaml; nil = none
	later     []int     // entries of devices that are looked at one after the other
	everyone  []*Member // by path
	unsure    bool      // the labels of some device are not known, as it is broken
	uses      map[*file]*policyUse
	overlaps  map[policyPair]*spreadFinding
	lines     map[string]map[string]*file // releases by line and version

	unusable map[*file]bool   // documents that name a source that is not there
	keys     map[*file]string // of documents, with the ids of their sources
	interned map[string][]byte
	// renderedOnce holds the digests of what was rendered and not kept.
	renderedOnce map[[8]byte]struct{}
	sources      map[string]bool // that devices name which are not kept
	lent         *scratch        // for the device that is looked at; nil where devices are kept whole
	// alike is what is kept of the device that is looked at, and of all others
	// with its labels; nil where devices are kept whole.
	alike       *Device
	groupsAlike map[alikeKey]*group
	composes    map[[sha256.Size]byte]readCompose
	rendered    int64         // bytes that templates rendered to, each content once
	unread      []placedEntry // what is no document, where only documents belong
	problems    []Problem
	unlisted    int     // problems beyond maxListed
	firstBeyond Problem // of those
	spread      map[findingKey]*spreadFinding
	documents   map[*file]*document // of files that a problem needed a position of
	names       map[string][]string // see namesIn
	hinted      int                 // missing sources that a name was looked for
	guessed     int                 // selectors that a label was looked for
	atRoot      int                 // files of the root that were looked into
	known       map[findingKey]*findingKey
	areVersions map[string]bool
}

type placedEntry struct {
	path  string
	place placed
}

// maxListed bounds the problems of a fleet that are kept: nobody reads more,
// and a repository of a few kilobytes can name one wrong document a million
// times.
const maxListed = 100_000

func (p *pass) problem(list ...Problem) {
	kept := min(len(list), max(0, maxListed-len(p.problems)))
	p.problems = append(p.problems, list[:kept]...)
	for _, prob := range list[kept:] {
		if p.unlisted++; p.unlisted == 1 {
			p.firstBeyond = prob
		}
		if prob.Severity == SeverityError {
			p.firstBeyond.Severity = SeverityError
		}
	}
}

// sayUnlisted lets one problem stand for all that are not listed.
func (p *pass) sayUnlisted() {
	if p.unlisted == 0 {
		return
	}
	if more := p.unlisted - 1; more > 0 {
		p.firstBeyond.Message += fmt.Sprintf(" (%d further problems of the fleet are not listed)", more)
	}
	p.problems = append(p.problems, p.firstBeyond)
}

func (p *pass) fileProblem(path, rule, msg, hint string) {
	p.problem(Problem{File: path, Rule: rule, Severity: SeverityError, Message: msg, Hint: hint})
}

// readFiles finds the documents and reads those that changed.
func (p *pass) readFiles() error {
	for i := range p.entries {
		e := &p.entries[i]
		if known, ok := p.loader.files[e.Path]; ok && e.ID != "" && known.id == e.ID && isRegular(e.Mode) {
			p.keep(known)
			continue
		}
		where := place(e.Path)
		switch {
		case where.kind == KindDevice && isRegular(e.Mode) && p.loader.ProblemsOnly:
			p.later = append(p.later, i)
			continue
		case where.kind == "" && where.rule == "":
			if err := p.rootDocument(e); err != nil {
				return err
			}
			continue
		case where.rule == rulePath:
			p.fileProblem(clip(e.Path), where.rule, where.msg, where.hint)
			continue
		case where.rule != "":
			p.unread = append(p.unread, placedEntry{e.Path, where})
			continue
		case !isRegular(e.Mode):
			p.fileProblem(e.Path, ruleNotRegular, fmt.Sprintf("a document must be a file, not %s", modeWord(e.Mode)), "put the document itself here")
			continue
		}
		c, err := p.read(e, where.kind)
		if err != nil {
			return err
		}
		p.keep(newFile(e.Path, e.ID, where, c))
	}
	p.hiddenFolders()
	return nil
}

// hiddenFolders tells of symlinks and submodules that could stand for a folder
// of documents, which would all be missed.
func (p *pass) hiddenFolders() {
	for i := range p.entries {
		e := &p.entries[i]
		if isRegular(e.Mode) || place(e.Path).kind != "" {
			continue
		}
		switch top, rest, _ := strings.Cut(e.Path, "/"); {
		case !isFleetFolder(top) || top == dirPayloads:
		case top == dirReleases && strings.Count(rest, "/") > 1: // a payload
		case strings.Contains("/"+rest, "/"+dirPayloads+"/"):
		default:
			p.fileProblem(clip(e.Path), ruleNotRegular, fmt.Sprintf("%s is not followed", modeWord(e.Mode)), "put the files themselves here")
		}
	}
}

func isRegular(m EntryMode) bool { return m == ModeRegular || m == ModeExecutable }

func modeWord(m EntryMode) string {
	if m == ModeSubmodule {
		return "a submodule"
	}
	return "a symlink"
}

func (p *pass) read(e *Entry, kind Kind) (*content, error) {
	key := contentKey{e.ID, kind}
	if e.ID != "" {
		for _, known := range []map[contentKey]*content{p.contents, p.loader.contents} {
			if c, ok := known[key]; ok {
				return c, nil
			}
		}
	}
	data, err := p.src.Read(*e, maxDocument)
	if errors.Is(err, ErrTooLarge) {
		return &content{kind: kind, broken: true, problems: []Problem{{Line: 1, Rule: ruleTooLarge, Severity: SeverityError,
			Message: fmt.Sprintf("the document has more than the %d bytes that are read", maxDocument),
			Hint:    "put large content into a file of its own and name it as source"}}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", clip(e.Path), err)
	}
	return newContent(kind, data), nil
}

// keep takes a file into this revision.
func (p *pass) keep(f *file) {
	p.files[f.path] = f
	if f.id != "" {
		p.contents[contentKey{f.id, f.place.kind}] = f.content
	}
	p.problem(f.problems...)
	switch f.place.kind {
	case KindPolicy:
		p.policies = append(p.policies, f)
	case KindOverlay:
		p.overlays = append(p.overlays, f)
	case KindDevice:
		p.devices = append(p.devices, f)
	case KindFleet:
		p.fleetFile = f
	case KindRelease:
		p.releases = append(p.releases, f)
		line := p.lines[f.place.line]
		if line == nil {
			line = map[string]*file{}
			p.lines[f.place.line] = line
		}
		if other, taken := line[f.place.name]; taken {
			p.fileProblem(f.path, ruleDuplicateID, fmt.Sprintf("the release %s of %s is in %s too", f.place.name, f.place.line, other.path), "keep one of the two")
			return
		}
		line[f.place.name] = f
	}
}

// checkIDs looks for two documents that answer to one name, also where only
// the case differs: a folder of a Mac or of Windows holds only one of them.
func (p *pass) checkIDs() {
	seen := make(map[string]string, len(p.devices)+len(p.later)) // paths by name
	device := func(file string) {
		name := nameIn(file)
		key := strings.ToLower(name)
		other, taken := seen[key]
		switch {
		case !taken:
			seen[key] = file
		case nameIn(other) == name:
			p.fileProblem(file, ruleDuplicateID, fmt.Sprintf("the device %s is in %s too", quote(name), other), "an id is unique in the whole repository")
		default:
			p.fileProblem(file, ruleDuplicateID, fmt.Sprintf("the device %s differs only by case from %s", quote(name), other), "an id is lower case")
		}
	}
	for _, f := range p.devices {
		device(f.path)
	}
	for _, i := range p.later {
		device(p.entries[i].Path)
	}
	paths := map[string]string{}
	for _, group := range [][]*file{p.policies, p.releases, p.overlays} {
		for _, f := range group {
			key := strings.ToLower(f.path)
			if other, taken := paths[key]; taken {
				p.fileProblem(f.path, ruleDuplicateID, fmt.Sprintf("the path differs only by case from %s", other), "rename one of them")
			}
			paths[key] = f.path
		}
	}
}

// sharedKey hashes all that more than one device depends on. While it stays
// the same, a device that did not change needs no second look.
func (p *pass) sharedKey() {
	h := sha256.New()
	fmt.Fprint(h, p.loader.OwnVersion)
	for _, group := range [][]*file{p.policies, p.releases, p.overlays} {
		for _, f := range group {
			fmt.Fprint(h, "\x00", p.key(f))
		}
	}
	h.Sum(p.shared[:0])
}

// key says in one string what a document is in this revision: its path, its
// content and the contents of its sources.
func (p *pass) key(f *file) string {
	if len(f.sources) == 0 && f.id != "" {
		return f.path + "\x00" + f.id
	}
	if key, ok := p.keys[f]; ok {
		return key
	}
	var b strings.Builder
	b.WriteString(f.path + "\x00" + f.id)
	if f.id == "" { // without content ids nothing is taken for unchanged
		fmt.Fprintf(&b, "%p", f)
	}
	for _, s := range f.sources {
		b.WriteString("\x00" + s.path)
		if e := p.entry(s.path); e != nil {
			fmt.Fprintf(&b, "\x00%s\x00%d", e.ID, e.Mode)
		}
	}
	p.keys[f] = b.String()
	return p.keys[f]
}

// fleet puts together what was found.
func (p *pass) fleet() *Fleet {
	f := &Fleet{Files: len(p.files) + len(p.later), Devices: p.everyone}
	for _, file := range p.policies {
		if file.content.policy != nil {
			f.Policies = append(f.Policies, file.policy())
		}
	}
	sort.Slice(f.Policies, func(i, j int) bool { return f.Policies[i].Metadata.Name < f.Policies[j].Metadata.Name })
	f.files = map[string]*file{}
	for _, file := range p.policies {
		f.files[file.path] = file
	}
	if p.fleetFile != nil {
		f.Document = p.fleetFile.content.fleet
		f.files[p.fleetFile.path] = p.fleetFile
	}
	found := p.spreadProblems()
	sortProblems(found)
	p.problem(found...)
	p.reportUnread()
	p.sayUnlisted()
	sortProblems(p.problems)
	f.Problems = p.problems
	return f
}

// entry finds a file of the revision; nil = there is none.
func (p *pass) entry(path string) *Entry {
	i, found := slices.BinarySearchFunc(p.entries, path, func(e Entry, path string) int { return strings.Compare(e.Path, path) })
	if !found {
		return nil
	}
	return &p.entries[i]
}

// nameIn is the name that the document of a path must have.
func nameIn(file string) string {
	return strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], extension)
}

// reportUnread tells of files that lie where documents are read, but for those
// that a document names as source.
func (p *pass) reportUnread() {
	if len(p.unread) == 0 {
		return
	}
	sources := p.sourcePaths()
	for _, u := range p.unread {
		switch {
		case u.place.rule != ruleStrayFile:
			p.fileProblem(u.path, u.place.rule, u.place.msg, u.place.hint)
		case !sources[u.path]:
			p.problem(Problem{File: u.path, Rule: u.place.rule, Severity: SeverityWarning, Message: u.place.msg, Hint: u.place.hint})
		}
	}
}
