package sweep

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/planner"
	"github.com/gitopsd/gitopsd/schema"
)

// pass is one pass over the fleet: what its steps found out so far.
type pass struct {
	d   *Daemon
	now time.Time // trusted, also while the wall clock is not

	// fetch
	full     bool              // all deliveries are compared
	refs     map[string]string // of the fleet repository
	branch   string
	head     string // of the source branch; "" = it is not there
	tip      string // of the status branch; "" = it is not there
	brakeTip string // of the brake branch; "" = it is not there
	status   *Status
	stale    bool  // head is older than what was swept: a replica that lags
	broken   error // why the tree of head cannot be read; nil = nothing is known against it
	gone     bool  // the commit that was swept cannot be read any more

	// repair
	confirmed map[string]bool   // devices whose delivery is known to be as it should, before the reports were read
	relist    bool              // the listing of the reports may be older than a confirmed delivery
	delivery  map[string]string // device → value of its ref, of those that were looked at

	// reports
	heard   bool              // a report moved, or went
	resting bool              // nothing is new, so nothing more is done
	unheard map[string]string // devices that are not listened to, and why

	// guard, validate
	stops      []stop
	mute       bool // nothing may be written
	clockStops bool
	fleet      *loadedFleet // what is planned with; nil = nothing can be planned
	restrict   Restrictions
	rebuilt    bool
	accepted   Accept // what this pass needed of what a person accepts

	// plan
	watching time.Time
	due      time.Time      // when something other than the planner may come to something else; zero = never
	drafts   []*draft       // of the devices of which something may change
	started  []Move         // attempts whose start is recorded now
	final    planner.Result // over what will stand on the status branch
	notices  []schema.Condition
	wrote    bool // something was pushed

	result Pass
}

func newPass(d *Daemon) *pass {
	return &pass{
		d:         d,
		confirmed: map[string]bool{},
		delivery:  map[string]string{},
	}
}

// run does the steps in their order. Deliveries are repaired before the
// reports are read: a report frees a slot only if it was read after its
// device could see the recall.
func (p *pass) run(ctx context.Context) error {
	steps := []func(context.Context) error{
		p.fetch,       // source and status branch
		p.repair,      // deliveries that do not stand as the status branch says
		p.readReports, // what devices say
		p.isAtRest,    // the end, where nothing is new since a pass that had nothing to do
		p.rebuild,     // only where a lost status branch was accepted
		p.guard,       // what stops a pass before the content is looked at
		p.validate,    // the head, or the fleet swept last
		p.plan,        // snapshot, verdicts, and what they change
		p.publish,     // one commit, then the deliveries
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			p.sayStops(ctx)
			return err
		}
		if p.mute || p.resting {
			break
		}
	}
	p.sayStops(ctx)
	p.noteRest()
	return nil
}

// stop is a guard that found something which a person must decide.
type stop struct {
	kind    string // type of the condition
	reason  string // stable word
	message string
	remedy  string
}

func (p *pass) stop(s stop) {
	if s.kind == "" {
		s.kind = conditionStopped
	}
	p.stops = append(p.stops, s)
}

// stopMute is for stops whose cause is the status branch itself.
func (p *pass) stopMute(s stop) {
	p.stop(s)
	p.mute = true
}

// reasonFormat is the one state of a status branch that nobody may accept.
const reasonFormat = "StatusFormat"

// Types of conditions in fleet.yaml.
const (
	conditionStopped = "Stopped"
	conditionInvalid = "Invalid"
	conditionRefused = "DeliveryRefused"
)

// conditions are the stops and notices of the pass; one that already stands
// in fleet.yaml keeps its time.
func (p *pass) conditions() []schema.Condition {
	all := []schema.Condition{}
	for _, s := range p.stops {
		all = append(all, schema.Condition{Type: s.kind, Reason: s.reason, Message: s.message, Remedy: s.remedy})
	}
	all = append(all, p.notices...)
	for i := range all {
		all[i].Since = p.since(all[i])
	}
	return all
}

func (p *pass) since(c schema.Condition) time.Time {
	if p.status != nil && p.status.Fleet != nil {
		for _, old := range p.status.Fleet.Conditions {
			if old.Type == c.Type && old.Reason == c.Reason {
				return old.Since
			}
		}
	}
	return p.now
}

// sayStops logs each stop once and puts it into the result.
func (p *pass) sayStops(ctx context.Context) {
	p.result.Stops = p.conditions()[:len(p.stops)]
	var reasons []string
	for _, s := range p.stops {
		reasons = append(reasons, s.reason)
		if p.d.news("stop "+s.reason, s.message) {
			p.d.log.WarnContext(ctx, "stopped: "+s.message, keyReason, s.reason, keyRemedy, s.remedy)
		}
	}
	for subject := range maps.Clone(p.d.said) {
		if reason, ok := strings.CutPrefix(subject, "stop "); ok && !slices.Contains(reasons, reason) {
			p.d.news(subject, "")
			p.d.log.InfoContext(ctx, "no longer stopped", keyReason, reason)
		}
	}
}

// asStop turns what a status branch can be wrong with into a stop.
func (p *pass) asStop(err error) (stop, bool) {
	var newer *newerFormat
	if errors.As(err, &newer) {
		return stop{reason: reasonFormat, message: newer.Error(),
			remedy: "run the version of gitopsd that wrote it, or a newer one"}, true
	}
	var bad *unreadable
	if errors.As(err, &bad) {
		return stop{reason: "StatusUnreadable", message: bad.Error(),
			remedy: "take the last change of the status branch back, or delete the branch and " + p.rebuildRemedy()}, true
	}
	return stop{}, false
}
