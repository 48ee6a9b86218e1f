package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/schema"
)

// Format is the layout of the status branch that this program writes; it
// refuses to touch a higher one. Whatever an older program must not drop, or
// must not go on without, takes a higher one: a field alone is left out.
const Format = 1

const (
	fleetFile   = "fleet.yaml"
	devicesDir  = "devices/"
	assignedDir = "assigned/"
	failuresDir = "failures/"
	payloadsDir = "payloads/"
	retiredDir  = "retired/"

	// maxStatusDocument bounds a document of the status branch; an assignment
	// holds a rendered spec, and a host would refuse a larger file anyway.
	maxStatusDocument = 32 << 20

	digestPrefix = "sha256:"
)

// Record is what the status branch says of one device.
type Record struct {
	ID         string
	Path       string               // devices/berlin/gw-berlin-01.yaml, or retired/<id>.yaml
	Status     *schema.DeviceStatus // never changed in place
	Assignment *schema.Assignment   // nil before the first; never changed in place

	payloads []string // digests that the assignment names
	delivery string   // commit that the delivery ref should be at; "" = not built yet
	// kept is the assignment before its recall, while this daemon remembers
	// it: the recalled attempt may turn out ok after all.
	kept *schema.Assignment
}

// needs lists the digests of the payloads that have to be kept for a device.
func (rec *Record) needs() []string {
	switch {
	case rec == nil:
		return nil
	case rec.kept == nil:
		return rec.payloads
	}
	return append(payloadsOf(rec.kept.Spec), rec.payloads...)
}

// Status is the status branch at one commit.
type Status struct {
	Commit  string              // "" = there is no status branch yet
	Fleet   *schema.FleetStatus // nil before the first pass
	Devices map[string]*Record  // by id
	Retired map[string]*Record  // removed devices, by id
	Marks   []*schema.FailureMarks

	blobs map[string]string               // every path → blob
	marks map[string]*schema.FailureMarks // every path below failures/; nil = it cannot be read

	tally *tally // see counted; nil = nobody asked yet
}

// ReadStatus reads the tip of a status branch. Where there is none, Commit is
// "". A branch of a newer format is an error.
func ReadStatus(ctx context.Context, r Remote, statusBranch string) (*Status, error) {
	setDefault(&statusBranch, schema.DefaultStatusBranch)
	ref := branchRef(statusBranch)
	refs, err := r.Refs(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("list the status branch %s: %w", statusBranch, err)
	}
	tip := refs[ref]
	if tip == "" {
		return newStatus(), nil
	}
	if err := r.Fetch(ctx, ref, tip, false); err != nil {
		return nil, noStatus(fmt.Errorf("fetch the status branch %s: %w", statusBranch, err))
	}
	return readStatus(ctx, r, tip, nil)
}

func branchRef(branch string) string { return "refs/heads/" + branch }

func newStatus() *Status {
	return &Status{
		Devices: map[string]*Record{},
		Retired: map[string]*Record{},
		blobs:   map[string]string{},
		marks:   map[string]*schema.FailureMarks{},
	}
}

// swept is the source commit that the fleet was planned by last; "" = none.
func (s *Status) swept() string {
	if s.Fleet == nil {
		return ""
	}
	return s.Fleet.SourceCommit
}

// blob is what stands at a path; "" = nothing.
func (s *Status) blob(path string) string { return s.blobs[path] }

// newerFormat says that a newer program wrote the status branch.
type newerFormat struct{ format int }

func (e *newerFormat) Error() string {
	return fmt.Sprintf("the status branch has format %d, this program knows %d", e.format, Format)
}

// unreadable says that a document of the status branch cannot be understood,
// or, without a path, the whole branch.
type unreadable struct {
	path string
	why  string
}

func (e *unreadable) Error() string {
	if e.path == "" {
		return "the status branch cannot be read: " + e.why
	}
	return fmt.Sprintf("%s on the status branch: %s", oneLine(e.path), e.why)
}

// noStatus makes an unreadable branch of an error of its objects; any other
// error may be gone at the next look.
func noStatus(err error) error {
	if kind := kindOf(err); kind == kindCorrupt || kind == kindRefused {
		return &unreadable{why: cause(err)}
	}
	return err
}

// readStatus reads a fetched status commit. What prev has decoded of the same
// blobs is taken over, so that the cost follows what changed.
func readStatus(ctx context.Context, r Remote, commit string, prev *Status) (*Status, error) {
	s := newStatus()
	s.Commit = commit
	if err := r.Walk(ctx, commit, func(p, blob string, _ uint32) error {
		s.blobs[p] = blob
		return nil
	}); err != nil {
		err = fmt.Errorf("read the status commit %s: %w", short(commit), err)
		if isBroken(err) {
			return nil, &unreadable{why: cause(err)}
		}
		return nil, err
	}
	if prev == nil {
		prev = newStatus()
	}
	rd := statusReader{remote: r, s: s, prev: prev}
	if err := rd.fleet(ctx); err != nil {
		return nil, err
	}
	paths := slices.Sorted(maps.Keys(s.blobs))
	for _, p := range paths {
		var err error
		switch {
		case strings.HasPrefix(p, devicesDir):
			err = rd.device(ctx, p, s.Devices, prev.Devices)
		case strings.HasPrefix(p, retiredDir):
			err = rd.device(ctx, p, s.Retired, prev.Retired)
		case strings.HasPrefix(p, failuresDir):
			err = rd.mark(ctx, p)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, rec := range s.Devices {
		if err := rd.assignment(ctx, rec); err != nil {
			return nil, err
		}
	}
	s.sortMarks()
	return s, nil
}

type statusReader struct {
	remote  Remote
	s, prev *Status
}

func (rd *statusReader) unchanged(p string) bool {
	blob, ok := rd.s.blobs[p]
	return ok && rd.prev.blobs[p] == blob
}

func (rd *statusReader) decode(ctx context.Context, p string, v any) error {
	data, err := rd.blob(ctx, p)
	if err != nil {
		return err
	}
	return decodeStatus(p, data, v)
}

func (rd *statusReader) blob(ctx context.Context, p string) ([]byte, error) {
	data, err := rd.remote.Blob(ctx, rd.s.blobs[p], maxStatusDocument)
	switch {
	case err == nil:
		return data, nil
	case kindOf(err) == kindRefused: // its size is the only thing that a blob is refused for
		return nil, &unreadable{path: p, why: fmt.Sprintf("it has more than %d bytes", maxStatusDocument)}
	case isBroken(err):
		return nil, &unreadable{path: p, why: cause(err)}
	}
	return nil, fmt.Errorf("read %s of the status commit %s: %w", p, short(rd.s.Commit), err)
}

// decodeStatus is lenient where another version of this program may have
// written a document; decisions are compared as they were read, so that what
// is not known here is only lost where its document changes anyway.
func decodeStatus(p string, data []byte, v any) error {
	for _, problem := range schema.DecodeStatus(p, data, v) {
		if problem.Severity == schema.SeverityError {
			return &unreadable{path: p, why: fmt.Sprintf("line %d: %s", problem.Line, problem.Message)}
		}
	}
	if why := badNumber(saneNumber, v); why != "" {
		return &unreadable{path: p, why: why}
	}
	return nil
}

func (rd *statusReader) fleet(ctx context.Context) error {
	if rd.s.blobs[fleetFile] == "" {
		return nil
	}
	if rd.unchanged(fleetFile) {
		rd.s.Fleet = rd.prev.Fleet
		return nil
	}
	data, err := rd.blob(ctx, fleetFile)
	if err != nil {
		return err
	}
	// The format is read before anything else, and leniently: what a newer
	// program wrote may not decode here.
	var head struct {
		Format int `json:"format"`
	}
	if err := yaml.Unmarshal(data, &head); err == nil && head.Format > Format {
		return &newerFormat{format: head.Format}
	}
	fleet := &schema.FleetStatus{}
	if err := decodeStatus(fleetFile, data, fleet); err != nil {
		return err
	}
	rd.s.Fleet = fleet
	return nil
}

func (rd *statusReader) device(ctx context.Context, p string, into, prev map[string]*Record) error {
	id := idOfPath(p)
	if id == "" {
		return nil
	}
	if old := prev[id]; old != nil && old.Path == p && rd.unchanged(p) {
		into[id] = &Record{ID: id, Path: p, Status: old.Status, kept: old.kept}
		return nil
	}
	st := &schema.DeviceStatus{}
	if err := rd.decode(ctx, p, st); err != nil {
		return err
	}
	if st.Metadata.Name != id {
		return &unreadable{path: p, why: fmt.Sprintf("it names the device %q", st.Metadata.Name)}
	}
	if other := into[id]; other != nil {
		return &unreadable{path: p, why: fmt.Sprintf("the device also stands in %s", other.Path)}
	}
	into[id] = &Record{ID: id, Path: p, Status: st}
	return nil
}

func (rd *statusReader) assignment(ctx context.Context, rec *Record) error {
	p := assignedPath(rec.Path)
	if rd.s.blobs[p] == "" {
		return nil
	}
	if old := rd.prev.Devices[rec.ID]; old != nil && old.Path == rec.Path && rd.unchanged(p) {
		if old.Status == rec.Status {
			rd.s.Devices[rec.ID] = old // nothing of it changed
			return nil
		}
		rec.Assignment, rec.payloads, rec.delivery = old.Assignment, old.payloads, old.delivery
		return nil
	}
	a := &schema.Assignment{}
	if err := rd.decode(ctx, p, a); err != nil {
		return err
	}
	if a.Metadata.Name != rec.ID {
		return &unreadable{path: p, why: fmt.Sprintf("it names the device %q", a.Metadata.Name)}
	}
	rec.Assignment, rec.payloads = a, payloadsOf(a.Spec)
	return nil
}

func (rd *statusReader) mark(ctx context.Context, p string) error {
	if old := rd.prev.marks[p]; old != nil && rd.unchanged(p) {
		rd.s.marks[p] = old
		return nil
	}
	m := &schema.FailureMarks{}
	err := rd.decode(ctx, p, m)
	var bad *unreadable
	if errors.As(err, &bad) {
		m = nil // only a view, written again from the attempts
	} else if err != nil {
		return err
	}
	rd.s.marks[p] = m
	return nil
}

func (s *Status) sortMarks() {
	s.Marks = slices.DeleteFunc(slices.Collect(maps.Values(s.marks)), func(m *schema.FailureMarks) bool { return m == nil })
	sort.Slice(s.Marks, func(i, j int) bool {
		a, b := s.Marks[i], s.Marks[j]
		if a.Policy != b.Policy {
			return a.Policy < b.Policy
		}
		return a.Version < b.Version
	})
}

// idOfPath is the device that a document of devices/ or retired/ is about.
func idOfPath(p string) string {
	id, ok := strings.CutSuffix(path.Base(p), ".yaml")
	if !ok {
		return ""
	}
	return id
}

// assignedPath is where the assignment to the device with this status file is.
func assignedPath(devicePath string) string {
	return assignedDir + strings.TrimPrefix(devicePath, devicesDir)
}

func retiredPath(id string) string { return retiredDir + id + ".yaml" }

// payloadPath is where the payload with this digest is on the status branch.
func payloadPath(digest string) string {
	hex := strings.TrimPrefix(digest, digestPrefix)
	return payloadsDir + hex[:min(2, len(hex))] + "/" + hex
}

// marksPath escapes what a version may hold and a path may not.
func marksPath(policy, version string) string {
	return failuresDir + url.PathEscape(policy) + "/" + url.PathEscape(version) + ".yaml"
}

// payloadsOf lists the digests of payloads that a spec names.
func payloadsOf(spec map[string]any) []string {
	return slices.DeleteFunc(schema.PayloadNames(spec), func(name string) bool { return !strings.HasPrefix(name, digestPrefix) })
}

// short abbreviates a hash for people.
func short(hash string) string { return hash[:min(12, len(hash))] }
