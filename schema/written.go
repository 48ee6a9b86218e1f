package schema

// Written gives what documents of this revision write as the content, or as the
// text, at a pointer into a spec: the releases of a version with all overlays,
// and the document of a device; "" = of none. It is what stands there, of a
// template too, and so nothing that whoever reads the repository cannot read.
// The Data of a Payload with an ID are not set.
func (f *Fleet) Written(version, id, pointer string) []Payload {
	var list []Payload
	keys := splitPointer(pointer)
	for _, doc := range f.writers {
		if version != "" && (doc.place.kind != KindRelease || doc.place.name == version) {
			list = append(list, f.writtenIn(doc, keys)...)
		}
	}
	if m := f.Member(id); m != nil && f.states[m] != nil {
		list = append(list, f.writtenIn(f.states[m].file, keys)...)
	}
	return list
}

func (f *Fleet) writtenIn(doc *file, keys []string) []Payload {
	text := func(s string) []Payload { return []Payload{{Data: []byte(s), Size: int64(len(s))}} }
	switch v := valueAt(doc.desired, keys).(type) {
	case string:
		return text(v)
	case map[string]any:
		if s, ok := v["content"].(string); ok {
			return text(s)
		}
		if s, ok := v["contentBase64"].(string); ok {
			if data, err := decodeBase64(s); err == nil {
				return text(string(data))
			}
		}
		source, _ := v["source"].(string)
		if p, known := f.sources[source]; known {
			return []Payload{p}
		}
	}
	return nil
}

// keepWritten keeps what Written looks at.
func (p *pass) keepWritten(f *Fleet) {
	f.sources = map[string]Payload{}
	for _, group := range [][]*file{p.releases, p.overlays, p.devices} {
		for _, doc := range group {
			for _, s := range doc.sources {
				if e := p.entry(s.path); e != nil && e.ID != "" {
					f.sources[s.path] = Payload{ID: e.ID, Size: e.Size}
				}
			}
		}
	}
	f.writers = append(append(f.writers, p.releases...), p.overlays...)
}
