package files

import (
	"errors"
	"io/fs"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/secrets"
	"github.com/gitopsd/gitopsd/schema"
)

// secretMode is that of a secret of which a spec says none.
const secretMode = fs.FileMode(0o600)

// open has the content of a secret at hand, in memory and as long as its want
// lasts. That the device has no key for it may be over before the next try:
// somebody may bring one without touching the repository.
func (c *Controller) open(w *want) error {
	if w.sealed == "" {
		return nil
	}
	data, err := c.identities.Open(w.sealed)
	switch {
	case errors.Is(err, secrets.ErrNoIdentity):
		return failure.Retryable(w.component(), w.spec, "%w", err)
	case err != nil:
		return w.permanent("%w", err)
	}
	w.sealed = ""
	w.hold(data)
	c.texts.Remember(data)
	return nil
}

// secretPaths are where secrets of ours stand, resolved: the record says so, or
// the spec that the device is on, since either may be lost.
func (c *Controller) secretPaths() map[string]bool {
	secret := map[string]bool{}
	for at, e := range c.managed {
		if e.Secret != "" {
			secret[at] = true
		}
	}
	if c.current == nil {
		return secret
	}
	spec, err := c.current()
	if err != nil {
		return secret
	}
	for p, f := range spec.Files {
		if f == nil || f.Secret == "" {
			continue
		}
		if real, err := c.root.Resolve(p); err == nil {
			secret[real] = true
		}
	}
	return secret
}

// Learn has the secrets of the spec that the device is on remembered. Where one
// cannot be opened any more, what stands in its file is what programs have read.
func (c *Controller) Learn(spec *schema.Spec) {
	wants, _ := c.wants(spec) // what cannot be had here is in nobody's mouth
	for _, w := range wants {
		if w.sealed == "" || w.err != nil || c.open(w) == nil {
			continue
		}
		if data, err := c.root.ReadFile(w.real, schema.MaxSecret); err == nil {
			c.texts.Remember(data)
		}
	}
}
