package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gitopsd/gitopsd/schema"
)

// Fetched is what a poll that a person asked for has found.
type Fetched struct {
	// From and To are the commits of the delivery ref before and now; "" = there
	// was none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Current is the version that the device is on, Assigned the one that the
	// document names; "" = none.
	Current  string `json:"current"`
	Assigned string `json:"assigned,omitempty"`
}

// Ran is what came of the pass that the poll was part of.
type Ran struct {
	Exit    int    `json:"exit"` // as of [Result]
	Summary string `json:"summary"`
	// HandOver says that the work goes on with another program as the agent.
	HandOver bool `json:"handOver,omitempty"`
	// GaveUp says that nothing was left to do although the newest attempt has
	// failed or was refused.
	GaveUp bool `json:"gaveUp,omitempty"`
	// Idle says that there was nothing to do.
	Idle bool `json:"idle,omitempty"`
}

func ranOf(r Result) Ran {
	return Ran{Exit: r.Exit, Summary: r.Summary, HandOver: r.HandOver, GaveUp: r.gaveUp, Idle: r.idle}
}

// maxWaiting bounds who waits for a poll at one time.
const maxWaiting = 16

// ErrAskedOften means that too many wait for the next poll already.
var ErrAskedOften = errors.New("many wait for the next poll already")

// ErrEnded is what whoever waits is told when the agent ends.
var ErrEnded = errors.New("the agent ended meanwhile")

// asker is one who waits for the next poll; both channels have room, so that
// the work never waits for who asked.
type asker struct {
	fetched chan polled
	ran     chan Ran
	told    bool // what was fetched
	// meanwhile is what came of the work that went on when it asked: where the
	// poll has found nothing to do, that is what it waited for.
	meanwhile *Result
}

type polled struct {
	Fetched
	err error
}

// asks are what people ask of the running agent. Nothing of it costs anything
// while nobody asks.
type asks struct {
	signal chan struct{}

	mu    sync.Mutex
	poll  []*asker // who waits for the next pass that polls
	now   []*asker // who the pass that goes on is for
	ended bool
}

// PollNow has the running agent ask control at once. fetched is told what it
// found, then the pass goes on; the result is that of the whole pass. It is not
// told where another program takes over before. It may be called beside Run.
func (a *Agent) PollNow(ctx context.Context, fetched func(Fetched) error) (Ran, error) {
	w := &asker{fetched: make(chan polled, 1), ran: make(chan Ran, 1)}
	if err := a.asks.add(w); err != nil {
		return Ran{}, err
	}
	a.nudge()
	select {
	case <-ctx.Done():
		return w.interrupted(ctx)
	case f, ok := <-w.fetched:
		if !ok {
			return w.result()
		}
		if f.err != nil {
			return Ran{}, f.err
		}
		if err := fetched(f.Fetched); err != nil {
			return Ran{}, err
		}
	}
	select {
	case <-ctx.Done():
		return w.interrupted(ctx)
	case r, ok := <-w.ran:
		if !ok {
			return Ran{}, ErrEnded
		}
		return r, nil
	}
}

// result is what came of a pass that is over.
func (w *asker) result() (Ran, error) {
	select {
	case r, ok := <-w.ran:
		if ok {
			return r, nil
		}
	default:
	}
	return Ran{}, ErrEnded
}

// interrupted is a result nevertheless where an agent that makes way has told it
// before it ended.
func (w *asker) interrupted(ctx context.Context) (Ran, error) {
	if r, err := w.result(); err == nil {
		return r, nil
	}
	return Ran{}, ctx.Err()
}

// LookAround has the running agent look at holds and the like at once, and
// tell of them. It may be called beside Run.
func (a *Agent) LookAround() { a.nudge() }

func (a *Agent) nudge() {
	select {
	case a.asks.signal <- struct{}{}:
	default:
	}
}

func (q *asks) add(w *asker) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ended:
		return ErrEnded
	case len(q.poll) >= maxWaiting:
		return ErrAskedOften
	}
	q.poll = append(q.poll, w)
	return nil
}

// take begins a pass for those who wait for a poll; asked says whether there
// are any.
func (q *asks) take() (asked bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.now, q.poll = q.poll, nil
	return len(q.now) > 0
}

// looked tells them what the poll has found.
func (q *asks) looked(f Fetched, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.now {
		if !w.told {
			w.told = true
			w.fetched <- polled{f, err}
		}
	}
}

// done tells them how the pass ended; one that polled nothing, why. Where another
// program takes over, it tells those who wait for the next pass, too.
func (q *asks) done(r Result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.now
	if r.HandOver {
		all, q.poll = append(all, q.poll...), nil
	}
	if !r.idle && r.Summary != "" {
		for _, w := range q.poll {
			w.meanwhile = &r
		}
	}
	for _, w := range all {
		if w.meanwhile != nil && r.idle && r.Exit == 0 {
			w.ran <- ranOf(*w.meanwhile)
		} else {
			w.ran <- ranOf(r)
		}
		switch {
		case w.told:
		case r.HandOver:
			close(w.fetched)
		default:
			w.fetched <- polled{err: fmt.Errorf("control was not asked: %s", r.Summary)}
		}
	}
	q.now = nil
}

// end lets everybody go.
func (q *asks) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	for _, w := range append(q.now, q.poll...) {
		close(w.fetched)
		close(w.ran)
	}
	q.now, q.poll = nil, nil
}

// tellAskers says what a poll came to, before anything is done about it.
func (a *Agent) tellAskers(d schema.Delivery, err error) {
	if err != nil {
		a.asks.looked(Fetched{}, fmt.Errorf("control did not answer: %w", err))
		return
	}
	f := Fetched{From: a.revision, To: d.Revision, Current: a.store.current.Version}
	if d.Assignment != nil {
		f.Assigned = d.Assignment.Version
	}
	a.revision = d.Revision
	a.asks.looked(f, nil)
}
