package apps

import (
	"context"
	"maps"
	"slices"

	"github.com/gitopsd/gitopsd/schema"
)

// Change is an application that an update would do something about.
type Change struct {
	Name string
	Do   string // in the words of [schema.Difference]
	Why  string // what of it does not run as wanted; "" = its files are not as wanted
}

// Compare lists the applications that an update to the spec would start,
// replace or remove, by name, and changes none, with those that do not run. drift lists the paths that it
// would write.
func (c *Controller) Compare(ctx context.Context, spec *schema.Spec, p Payloads, drift []string) ([]Change, error) {
	r, err := c.load()
	if err != nil || len(r.Apps) == 0 && len(spec.Applications) == 0 {
		return nil, err
	}
	all, err := wants(spec, p)
	if err != nil {
		return nil, err
	}
	do, why := map[string]string{}, map[string]string{}
	for name, a := range r.Apps {
		if a.Hash == "" || a.Hash != a.Taken { // otherwise it is what was there before, and stays
			do[name] = schema.DoRemove
			if len(a.Before) > 0 { // it ran before it was ours
				do[name] = schema.DoRestore
			}
		}
	}
	stopped, err := c.Stopped(ctx, spec)
	if err != nil {
		return nil, err
	}
	var perhaps []string // they run already, for all that files say
	for _, w := range all {
		switch was := r.Apps[w.name]; {
		case was == nil && slices.ContainsFunc(drift, w.has):
			if do[w.name], why[w.name], err = c.comes(ctx, w); err != nil {
				return nil, err
			}
		case was == nil:
			perhaps = append(perhaps, w.name)
		case was.Hash == w.hash:
			if delete(do, w.name); stopped[w.name] != "" {
				do[w.name], why[w.name] = schema.DoChange, stopped[w.name]
			}
		default:
			do[w.name] = schema.DoChange
		}
	}
	if len(perhaps) > 0 {
		if all, err = c.plan(ctx, spec, p); err != nil {
			return nil, err
		}
	}
	for _, w := range all {
		if !slices.Contains(perhaps, w.name) {
			continue
		}
		_, whole, err := c.runsAlready(ctx, w)
		if err != nil {
			return nil, err
		}
		if !whole {
			if do[w.name], why[w.name], err = c.comes(ctx, w); err != nil {
				return nil, err
			}
		}
	}
	var list []Change
	for _, name := range slices.Sorted(maps.Keys(do)) {
		if do[name] != "" {
			list = append(list, Change{name, do[name], why[name]})
		}
	}
	return list, nil
}

// comes says what would be done about an application that is not in the record
// and does not run as a whole; "" = nothing, its containers are taken over.
func (c *Controller) comes(ctx context.Context, w *want) (do, why string, err error) {
	asWanted, why, err := c.unmanaged(ctx, w)
	if err != nil || asWanted {
		return "", "", err
	}
	theirs, err := c.theirs(ctx, nil, w)
	if theirs && why != "" {
		return schema.DoCannot, inTheWay(w, why), err
	}
	return schema.DoCreate, why, err
}
