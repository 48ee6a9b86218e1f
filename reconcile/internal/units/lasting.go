package units

import (
	"context"
	"fmt"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/progress"
)

const (
	// backWithin is how long a systemd that has gone away is waited for. One
	// that an update of its package executes anew (systemctl daemon-reexec) is
	// back in a second, on a small board in some.
	backWithin = time.Minute
	// dialEvery is how often it is looked for meanwhile.
	dialEvery = 200 * time.Millisecond
	// losses are those that one call outlives.
	losses = 3
)

// connection is a Manager that can be lost.
type connection interface {
	Manager
	// lost says that it was the connection that ended a call with err, not
	// systemd's answer.
	lost(err error) bool
}

// lasting is a connection that is made anew, and its call repeated, where
// systemd ended it: that is no fault of the units.
type lasting struct {
	connection
	dial  func(context.Context) (connection, error)
	every time.Duration
}

// connect waits for a systemd that is just being executed anew.
func connect(ctx context.Context, dial func(context.Context) (connection, error), every time.Duration) (connection, error) {
	progress.Within(ctx, 2*backWithin)
	end := time.Now().Add(backWithin)
	for {
		conn, err := dial(ctx)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(every):
		}
	}
}

func (l *lasting) again(ctx context.Context, do func(Manager) error) error {
	for n := 0; ; n++ {
		err := do(l.connection)
		if err == nil || ctx.Err() != nil || n == losses || !l.lost(err) {
			return err
		}
		next, dialErr := connect(ctx, l.dial, l.every)
		if dialErr != nil {
			return fmt.Errorf("%w, and then %w", err, dialErr)
		}
		l.Close()
		l.connection = next
	}
}

func (l *lasting) States(ctx context.Context, names ...string) (states []State, err error) {
	err = l.again(ctx, func(m Manager) error {
		states, err = m.States(ctx, names...)
		return err
	})
	return states, err
}

func (l *lasting) Reload(ctx context.Context) error {
	return l.again(ctx, func(m Manager) error { return m.Reload(ctx) })
}

func (l *lasting) Do(ctx context.Context, jobs ...Job) error {
	return l.again(ctx, func(m Manager) error { return m.Do(ctx, jobs...) })
}

func (l *lasting) Enable(ctx context.Context, name string) error {
	return l.again(ctx, func(m Manager) error { return m.Enable(ctx, name) })
}

func (l *lasting) Disable(ctx context.Context, name string) error {
	return l.again(ctx, func(m Manager) error { return m.Disable(ctx, name) })
}

func (l *lasting) Mask(ctx context.Context, name string) error {
	return l.again(ctx, func(m Manager) error { return m.Mask(ctx, name) })
}

func (l *lasting) Unmask(ctx context.Context, name string, runtime bool) error {
	return l.again(ctx, func(m Manager) error { return m.Unmask(ctx, name, runtime) })
}

func (l *lasting) ResetFailed(ctx context.Context, name string) error {
	return l.again(ctx, func(m Manager) error { return m.ResetFailed(ctx, name) })
}
