package sweep

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// builder is a status in the making: what stands, and what is to change.
type builder struct {
	remote  Remote
	base    *Status
	changes map[string]string               // path → blob after, "" = dropped
	devices map[string]*Record              // by id; nil = it goes
	retired map[string]*Record              // by id; nil = it goes
	fleet   *schema.FleetStatus             // nil = as it is
	marks   map[string]*schema.FailureMarks // by path; nil = as they are
	tidy    bool                            // see [tally]
}

func newBuilder(remote Remote, base *Status) *builder {
	return &builder{
		remote: remote, base: base,
		changes: map[string]string{}, devices: map[string]*Record{}, retired: map[string]*Record{},
	}
}

// put writes a document; one that encodes to what already stands is no change.
func (b *builder) put(ctx context.Context, path string, doc any) error {
	data, err := encode(path, doc)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return b.keep(ctx, path, data)
}

// encode writes a document that can be read again, or none.
func encode(path string, doc any) ([]byte, error) {
	if why := badNumber(saneNumber, doc); why != "" {
		return nil, &unreadable{path: path, why: why}
	}
	return schema.Encode(doc)
}

// keep adds a file.
func (b *builder) keep(ctx context.Context, path string, data []byte) error {
	blob, err := b.remote.PutBlob(ctx, data)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	b.link(path, blob)
	return nil
}

func (b *builder) link(path, blob string) {
	if b.base.blobs[path] == blob {
		delete(b.changes, path)
		return
	}
	b.changes[path] = blob
}

func (b *builder) drop(path string) {
	if b.base.blobs[path] != "" {
		b.changes[path] = ""
	} else {
		delete(b.changes, path)
	}
}

// dropStrangers drops documents of devices that a rebuilt status does not
// have: nobody could read them, or they stand in another place now.
func (b *builder) dropStrangers() {
	keep := map[string]bool{}
	for rec := range b.records() {
		keep[rec.Path] = true
		if rec.Assignment != nil {
			keep[assignedPath(rec.Path)] = true
		}
	}
	for path := range b.base.blobs {
		if (strings.HasPrefix(path, devicesDir) || strings.HasPrefix(path, assignedDir)) && !keep[path] {
			b.drop(path)
		}
	}
}

// records are those of the devices once the changes are made.
func (b *builder) records() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for id, rec := range b.base.Devices {
			if _, changed := b.devices[id]; !changed && !yield(rec) {
				return
			}
		}
		for _, rec := range b.devices {
			if rec != nil && !yield(rec) {
				return
			}
		}
	}
}

// blob is what stands at a path once the changes are made; "" = nothing.
func (b *builder) blob(path string) string {
	if blob, changed := b.changes[path]; changed {
		return blob
	}
	return b.base.blobs[path]
}

// swept is the source commit that the status will be of.
func (b *builder) swept() string {
	if b.fleet != nil {
		return b.fleet.SourceCommit
	}
	return b.base.swept()
}

// apply makes the changes: the base is the status as it was published.
func (b *builder) apply(commit string) {
	s, counted := b.base, b.base.counted()
	s.Commit = commit
	for id, rec := range b.devices {
		if old := s.Devices[id]; old != nil {
			counted.remove(old)
			delete(s.Devices, id)
		}
		if rec != nil {
			counted.add(rec)
			s.Devices[id] = rec
		}
	}
	for id, rec := range b.retired {
		if s.Retired[id] = rec; rec == nil {
			delete(s.Retired, id)
		}
	}
	for path, blob := range b.changes {
		if s.blobs[path] = blob; blob == "" {
			delete(s.blobs, path)
		}
	}
	if b.fleet != nil {
		s.Fleet = b.fleet
		counted.noteFleet(b.fleet)
	}
	if b.marks != nil {
		s.marks = b.marks
		s.sortMarks()
	}
	counted.tidy = counted.tidy || b.tidy
}
