package sweep

import (
	"context"
	"fmt"
	"time"
)

// checkTip tells a status branch that was rewound from one that moved on
// since this pass listed it.
func (p *pass) checkTip(ctx context.Context) error {
	ref := branchRef(p.d.cfg.StatusBranch)
	refs, err := p.d.cfg.Remote.Refs(ctx, ref)
	if err != nil {
		return fmt.Errorf("list the status branch %s: %w", p.d.cfg.StatusBranch, err)
	}
	if refs[ref] != p.tip {
		return &raceError{what: "the status branch is not where it was listed"}
	}
	return nil
}

func (p *pass) rewound(id string, there, here int64) stop {
	return stop{
		reason:  "StatusRewound",
		message: wentBack(id, there, here),
		remedy:  "push the newer status branch again, or " + p.rebuildRemedy(),
	}
}

// rebuildRemedy is how the status branch is made anew, with the source commit
// that was swept last, as far as that is known.
func (p *pass) rebuildRemedy() string {
	const start = "start the daemon once with --accept-status-loss="
	if swept := p.d.state.watch.Swept; swept != "" {
		return start + swept + " to rebuild it as of the commit that was swept last"
	}
	if p.head != "" {
		return start + p.head + " to rebuild it as of the present head (this daemon does not know which commit was swept last; if you do, name that)"
	}
	return "push the source branch, and start the daemon once with --accept-status-loss and the commit that was swept last, to rebuild it"
}

// statusLoss stops the pass without writing, or begins to rebuild where a
// person has accepted that.
func (p *pass) statusLoss(_ context.Context, s stop) error {
	if p.d.accept.StatusLoss == "" || s.reason == reasonFormat {
		p.stopMute(s)
		return nil
	}
	p.rebuilt = true
	if !p.full {
		p.d.repairedAt = time.Time{}
		return &raceError{what: "all deliveries are needed to rebuild the status branch"}
	}
	return nil
}
