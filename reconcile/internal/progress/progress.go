// Package progress tells a watchdog, from deep inside the work, that it goes
// on and how long the next part of it may take.
//
// It ends nothing itself: who listens decides what a missed time means. Without
// a listener [Within] does nothing.
//
// Start with [With] in the loop; each part that may take long calls [Within]
// before it begins. Both are safe for concurrent use as far as the listener is.
package progress

import (
	"context"
	"time"
)

type key struct{}

// With makes a listener known to all that works with the context; nil is none.
func With(ctx context.Context, listen func(within time.Duration)) context.Context {
	if listen == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, listen)
}

// Within says that the work goes on, and that it will say so again within d.
func Within(ctx context.Context, d time.Duration) {
	if listen, ok := ctx.Value(key{}).(func(time.Duration)); ok {
		listen(d)
	}
}
