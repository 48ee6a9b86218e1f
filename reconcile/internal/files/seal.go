package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"

	"github.com/gitopsd/gitopsd/reconcile/internal/secrets"
	"github.com/gitopsd/gitopsd/schema"
)

// An update may fail after the key of the current spec's secrets is gone. What
// it has not touched of them needs no key on the way back: the record says what
// is in their files, and those that are dropped stay until it has succeeded.

// Settle is called when the spec of an Apply has become the one that the device
// is on: the secrets that it does not have go, and what those hold that it has is
// recorded. It may be repeated.
func (c *Controller) Settle(ctx context.Context, spec *schema.Spec) error {
	a := &application{Controller: c, ctx: ctx, keepGoing: true, next: maps.Clone(c.managed), changed: map[string]bool{}}
	var err error
	if a.wants, err = c.wants(spec); err != nil {
		return err
	}
	a.byReal = index(a.wants)
	if err := a.drop(); err != nil {
		return joinErrors(append(a.errs, err))
	}
	for _, w := range a.wants {
		e := a.next[w.real]
		if w.err != nil || !w.secret || !isFile(e) || e.Secret == w.seal {
			continue
		}
		if info, err := c.root.Lstat(w.real); err == nil {
			marked := *e
			marked.Secret = a.mark(w, info, e.Secret)
			a.next[w.real] = &marked
		}
	}
	return joinErrors(append(a.errs, a.saveNext()))
}

// mark is what the record says of a secret before its file is written. An update
// that leaves the file as it is leaves the mark, too: the way back looks for the
// one of before.
func (a *application) mark(w *want, info fs.FileInfo, was string) string {
	switch {
	case !w.secret:
		return ""
	case w.kept:
		return was
	case info == nil || !info.Mode().IsRegular():
		return unproved
	}
	if same, err := a.sameContent(w, info); err != nil || !same {
		return unproved
	}
	if !a.keepGoing && was != "" && was != unproved {
		return was
	}
	return w.seal
}

// untouched says that a secret without its key has stood in its file since it
// was seen to be there.
func (a *application) untouched(w *want) bool {
	e := a.managed[w.real]
	if !errors.Is(w.err, secrets.ErrNoIdentity) || !isFile(e) || e.Secret != w.seal {
		return false
	}
	info, err := a.root.Lstat(w.real)
	return err == nil && info.Mode().IsRegular()
}

// isSecret says that what is at a path is a secret of ours.
func (a *application) isSecret(at string) bool {
	if a.secrets == nil {
		a.secrets = a.secretPaths()
	}
	return a.secrets[at]
}
