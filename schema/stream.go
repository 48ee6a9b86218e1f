package schema

import (
	"crypto/sha256"
	"strings"
	"sync"
)

// What is read ahead: how many documents a reader takes at a time, how many
// such batches of each reader may wait to be looked at, and how long one of
// them may be. That is enough for nobody to wait; and if all are hostile, and
// take twenty times their length, it is some forty megabytes.
const (
	readAhead    = 16
	batchesAhead = 2
	maxReadAhead = 8 << 10 // bytes
	// mostReaders is how many goroutines one that looks at devices can keep busy.
	mostReaders = 4
)

// deviceBatch are some devices, read by one goroutine.
type deviceBatch struct {
	entries []int
	files   []*file // nil = left to the one who looks at it
	read    chan struct{}
}

// stream looks at the devices one after the other, in the order of their
// paths, and keeps of each only what others are compared with.
func (p *pass) stream() error {
	var batches []*deviceBatch
	for at := 0; at < len(p.later); at += readAhead {
		entries := p.later[at:min(at+readAhead, len(p.later))]
		batches = append(batches, &deviceBatch{entries: entries, read: make(chan struct{})})
	}
	n := min(p.loader.Readers, mostReaders)
	work := make(chan *deviceBatch, max(1, n*batchesAhead))
	var readers sync.WaitGroup
	defer readers.Wait()
	defer close(work)
	for range n {
		readers.Go(func() {
			for b := range work {
				b.files = readBatch(p.src, p.entries, b.entries)
				close(b.read)
			}
		})
	}
	shared := newSharedDevices()
	given := 0
	for i, b := range batches {
		for ; n > 0 && given < len(batches) && given <= i+cap(work); given++ {
			work <- batches[given]
		}
		if n > 0 {
			<-b.read
		}
		for j, entry := range b.entries {
			var f *file
			if b.files != nil {
				f = b.files[j]
			}
			if err := p.lookAt(&p.entries[entry], f, shared); err != nil {
				return err
			}
		}
		batches[i] = nil
	}
	return nil
}

// readBatch reads those documents that are plain. What is not is left to the
// one goroutine that looks at them: the parser's memory is then that of one
// document, however many are hostile.
func readBatch(src Source, all []Entry, batch []int) []*file {
	files := make([]*file, len(batch))
	for i, at := range batch {
		e := &all[at]
		data, err := src.Read(*e, maxReadAhead)
		if err != nil {
			continue // read again, and told of, by the one who looks at it
		}
		if value, plain := tryPlain(data); plain {
			c := contentOf(KindDevice, data, &document{value: value, data: data}, nil)
			files[i] = newFile(e.Path, e.ID, place(e.Path), c)
		}
	}
	return files
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
	p.use(f, s)
	p.settle(f, s)
	delete(p.states, f.path)
	delete(p.keys, f)
	delete(p.unusable, f)
	delete(p.documents, f)
	if p.loader.templateBytes > maxTemplatesKept {
		p.loader.templates, p.loader.templateBytes = nil, 0
	}
	return nil
}

// sharedDevices keeps one of what many devices are equal in: of a hundred
// devices at one site, the labels.
type sharedDevices struct {
	devices map[string]*Device // by their labels and what else is kept
	texts   map[string]string
}

func newSharedDevices() *sharedDevices {
	return &sharedDevices{devices: map[string]*Device{}, texts: map[string]string{}}
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
	var short [16]byte // enough to tell contents apart
	sum := sha256.Sum256([]byte(out))
	copy(short[:], sum[:])
	if _, known := p.renderedOnce[short]; known {
		return false
	}
	p.renderedOnce[short] = struct{}{}
	return true
}
