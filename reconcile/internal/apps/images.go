package apps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

// Prefetch has every image of the spec on the device when it returns nil. One
// that is named by its digest is pulled where it is missing, and podman checks
// the digest. One with a tag is also pulled where the application is new or
// changes: that is when a tag that has moved is followed. One that is new to us
// and runs as it is to, or has its files already, is neither. Where containers of
// somebody else are in the way, no image is pulled that would change what the
// name of theirs means. Failures are retryable. Nothing that runs is changed.
func (c *Controller) Prefetch(ctx context.Context, spec *schema.Spec, p Payloads) error {
	all, err := wants(spec, p)
	if err != nil || len(all) == 0 {
		return err
	}
	r, err := c.load()
	if err != nil {
		return err
	}
	var due []missing
	for _, w := range all {
		was := r.Apps[w.name]
		changes := was != nil && was.Hash != w.hash
		if was == nil || changes {
			asWanted, _, err := c.take(ctx, was, w)
			if err != nil {
				return err
			}
			changes = changes || !asWanted && !c.stands(w)
		}
		for _, ref := range w.images {
			if slices.ContainsFunc(due, func(m missing) bool { return m.ref == ref }) {
				continue
			}
			id, err := c.imageID(ctx, ref)
			if err != nil {
				return failed(ctx, w.name, ref, err)
			}
			if id != "" && (!changes || strings.Contains(ref, "@")) {
				continue
			}
			if strings.HasPrefix(ref, "localhost/") {
				continue // built on the device
			}
			due = append(due, missing{w.name, ref, id})
		}
	}
	for n, m := range due {
		c.Pulls(m.ref, n+1, len(due))
		if err := c.pull(ctx, m.app, m.ref, m.id); err != nil {
			return err
		}
	}
	return nil
}

// missing is an image that is to be pulled; id is what its reference means now.
type missing struct{ app, ref, id string }

func failed(ctx context.Context, name, ref string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *hooks.Exit
	if !errors.As(err, &exit) {
		return failure.Retryable(component, name, "image %s: %w", ref, err)
	}
	f := failure.From(failure.Retryable(component, name, "image %s: %w", ref, err))
	f.Output = exit.Output
	return f
}

// pull fetches an image; before is the id that its reference has now, or "".
func (c *Controller) pull(ctx context.Context, name, ref, before string) error {
	r, err := c.load()
	if err != nil {
		return err
	}
	mine := pulled{Ref: ref}
	if before == "" && !slices.Contains(r.Pulled, mine) {
		r.Pulled = append(r.Pulled, mine)
		if err := c.save(r); err != nil {
			return err
		}
	}
	out, err := c.podman(ctx, pullLimit, "pull", "--quiet", ref)
	if err != nil {
		return failed(ctx, name, ref, err)
	}
	id := out[strings.LastIndexByte(out, '\n')+1:]
	r.Pulled = slices.DeleteFunc(r.Pulled, func(o pulled) bool { return o == mine })
	if id != before && !slices.ContainsFunc(r.Pulled, func(o pulled) bool { return o.ID == id }) {
		r.Pulled = append(r.Pulled, pulled{ref, id})
	}
	return c.save(r)
}

// Settle is called when the device has come to rest on its current spec: the
// images of it and of the one before are kept, others that we pulled go where
// nothing uses them.
func (c *Controller) Settle(ctx context.Context, spec *schema.Spec, p Payloads) error {
	if err := c.Own(); err != nil {
		return err
	}
	r, err := c.load()
	if err != nil {
		return err
	}
	all, err := wants(spec, p)
	if err != nil {
		return err
	}
	now := map[string]string{}
	for _, w := range all {
		for _, ref := range w.images {
			if now[ref], err = c.imageID(ctx, ref); err != nil {
				return failed(ctx, w.name, ref, err)
			}
		}
	}
	if !maps.Equal(now, r.Current) {
		r.Before, r.Current = r.Current, now
	}
	if err := c.save(r); err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, images := range []map[string]string{r.Current, r.Before} {
		for _, id := range images {
			kept[id] = true
		}
	}
	left := r.Pulled[:0:0]
	for _, im := range r.Pulled {
		if im.ID == "" { // a pull that was interrupted
			if im.ID, err = c.imageID(ctx, im.Ref); err != nil {
				return failed(ctx, "", im.Ref, err)
			}
		}
		if im.ID == "" {
			continue
		}
		if !kept[im.ID] {
			if _, err := c.podman(ctx, podmanLimit, "image", "rm", "--ignore", im.ID); err == nil {
				continue
			} else if ctx.Err() != nil {
				return ctx.Err()
			} else {
				c.Warn(fmt.Errorf("the image %s is not needed any more and could not be removed: %s", im.Ref, said(err)))
			}
		}
		left = append(left, im)
	}
	r.Pulled = left
	return c.save(r)
}

// giveTagsBack makes each reference of the current spec mean the image that
// it meant when that spec succeeded: a failed update may have pulled another
// one, and the registry may be out of reach.
func (c *Controller) giveTagsBack(ctx context.Context, r *record, w *want) error {
	for _, ref := range w.images {
		then := r.Current[ref]
		if then == "" || strings.Contains(ref, "@") {
			continue
		}
		now, err := c.imageID(ctx, ref)
		if err != nil {
			return failed(ctx, w.name, ref, err)
		}
		if now == then {
			continue
		}
		if _, err := c.podman(ctx, podmanLimit, "tag", then, ref); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// Somebody has removed it. What there is now is better than nothing.
			c.Warn(fmt.Errorf("the image that %s was before cannot be had any more: %s", ref, said(err)))
		}
	}
	return nil
}
