package units

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

// cable is a connection that ends after some calls.
type cable struct {
	Manager
	calls  *int
	holds  int // calls that it outlives
	closed bool
}

func (c *cable) Reload(context.Context) error {
	*c.calls++
	if c.holds--; c.holds < 0 {
		return io.EOF
	}
	return nil
}

func (c *cable) ResetFailed(context.Context, string) error {
	*c.calls++
	return errors.New("no")
}

func (c *cable) Close() { c.closed = true }

func (c *cable) lost(err error) bool { return errors.Is(err, io.EOF) }

// TestSystemdExecutedAnew has the connection to systemd end in the middle of
// calls, as an update of systemd itself does it.
func TestSystemdExecutedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, dialed, away := 0, 0, 0
		var last *cable
		dial := func(context.Context) (connection, error) {
			if away > 0 {
				away--
				return nil, ErrNoSystemd
			}
			dialed++
			last = &cable{calls: &calls, holds: 1}
			return last, nil
		}
		begin := func() *lasting {
			conn, err := connect(t.Context(), dial, dialEvery)
			if err != nil {
				t.Fatal(err)
			}
			return &lasting{connection: conn, dial: dial, every: dialEvery}
		}
		l := begin()
		old := last
		away = 5
		for range 2 { // the second finds the connection gone
			if err := l.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if dialed != 2 || calls != 3 || !old.closed {
			t.Errorf("%d connections and %d calls, want 2 and 3 (the lost one closed: %t)", dialed, calls, old.closed)
		}

		// What systemd has answered is not asked for again.
		calls = 0
		if err := l.ResetFailed(t.Context(), "x.service"); err == nil || calls != 1 {
			t.Errorf("an answer was asked for %d times (%v)", calls, err)
		}

		// A systemd that stays away, or ends every connection, is not waited for
		// for ever.
		l = begin()
		last.holds, away = 0, 1<<30
		if err := l.Reload(t.Context()); !errors.Is(err, ErrNoSystemd) || !errors.Is(err, io.EOF) {
			t.Errorf("with systemd gone: %v", err)
		}
		away, calls = 0, 0
		l.dial = func(context.Context) (connection, error) { return &cable{calls: &calls}, nil }
		if err := l.Reload(t.Context()); !errors.Is(err, io.EOF) || calls > losses+1 {
			t.Errorf("with a systemd that ends every connection: %v after %d calls", err, calls)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		away = 1 << 30
		if _, err := connect(ctx, dial, dialEvery); err == nil {
			t.Error("a cancelled agent goes on to wait")
		}
	})
}
