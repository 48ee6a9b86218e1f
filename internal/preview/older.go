package preview

import "strings"

// literal are the lines that the documents of both revisions write at one place.
// A spec that is not the base's was rendered with values that nobody here knows,
// maybe those of another device: of what it alone has, only these are shown.
type literal struct {
	lines map[string]bool
	writtenAt
}

// writtenAt is what such lines depend on: equal where they are.
type writtenAt struct {
	version, at string
	id          string // of a device whose own document has some of them
}

// removed is a line of an older spec as it may be shown.
func (l *literal) removed(line string) string {
	if l == nil || !isSpoken(line) || l.lines[line] {
		return line
	}
	return secretText
}

// literalFor is for what is compared with on a device; nil where both revisions
// know with what it was rendered.
func (c *comparer) literalFor(id string, from Side) func(at string) *literal {
	wanted, _ := c.wanted(id)
	if from.Spec == nil || c.Base != nil && from.Digest == wanted.Digest {
		return nil
	}
	return func(at string) *literal { return c.literalOf(id, from.Version, at) }
}

// isRendered says whether a field is a template whatever is written beside it;
// others are as they stand in the repository.
func isRendered(at, name string) bool {
	return at == "/os" && name == "image" || at == "/agent" && name == "url"
}

// literalOf finds what is written at a pointer into the spec of a device that
// has a version of before.
func (c *comparer) literalOf(id, version, at string) *literal {
	l := &literal{writtenAt: writtenAt{version: version, at: at}}
	if known, is := c.literals[l.writtenAt]; is {
		l.lines = known
	} else {
		l.lines = map[string]bool{}
		c.addWritten(l.lines, version, "", at)
		c.literals[l.writtenAt] = l.lines
	}
	own := map[string]bool{}
	if c.addRendered(own, id, at) || c.addWritten(own, "", id, at) {
		for line := range l.lines {
			own[line] = true
		}
		l.lines, l.id = own, id
	}
	return l
}

// addRendered adds the text that the base has for a device, whose secrets are
// known, where it is one such as the image.
func (c *comparer) addRendered(lines map[string]bool, id, at string) bool {
	if c.Base == nil {
		return false
	}
	wanted, _ := c.wanted(id)
	section, field, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
	fields, _ := wanted.Spec[section].(map[string]any)
	text, is := fields[field].(string)
	if is {
		lines[text] = true
	}
	return is
}

// addWritten adds the lines that are written at a pointer, and says whether there
// is anything.
func (c *comparer) addWritten(lines map[string]bool, version, id, at string) (found bool) {
	for _, r := range []*Revision{&c.Head, c.Base} {
		if r == nil {
			continue
		}
		for _, p := range r.Fleet.Written(version, id, at) {
			if p.ID != "" {
				if p.Size > largestText || c.contents.left < p.Size {
					continue
				}
				c.contents.left -= p.Size
				data, err := r.Read(p.ID)
				if err != nil {
					continue // as if nothing were written: less is shown
				}
				p.Data = data
			}
			found = true
			for line := range strings.Lines(string(p.Data)) {
				lines[strings.TrimRight(line, "\r\n")] = true
			}
		}
	}
	return found
}
