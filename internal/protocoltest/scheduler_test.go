package protocoltest

import (
	"context"
	"errors"
	"strings"
)

// errDead is what a program that was killed gets from everything it tries
// until it has ended: nothing of that has an effect.
var errDead = errors.New("the process is dead")

// actor is one program, or rather the place where one runs: a daemon or a
// device, whose instances come and go. Its passes run in a goroutine of its
// own, and only while the actor has the token.
type actor struct {
	name string
	pass func(ctx context.Context) error // one pass, of a fresh instance where there is none
	drop func()                          // the instance is gone; the next pass makes another

	resume  chan struct{} // nil = it has never run
	running bool          // a pass is under way, perhaps in the middle
	asleep  bool          // it is so slow that others go on
	dying   bool
	stopped bool // its context was cancelled
	cancel  context.CancelFunc
	fault   fault // of the next exchange
	fuse    int   // small steps until it dies; 0 = it does not
	lag     replicas
	blurred bool // it was shown old reports
}

type fault int

const (
	noFault fault = iota
	faultBefore
	faultAfter
)

// scheduler lets exactly one actor run at a time.
type scheduler struct {
	actors []*actor
	cur    int
	token  *actor        // whoever had it last
	back   chan struct{} // the token comes back
	budget int           // points until it does
	points int
	check  func() // after every point
	failed func() bool
	log    func(format string, args ...any)
}

// endless is a budget that no pass uses up; a pass that does is stuck.
const endless = 1 << 30

// maxPoints bounds one run: a schedule that needs more does not come to rest.
const maxPoints = 200_000

// errStuck ends everything that a run has still under way.
var errStuck = errors.New("this run has had too many steps")

// point is where another actor may go on. It is called by the actor that has
// the token; the error means that the actor is dead.
func (s *scheduler) point(a *actor) error {
	if a.dying {
		return errDead
	}
	s.points++
	s.check()
	if s.failed() || s.points > maxPoints {
		return errStuck
	}
	if s.budget--; s.budget > 0 {
		return nil
	}
	s.back <- struct{}{}
	<-a.resume
	if a.dying {
		return errDead
	}
	return nil
}

// tick is a step that nobody but the actor's own death can come before:
// others see nothing of it, so they need not be let in. That keeps schedules
// what they are when a program does its bookkeeping in more or fewer steps.
func (s *scheduler) tick(a *actor) error {
	if a.dying {
		return errDead
	}
	if s.points++; s.failed() || s.points > maxPoints {
		return errStuck
	}
	if a.fuse == 0 {
		return nil
	}
	if a.fuse--; a.fuse == 0 {
		s.log("-- %s is killed here", a.name)
		a.dying = true
		return errDead
	}
	return nil
}

// run gives an actor the token, until it has used up the budget or its pass
// is over.
func (s *scheduler) run(a *actor) {
	a.running = true
	if a.resume == nil {
		a.resume = make(chan struct{})
		go s.passes(a)
	}
	s.token = a
	a.resume <- struct{}{}
	<-s.back
	if !a.running {
		s.budget-- // a pass without a point counts, too
		if a.dying || a.stopped {
			a.dying, a.stopped, a.fuse = false, false, 0
			a.drop()
		}
	}
	s.check()
}

// passes makes one pass after the other, each when it gets the token.
func (s *scheduler) passes(a *actor) {
	for range a.resume {
		ctx, cancel := context.WithCancel(context.Background())
		a.cancel = cancel
		err := a.pass(ctx)
		s.log("%s: pass over: %v", a.name, errText(err))
		cancel()
		a.running = false
		s.back <- struct{}{}
	}
}

func errText(err error) string {
	if err == nil {
		return "ok"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// advance lets actors go on for some points: the present one, and when its
// pass is over, the next.
func (s *scheduler) advance(points int) {
	s.budget = points
	for s.budget > 0 && !s.failed() {
		a := s.actors[s.cur]
		s.run(a)
		if !a.running {
			s.next()
		}
	}
}

// next is the turn of the next actor that is not asleep.
func (s *scheduler) next() {
	for range s.actors {
		s.cur = (s.cur + 1) % len(s.actors)
		if !s.actors[s.cur].asleep {
			return
		}
	}
	for _, a := range s.actors {
		a.asleep = false // somebody has to go on
	}
}

func (s *scheduler) switchTo(i int) {
	s.cur = i % len(s.actors)
	s.actors[s.cur].asleep = false
}

// finish lets a pass that is under way come to its end.
func (s *scheduler) finish(a *actor) {
	for a.running {
		s.budget = endless
		s.run(a)
	}
}

// whole lets an actor make one whole pass.
func (s *scheduler) whole(a *actor) {
	s.budget = endless
	s.run(a)
	s.finish(a)
}

// kill ends an actor's program where it is.
func (s *scheduler) kill(a *actor) {
	if !a.running {
		a.drop()
		return
	}
	a.dying = true
	s.finish(a)
}

// stop asks an actor's program to end, as a service manager does.
func (s *scheduler) stop(a *actor) {
	if !a.running {
		a.drop()
		return
	}
	a.stopped = true
	a.cancel()
	s.finish(a)
}

// end kills all that is under way, and sends everybody home.
func (s *scheduler) end() {
	for _, a := range s.actors {
		s.kill(a)
		if a.resume != nil {
			close(a.resume)
		}
	}
}
