package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	// coalesce makes one report of several changes: an update without slow
	// parts passes all its phases within it.
	coalesce = 1500 * time.Millisecond
	// maxPutOff is how often a further change puts the report off: what never
	// comes to rest must be heard, too.
	maxPutOff = 4
	// A report that was not accepted is sent again after firstResend, then
	// after twice as long each time, up to lastResend.
	firstResend = 5 * time.Second
	lastResend  = 5 * time.Minute
	// heartbeatJitter takes up to this part off the heartbeat, so that a
	// fleet that was started together does not report together, and never
	// later than it promised.
	heartbeatJitter = 0.2
)

// reporter sends reports beside the work: on every change, and as a
// heartbeat. Failing to send fails nothing; it is tried again.
type reporter struct {
	clock
	control   Control
	seq       *sequence
	log       *slog.Logger
	jitter    func() float64
	heartbeat time.Duration
	free      func() int64

	sending sync.Mutex // one report at a time, numbers in order

	mu      sync.Mutex
	next    *schema.Report
	content []byte        // of next, as far as it matters
	sent    []byte        // content that was accepted last
	sentAt  time.Duration // uptime
	unheard ongoing
	wake    chan struct{}
	hurry   chan struct{}
}

func newReporter(c Control, seq *sequence, at clock, log *slog.Logger, jitter func() float64, heartbeat time.Duration, free func() int64) *reporter {
	return &reporter{clock: at, control: c, seq: seq, log: log, jitter: jitter, heartbeat: heartbeat, free: free, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

// significant is what makes a report worth sending by itself. Being busy
// waits for the next heartbeat: it changes often, and a push is dear.
func significant(r *schema.Report) []byte {
	c := *r
	c.Sequence, c.ReportedAt, c.FreeDisk = 0, time.Time{}, 0
	c.Busy, c.BusyReason = false, ""
	c.Monitors = slices.Clone(c.Monitors)
	for i := range c.Monitors {
		c.Monitors[i].Used = 0
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil
	}
	return b
}

// offer puts the newest report in place of one not yet sent.
func (p *reporter) offer(r *schema.Report) {
	c := significant(r)
	p.mu.Lock()
	fresh := !bytes.Equal(c, p.content)
	p.next, p.content = r, c
	p.mu.Unlock()
	if !fresh {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// again sends what was not accepted soon: control answers again.
func (p *reporter) again() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// due says whether there is something to tell.
func (p *reporter) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !bytes.Equal(p.content, p.sent)
}

// flush sends the newest report now. A nil error means that control accepted
// it.
func (p *reporter) flush(ctx context.Context) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.mu.Lock()
	r, content := *p.next, p.content
	p.mu.Unlock()
	id, n, err := p.seq.take()
	if err != nil {
		return err
	}
	r.InstallID, r.Sequence = id, n
	r.FreeDisk = p.free()
	r.ReportedAt = p.now().UTC().Truncate(time.Second)
	if err := p.control.Report(ctx, &r); err != nil {
		return err
	}
	p.mu.Lock()
	p.sent, p.sentAt = content, p.up()
	lasted, was := p.unheard.over(p.up())
	p.mu.Unlock()
	if was {
		p.log.Info("reports are accepted again", "after", lasted)
	}
	p.log.Debug("reported", "sequence", n, "phase", r.Phase, "attempt", r.Attempt)
	return nil
}

// refused tells that a report was not accepted.
func (p *reporter) refused(err error) {
	p.mu.Lock()
	tell := p.unheard.tell("refused", p.up())
	p.mu.Unlock()
	if tell {
		p.log.Warn("report not accepted; the newest one is sent again until it is", "atLeastEvery", lastResend, "error", err)
	}
}

// run sends until ctx ends.
func (p *reporter) run(ctx context.Context) {
	timer := time.NewTimer(p.beat())
	defer timer.Stop()
	resend, putOff := time.Duration(0), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			if resend == 0 && putOff <= maxPutOff && p.due() {
				timer.Reset(coalesce)
				putOff++
			}
			continue
		case <-p.hurry:
			if resend > 0 {
				resend = 0
				timer.Reset(coalesce)
			}
			continue
		case <-timer.C:
		}
		putOff = 0
		if wait := p.silence(); !p.due() && wait > 0 {
			resend = 0 // it went out with the work
			timer.Reset(wait)
			continue
		}
		if err := p.flush(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			resend = min(max(2*resend, firstResend), lastResend)
			p.refused(err)
			timer.Reset(resend)
			continue
		}
		resend = 0
		if p.due() {
			timer.Reset(coalesce)
		} else {
			timer.Reset(p.beat())
		}
	}
}

// silence is how long nothing need be said yet.
func (p *reporter) silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent == nil {
		return 0
	}
	return p.beat() - (p.up() - p.sentAt)
}

func (p *reporter) beat() time.Duration {
	return time.Duration(float64(p.heartbeat) * (1 - heartbeatJitter*p.jitter()))
}
