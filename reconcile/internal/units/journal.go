package units

import (
	"context"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
)

const (
	// journalLines is how much of a unit's end is told; failures are bounded in
	// bytes too.
	journalLines = "30"
	// journalLimit is for a journal on a slow card, in seconds.
	journalLimit = 20
)

// Journal gives the end of what a unit has said since a time in this boot, for
// a failure's output; "" where nothing can be had.
func Journal(ctx context.Context, unit string, since time.Time) string {
	argv := []string{"journalctl", "--no-pager", "--quiet", "--output=cat", "--boot", "--lines=" + journalLines, "--unit=" + unit}
	if !since.IsZero() {
		argv = append(argv, fmt.Sprintf("--since=@%d", since.Unix()))
	}
	out, err := hooks.Command(ctx, argv, "/", nil, journalLimit)
	if err != nil {
		return ""
	}
	return withoutSecrets(out)
}
