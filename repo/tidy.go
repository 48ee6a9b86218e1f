package repo

import "context"

// tidy bounds the number of packs in the store.
func (r *Repo) tidy(ctx context.Context) { _ = ctx }
