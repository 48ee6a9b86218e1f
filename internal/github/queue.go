package github

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// maxWaiting bounds the pull requests that wait. The next look at all of them
// finds what had no place.
const maxWaiting = 2000

// errSuperseded ends work on what is no longer the newest.
var errSuperseded = errors.New("there is something newer to look at")

// errAwaited ends work that is taken up again a little later.
var errAwaited = errors.New("it is awaited")

// item is one pull request that something is to be done about.
type item struct {
	number int
	want   string    // the head that was announced; "" = any
	polled bool      // nobody announced it: what stands there already may do
	stale  bool      // only the banner of the comment is to be put right
	ready  time.Time // not before
	tries  int
	review *Review // of an earlier try that could not be written
	at     time.Time
}

// queue holds one item for each pull request, the newest; the first come is
// the first served.
type queue struct {
	mu      sync.Mutex
	order   []int
	waiting map[int]*item
	running int // number; 0 = none
	wanted  string
	stop    context.CancelCauseFunc
	wake    chan struct{}
}

func newQueue() *queue { return &queue{waiting: map[int]*item{}, wake: make(chan struct{}, 1)} }

// put takes an item in the place of an older one. What is being done about the
// same pull request is given up when it is about another head.
func (q *queue) put(it *item) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.waiting[it.number]
	switch {
	case old == nil && len(q.waiting) >= maxWaiting:
		return fmt.Errorf("%d pull requests wait already; a later look at all of them finds the others", maxWaiting)
	case old == nil:
		q.order = append(q.order, it.number)
	case it.stale && !old.stale:
		return nil // it is about to be written anew
	case it.polled && !old.polled && !old.stale:
		return nil // what was announced is looked at as it is by then
	}
	q.waiting[it.number] = it
	if q.running == it.number && !it.stale && it.want != q.wanted && q.stop != nil {
		q.stop(errSuperseded)
	}
	q.signal()
	return nil
}

// again puts an item back after trouble, unless something newer waits.
func (q *queue) again(it *item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[it.number] == nil {
		q.waiting[it.number] = it
		q.order = append(q.order, it.number)
		q.signal()
	}
}

// drop forgets a pull request and gives up what is being done about it.
func (q *queue) drop(number int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(number)
	if q.running == number && q.stop != nil {
		q.stop(errSuperseded)
	}
}

func (q *queue) remove(number int) {
	if q.waiting[number] == nil {
		return
	}
	delete(q.waiting, number)
	for i, n := range q.order {
		if n == number {
			q.order = append(q.order[:i], q.order[i+1:]...)
			return
		}
	}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take gives the first item that is ready, with a context that ends when it is
// superseded; nil = there is none before next (zero = none at all).
func (q *queue) take(ctx context.Context, now time.Time) (it *item, work context.Context, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, number := range q.order {
		one := q.waiting[number]
		if one.ready.After(now) {
			if next.IsZero() || one.ready.Before(next) {
				next = one.ready
			}
			continue
		}
		q.remove(number)
		work, q.stop = context.WithCancelCause(ctx)
		q.running, q.wanted = number, one.want
		return one, work, time.Time{}
	}
	return nil, nil, next
}

// done ends the work on what take gave.
func (q *queue) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop(nil)
	q.running, q.wanted, q.stop = 0, "", nil
}
