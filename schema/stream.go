package schema

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
)

// What is read ahead: how many documents a reader takes at a time, how many
// such batches of each reader may wait to be looked at, and how long one of
// them may be. That is enough for nobody to wait; and if all are hostile, and
// take twenty times their length, it is some forty megabytes.
const (
	readAhead    = 8
	batchesAhead = 2
	maxReadAhead = 8 << 10 // bytes
	// mostReaders is how many goroutines one that looks at devices can keep busy.
	mostReaders = 4
)

// deviceBatch are some devices, read by one goroutine.
type deviceBatch struct {
	entries []int
	files   []*file       // nil = left to the one who looks at it
	lent    scratch       // what the files are made of
	read    chan struct{} // takes one word, once files are there
}

// stream looks at the devices one after the other, in the order of their
// paths, and keeps of each only what others are compared with.
func (p *pass) stream() error {
	n := min(p.loader.Readers, mostReaders)
	work := make(chan *deviceBatch, max(1, n*batchesAhead))
	var readers sync.WaitGroup
	defer readers.Wait()
	defer close(work)
	for range n {
		readers.Go(func() {
			for b := range work {
				b.readPlain(p.src, p.entries)
				b.read <- struct{}{}
			}
		})
	}
	p.lent = &scratch{}
	defer func() { p.lent = nil }()
	shared := newSharedDevices()
	var ahead, done []*deviceBatch
	for rest := p.later; len(rest) > 0 || len(ahead) > 0; {
		for len(rest) > 0 && len(ahead) <= cap(work) {
			if len(done) == 0 {
				done = append(done, &deviceBatch{read: make(chan struct{}, 1)})
			}
			b := done[0]
			done = done[:0]
			b.entries, rest = rest[:min(readAhead, len(rest))], rest[min(readAhead, len(rest)):]
			ahead = append(ahead, b)
			if n > 0 {
				work <- b
			}
		}
		b := ahead[0]
		if n > 0 {
			<-b.read
		}
		for i, entry := range b.entries {
			var f *file
			if n > 0 {
				f = b.files[i]
			}
			if err := p.lookAt(&p.entries[entry], f, shared); err != nil {
				return err
			}
		}
		b.lent.reset()
		ahead, done = slices.Delete(ahead, 0, 1), append(done, b)
	}
	return nil
}

// readPlain reads those documents that are plain. What is not is left to the
// one goroutine that looks at them: the parser's memory is then that of one
// document, however many are hostile.
func (b *deviceBatch) readPlain(src Source, all []Entry) {
	b.files = slices.Grow(b.files[:0], len(b.entries))[:len(b.entries)]
	for i, at := range b.entries {
		b.files[i] = nil
		e := &all[at]
		data, err := src.Read(*e, maxReadAhead)
		if err != nil {
			continue // read again, and told of, by the one who looks at it
		}
		if value, plain := tryPlain(data, &b.lent); plain {
			c := contentOf(KindDevice, data, &document{value: value, data: data, maps: &b.lent}, nil)
			b.files[i] = newFile(e.Path, e.ID, place(e.Path), c)
		}
	}
}

// lookAt does for one device what is done for all of them otherwise.
func (p *pass) lookAt(e *Entry, f *file, shared *sharedDevices) error {
	if f == nil {
		where := place(e.Path)
		c, err := p.read(e, where.kind)
		if err != nil {
			return err
		}
		f = newFile(e.Path, e.ID, where, c)
	}
	p.problem(f.problems...)
	for _, s := range f.sources {
		if err := p.checkSource(f, s); err != nil {
			return err
		}
		if len(p.unread) > 0 {
			if p.sources == nil {
				p.sources = map[string]bool{}
			}
			p.sources[s.path] = true
		}
	}
	if p.alike = nil; f.content.device != nil {
		p.alike = shared.of(f.content.device)
	}
	if err := p.state(f, nil); err != nil {
		return err
	}
	s := p.states[f.path]
	s.member.Rendered = nil
	if s.member.Device = p.alike; p.alike == nil {
		s.member.Device = &Device{}
	}
	s.member.Version = shared.text(s.member.Version)
	p.use(f, s, shared.member(s.member))
	p.settle(f, s)
	delete(p.states, f.path)
	delete(p.keys, f)
	delete(p.unusable, f)
	delete(p.documents, f)
	if p.loader.templateBytes > maxTemplatesKept {
		p.loader.templates, p.loader.templateBytes = nil, 0
	}
	p.lent.reset()
	return nil
}

// sharedDevices keeps one of what many devices are equal in: of a hundred
// devices at one site, the labels.
type sharedDevices struct {
	devices map[string]*Device // by their labels and what else is kept
	members map[*Device]*sharedMember
	texts   map[string]string
}

// sharedMember stands for devices that differ in their names alone.
type sharedMember struct {
	own  int // how many before it have a member of their own
	last *Member
}

func newSharedDevices() *sharedDevices {
	return &sharedDevices{devices: map[string]*Device{}, members: map[*Device]*sharedMember{}, texts: map[string]string{}}
}

// member is what is kept of a member. The first ones are kept by name: those
// that a problem could name.
func (s *sharedDevices) member(m *Member) *Member {
	same := s.members[m.Device]
	if same == nil {
		same = &sharedMember{}
		s.members[m.Device] = same
	}
	if same.own < maxNamed {
		same.own++
		same.last = m
		return m
	}
	renamed := *m
	renamed.ID, renamed.Path = same.last.ID, same.last.Path
	if renamed != *same.last {
		return m // such as one whose file has problems
	}
	return same.last
}

// of is what is kept of a device: nothing that only rendering needs. It shares
// no memory with the document, of which it would keep all.
func (s *sharedDevices) of(d *Device) *Device {
	kept := &Device{TypeMeta: TypeMeta{APIVersion, KindDevice}, Metadata: Metadata{Labels: d.Metadata.Labels},
		Spec: DeviceSpecFields{Hold: d.Spec.Hold, Pin: d.Spec.Pin, Release: d.Spec.Release, ForgetFailuresBefore: d.Spec.ForgetFailuresBefore}}
	if kept.Spec.Hold != nil || kept.Spec.ForgetFailuresBefore != nil {
		kept.Metadata.Labels = s.labels(d.Metadata.Labels)
		return kept
	}
	var key strings.Builder
	key.WriteString(d.Spec.Pin + "\x00" + d.Spec.Release)
	for _, name := range sortedKeys(d.Metadata.Labels) {
		key.WriteString("\x00" + name + "\x00" + d.Metadata.Labels[name])
	}
	if known := s.devices[key.String()]; known != nil {
		return known
	}
	kept.Metadata.Labels = s.labels(d.Metadata.Labels)
	kept.Spec.Pin, kept.Spec.Release = s.text(d.Spec.Pin), s.text(d.Spec.Release)
	s.devices[key.String()] = kept
	return kept
}

func (s *sharedDevices) labels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	kept := make(map[string]string, len(labels))
	for k, v := range labels {
		kept[s.text(k)] = s.text(v)
	}
	return kept
}

func (s *sharedDevices) text(t string) string {
	known, ok := s.texts[t]
	if !ok {
		known = strings.Clone(t)
		s.texts[known] = known
	}
	return known
}

// surelyFits says of most specs that they are neither as large nor as full as
// those that are tried as an assignment; false = it is not known.
func surelyFits(spec map[string]any) bool {
	size, colons := 0, 0
	text := func(s string) {
		const escaped = 6 // bytes that JSON needs for one, at most
		size += len(s)*escaped + len(`"":,`)
		colons += 1 + strings.Count(s, `":`)
	}
	var walk func(v any)
	walk = func(v any) {
		switch n := v.(type) {
		case map[string]any:
			size += len(`{}`)
			for k, c := range n {
				text(k)
				walk(c)
			}
		case []any:
			size += len(`[]`)
			for _, c := range n {
				walk(c)
				size += len(`,`)
			}
		case string:
			text(n)
		default:
			size += len(`-1.7976931348623157e+308,`)
		}
	}
	walk(spec)
	return size < largeSpec && colons < largeMap
}

// counted says whether a rendered content is there for the first time. Of what
// is not kept, the digests are.
func (p *pass) counted(out string) bool {
	sum := sha256.Sum256([]byte(out))
	short := [8]byte(sum[:]) // enough to tell contents apart
	if _, known := p.renderedOnce[short]; known {
		return false
	}
	p.renderedOnce[short] = struct{}{}
	return true
}
