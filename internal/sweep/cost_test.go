package sweep

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"
)

// ledger counts what a daemon asks a repository for, and what it gives it.
type ledger struct {
	*memRemote
	of map[string]int
}

func (l *ledger) Fetch(ctx context.Context, ref, commit string, history bool) error {
	l.of["fetches"]++
	return l.memRemote.Fetch(ctx, ref, commit, history)
}

func (l *ledger) Parents(ctx context.Context, commit string) ([]string, error) {
	l.of["commits read"]++
	return l.memRemote.Parents(ctx, commit)
}

func (l *ledger) Diff(ctx context.Context, oldCommit, newCommit string, fn func(path, oldBlob, newBlob string, mode uint32) error) error {
	l.of["commits compared"]++
	return l.memRemote.Diff(ctx, oldCommit, newCommit, fn)
}

func (l *ledger) Walk(ctx context.Context, commit string, fn func(path, blob string, mode uint32) error) error {
	l.of["walks"]++
	return l.memRemote.Walk(ctx, commit, fn)
}

func (l *ledger) Log(ctx context.Context, from, until string, fn func(hash, author string, when time.Time, message string) bool) error {
	return l.memRemote.Log(ctx, from, until, func(hash, author string, when time.Time, message string) bool {
		l.of["commits read"]++
		return fn(hash, author, when, message)
	})
}

func (l *ledger) Blob(ctx context.Context, hash string, limit int64) ([]byte, error) {
	l.of["blobs read"]++
	return l.memRemote.Blob(ctx, hash, limit)
}

func (l *ledger) Tips(ctx context.Context, refs map[string]string, limit int64) (map[string]map[string][]byte, error) {
	l.of["tips read"] += len(refs)
	return l.memRemote.Tips(ctx, refs, limit)
}

func (l *ledger) PutBlob(ctx context.Context, data []byte) (string, error) {
	l.of["blobs written"]++
	return l.memRemote.PutBlob(ctx, data)
}

func (l *ledger) Commit(ctx context.Context, parent string, changes map[string]string, when time.Time, message string) (string, error) {
	l.of["paths written"] += len(changes)
	return l.memRemote.Commit(ctx, parent, changes, when, message)
}

func (l *ledger) Publish(ctx context.Context, lead, rest map[string][2]string) (map[string]string, error) {
	l.of["refs moved"] += len(lead) + len(rest)
	return l.memRemote.Publish(ctx, lead, rest)
}

// TestCostFollowsChanges: what a sweep reads and writes grows with what
// changed, and is the same however many devices there are beside.
func TestCostFollowsChanges(t *testing.T) {
	cost := func(t *testing.T, devices, changes int, change func(w *world, id string)) map[string]int {
		w := newWorld(t, devices)
		w.change("all at once", "maxInFlight", "100")
		l := &ledger{memRemote: w.remote(), of: map[string]int{}}
		d := w.daemon(func(c *Config) { c.Remote = l })
		w.until(d, "all are on their target", func() bool { return w.on("v1.0.0") == devices })
		w.rounds(d, 2)
		clear(l.of)
		for _, id := range w.ids()[:changes] {
			change(w, id)
		}
		w.pass(time.Second)
		if p, err := d.Once(t.Context()); err != nil || !p.Committed {
			t.Fatalf("%d changes: committed %t (%v)", changes, p.Committed, err)
		}
		return l.of
	}
	for name, change := range map[string]func(w *world, id string){
		"devices report": func(w *world, id string) {
			w.devices[id].busy = true
			w.devices[id].heartbeat()
		},
		"device files change": func(w *world, id string) {
			w.push("hold "+id, map[string]string{"devices/berlin/" + id + ".yaml": strings.Replace(deviceYAML(id, ""), "spec:\n", "spec:\n  hold: {reason: a disk}\n", 1)})
		},
		"specs change": func(w *world, id string) {
			w.push("another serial of "+id, map[string]string{"devices/berlin/" + id + ".yaml": strings.Replace(deviceYAML(id, ""), `serial: "`+id+`"`, "serial: other", 1)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, changes := range []int{1, 4} {
				few, many := cost(t, 5, changes, change), cost(t, 30, changes, change)
				if !maps.Equal(few, many) {
					t.Errorf("%d changes\namong 5 devices:  %v\namong 30 devices: %v", changes, few, many)
				}
				t.Log(changes, many)
			}
		})
	}
}
