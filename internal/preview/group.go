package preview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// mostVariants is how many changes of one form are shown apart. What differs
// between more devices than that comes from their own values: one is shown.
const mostVariants = 3

// pair is what two sides differ by, whoever's they are.
type pair struct {
	from, to string
	before   Before
	wanted   string
	again    bool
}

// found is the change of one device.
type found struct {
	changes []Change
	effect  Effect
	exact   string // equal where the change is
	form    string // equal where it is of the same kind
}

// groups puts the devices together that change alike. Only devices whose
// digest or version differs are looked at, and equal pairs of specs once.
func (c *comparer) groups() []Group {
	c.again = map[versionOf]int{}
	done := map[pair]*found{}
	exact := map[string]*Group{}
	var order []*gathered
	forms := map[string]*gathered{}
	for _, m := range c.Head.Fleet.Devices {
		if m.Rendered == nil {
			continue
		}
		if wanted, _ := c.wanted(m.ID); wanted.Digest == m.Rendered.Digest && wanted.Version == m.Version {
			continue
		}
		to := c.Head.side(m)
		b := c.before(m, to)
		from := b.side
		again := b.isAgain(m, to)
		if again {
			c.again[versionOf{m.Policy, to.Version}]++
		}
		key := pair{from.Version + " " + from.Digest, to.Version + " " + to.Digest, b.is, b.wanted, again}
		f := done[key]
		if f == nil {
			f = c.compare(m, &b, to, b.effect(to, again))
			done[key] = f
		}
		g := exact[f.exact]
		if g == nil {
			g = &Group{
				From: from.Version, To: to.Version, Before: b.is, Wanted: b.wanted,
				Changes: f.changes, Unknown: unknown(from), Variants: 1, Effect: f.effect,
			}
			g.Effect.Download = Download{Least: -1}
			exact[f.exact] = g
			of := forms[f.form]
			if of == nil {
				of = &gathered{}
				forms[f.form] = of
				order = append(order, of)
			}
			of.groups = append(of.groups, g)
		}
		load := downloaded{}
		if !b.already {
			load = c.download(m, from, to)
		}
		g.add(m, load)
	}
	list := []Group{}
	for _, of := range order {
		list = append(list, of.together()...)
	}
	slices.SortStableFunc(list, func(a, b Group) int {
		return cmp.Or(lastIf(a.Effect.Already, b.Effect.Already), cmp.Compare(len(b.Devices), len(a.Devices)), cmp.Compare(a.Devices[0], b.Devices[0]))
	})
	return list
}

// lastIf puts what is so behind what is not.
func lastIf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// compare finds the change of one device.
func (c *comparer) compare(m *schema.Member, b *before, to Side, effect Effect) *found {
	from := b.side
	of := &comparison{from: from, to: to, mask: c.maskFor(m.ID), literal: c.literalFor(m.ID, b.side), contents: c.contents, lines: shownLines, brief: true}
	f := &found{changes: []Change{}, effect: of.masked(effect)}
	if !unknown(from) && b.is != BeforeNothing { // else it is all of the spec, or nobody knows
		f.changes = of.changes()
	}
	head, err := json.Marshal([]any{from.Version, to.Version, b.is, b.wanted, f.effect, from.Spec == nil, unknown(from)})
	if err != nil {
		head = []byte(m.ID) // alone rather than in the wrong company
	}
	var exact, form strings.Builder
	exact.Write(head)
	form.Write(head)
	for i := range f.changes {
		ch := &f.changes[i]
		fmt.Fprintf(&form, "\n%s %s", ch.Op, ch.Pointer)
		for _, field := range ch.Fields {
			fmt.Fprintf(&form, " %q", field.Name)
		}
		fmt.Fprintf(&exact, "\n%s %s %q %s", ch.Op, ch.Pointer, ch.Fields, ch.Content.key())
	}
	f.exact, f.form = exact.String(), form.String()
	return f
}

// unknown says that a device has a spec, of which only the digest is at hand.
func unknown(from Side) bool { return from.Spec == nil && from.Digest != "" }

// key is what a content change is told apart by: the sizes count only where
// nothing else is known of it.
func (c *Content) key() string {
	switch {
	case c == nil:
		return ""
	case c.Binary || len(c.Lines) == 0:
		return fmt.Sprintf("%d %d %s", c.From, c.To, c.Hidden)
	}
	return fmt.Sprintf("%d %d %d%s", c.Inserted, c.Deleted, c.More, c.changedLines())
}

func (g *Group) add(m *schema.Member, d downloaded) {
	g.Devices = append(g.Devices, m.ID)
	if m.Policy != "" && !slices.Contains(g.Policies, m.Policy) {
		g.Policies = append(g.Policies, m.Policy)
	}
	load := &g.Effect.Download
	load.Total += d.bytes
	load.Most = max(load.Most, d.bytes)
	load.Bound = load.Bound || d.bound
	if load.Least < 0 || d.bytes < load.Least {
		load.Least = d.bytes
	}
}

// gathered are groups of one form.
type gathered struct{ groups []*Group }

// together merges groups of one form, where there are many.
func (of *gathered) together() []Group {
	var list []Group
	if len(of.groups) <= mostVariants {
		for _, g := range of.groups {
			list = append(list, g.sorted())
		}
		return list
	}
	largest := slices.MaxFunc(of.groups, func(a, b *Group) int { return cmp.Compare(len(a.Devices), len(b.Devices)) })
	all := *largest
	all.Variants, all.Example = len(of.groups), largest.Devices[0]
	all.Devices, all.Policies, all.Changes = nil, nil, slices.Clone(largest.Changes)
	all.Effect.Download = Download{Least: largest.Effect.Download.Least}
	for _, g := range of.groups {
		all.Devices = append(all.Devices, g.Devices...)
		for _, p := range g.Policies {
			if !slices.Contains(all.Policies, p) {
				all.Policies = append(all.Policies, p)
			}
		}
		a, b := &all.Effect.Download, g.Effect.Download
		a.Total += b.Total
		a.Least, a.Most, a.Bound = min(a.Least, b.Least), max(a.Most, b.Most), a.Bound || b.Bound
		for i := range all.Changes {
			x, y := &all.Changes[i], &g.Changes[i]
			x.Varies = x.Varies || x.Content.key() != y.Content.key() || !slices.Equal(x.Fields, y.Fields)
		}
	}
	return []Group{all.sorted()}
}

func (g *Group) sorted() Group {
	slices.Sort(g.Devices)
	slices.Sort(g.Policies)
	if g.Policies == nil {
		g.Policies = []string{}
	}
	return *g
}

// maskFor knows the secrets of a device in both revisions.
func (c *comparer) maskFor(id string) mask {
	values := slices.Clone(c.Head.Fleet.SecretVars(id))
	if c.Base != nil {
		values = append(values, c.Base.Fleet.SecretVars(id)...)
	}
	return maskOf(values)
}
