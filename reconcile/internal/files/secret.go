package files

import (
	"errors"
	"io/fs"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/secrets"
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
	return nil
}
