package preview

import (
	"maps"
	"slices"
	"strings"
)

// comparison compares what one device should be with what it should have been.
type comparison struct {
	from, to Side
	mask     mask
	literal  func(at string) *literal // of an older spec; nil = it was rendered from what is at hand
	contents *contents
	lines    int                  // of a difference that are shown
	brief    bool                 // what is gone is only named
	origins  [2]map[string]string // of the two sides, by pointer; nil = not asked for
}

// changes lists the elements that differ, sorted by pointer.
func (c *comparison) changes() []Change {
	before, after := elements(c.from.Spec, c.to.Spec), elements(c.to.Spec, c.from.Spec)
	list := []Change{}
	for _, at := range slices.Sorted(maps.Keys(union(before, after))) {
		a, had := before[at]
		b, has := after[at]
		if had && has && equal(a.value, b.value) {
			continue
		}
		if _, stays := after[a.of]; c.brief && !has && a.of != "" && !stays {
			continue // it goes with what it is a part of
		}
		list = append(list, c.change(at, a, b, had, has))
	}
	return list
}

func (c *comparison) change(at string, a, b element, had, has bool) Change {
	e := b
	ch := Change{Pointer: at, Op: Changed, Fields: []Field{}}
	switch {
	case !had:
		ch.Op = Added
	case !has:
		ch.Op, e = Removed, a
	}
	ch.Section, ch.Name = e.section, e.name
	if c.brief && !has {
		return ch
	}
	from, to := a.leaves(), b.leaves()
	if !had {
		from = nil
	}
	if !has {
		to = nil
	}
	for _, name := range slices.Sorted(maps.Keys(union(from, to))) {
		x, y := from[name], to[name]
		_, inFrom := from[name]
		_, inTo := to[name]
		if inFrom == inTo && x == y {
			continue
		}
		f := Field{Name: name, From: c.shown(name, x), To: c.shown(name, y)}
		if inFrom && c.literal != nil && isRendered(at, name) {
			f.From = c.shown(name, c.literal(at+"/"+name).removed(x))
		}
		if c.origins[0] != nil && inFrom {
			f.FromOrigin = originOf(c.origins[0], at, name)
		}
		if c.origins[1] != nil && inTo {
			f.ToOrigin = originOf(c.origins[1], at, name)
		}
		ch.Fields = append(ch.Fields, f)
	}
	if e.hasText() {
		ch.Content = c.content(at, a, b)
		if ch.Content != nil && c.origins[1] != nil {
			ch.Content.FromOrigin, ch.Content.ToOrigin = contentOrigin(c.origins[0], at), contentOrigin(c.origins[1], at)
		}
	}
	return ch
}

// shown is a value as it may be shown: on one line, without secrets.
func (c *comparison) shown(name, value string) string {
	value = c.mask.value(name, value)
	value = strings.ReplaceAll(strings.ReplaceAll(value, "\r", ""), "\n", "⏎")
	return clip(value, longestValue)
}

// originOf is where the value of a field was written. A list has one origin
// for each of its entries; the first says it.
func originOf(origins map[string]string, at, name string) string {
	where := at
	if name != "" {
		where += pointer(strings.Split(name, "."))
	}
	for _, p := range []string{where, where + "/0", at} {
		if o := origins[p]; o != "" {
			return o
		}
	}
	return ""
}

func contentOrigin(origins map[string]string, at string) string {
	for _, k := range contentKeys {
		if o := origins[at+"/"+k]; o != "" {
			return o
		}
	}
	return ""
}
