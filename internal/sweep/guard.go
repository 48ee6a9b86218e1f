package sweep

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

const deletionTrailer = "Gitopsd-Accept-Deletions:"

// judgeClock stops the pass when the clock cannot be trusted. Until it can,
// records bear the time that the clock should show.
func (p *pass) judgeClock(r reading) {
	d := p.d
	c := &d.state.watch.Clock
	newest := p.newestRecorded()
	why, trusted := c.judge(r, newest)
	if why != "" && d.accept.Clock {
		c.Accepted = newest
		p.accepted.Clock = true
		why, trusted = "", r.wall
	}
	p.now = trusted
	if why == "" {
		c.anchor(r)
		return
	}
	p.clockStops = true
	p.stop(stop{
		reason:  "ClockJumped",
		message: why,
		remedy:  "set the clock right, or start the daemon with --accept-clock if it is",
	})
}

// newestRecorded is the newest time on the status branch or in the state
// folder.
func (p *pass) newestRecorded() time.Time {
	newest := p.d.state.watch.Clock.Wall
	if recorded := p.status.counted().newest; recorded.After(newest) {
		return recorded
	}
	return newest
}

// guard looks at the source branch: is it there, and does it go on from what
// was swept?
func (p *pass) guard(ctx context.Context) error {
	if p.head == "" {
		return p.noSource(ctx)
	}
	swept := p.status.swept()
	if swept == "" || swept == p.head {
		return nil
	}
	if p.broken != nil {
		return nil // its history cannot be asked for
	}
	forward, behind, err := p.compareWithSwept(ctx, swept)
	if err != nil {
		return err
	}
	if forward {
		p.d.news("stale", "")
		return nil
	}
	switch {
	case accepts(p.d.accept.Rewrite, p.head):
		p.accepted.Rewrite = p.head
		p.d.log.InfoContext(ctx, "the rewritten source branch is accepted", keyOld, swept, keyCommit, p.head)
	case behind:
		p.stale = true
		if p.d.news("stale", p.head) {
			p.d.log.WarnContext(ctx, "the source branch is behind what was swept; a server that lags, or a branch that was set back (then: --accept-rewrite)",
				keyCommit, p.head, keyOld, swept)
		}
	case p.gone:
		p.stop(stop{
			reason:  "HistoryRewritten",
			message: fmt.Sprintf("the source branch %s at %s cannot be compared with %s, which was swept: that is no commit of the repository any more", p.branch, p.head, oneLine(swept)),
			remedy:  fmt.Sprintf("push the old history again, or start the daemon with --accept-rewrite %s", p.head),
		})
	default:
		p.stop(stop{
			reason:  "HistoryRewritten",
			message: fmt.Sprintf("the source branch %s was rewritten: %s does not come from %s, which was swept", p.branch, p.head, swept),
			remedy:  fmt.Sprintf("push the old history again, or start the daemon with --accept-rewrite %s", p.head),
		})
	}
	return nil
}

// compareWithSwept says whether the head goes on from the commit that was
// swept, or is behind it. A commit that is not there any more is neither.
func (p *pass) compareWithSwept(ctx context.Context, swept string) (forward, behind bool, err error) {
	r := p.d.cfg.Remote
	err = r.Log(ctx, swept, "", func(string, string, time.Time, string) bool { return false })
	if err != nil && isBroken(err) {
		p.gone = true
		return false, false, nil
	}
	if err == nil {
		forward, err = r.IsAncestor(ctx, swept, p.head)
	}
	if err != nil {
		return false, false, fmt.Errorf("ask whether %s is an ancestor of %s: %w", short(swept), short(p.head), err)
	}
	if !forward {
		if behind, err = r.IsAncestor(ctx, p.head, swept); err != nil {
			return false, false, fmt.Errorf("ask whether %s is an ancestor of %s: %w", short(p.head), short(swept), err)
		}
	}
	return forward, behind, nil
}

// sayAccepted tells a person whose word was not needed: it counts no longer.
func (p *pass) sayAccepted(ctx context.Context) {
	given := p.d.accept
	if given.Rewrite != "" && p.accepted.Rewrite == "" {
		why := "the source branch goes on from what was swept"
		switch {
		case p.head == "":
			why = "the source branch is not there"
		case !accepts(given.Rewrite, p.head) && p.sourceStopped():
			why = fmt.Sprintf("it names %s, but the head is %s (give at least %d digits of it)", oneLine(given.Rewrite), p.head, acceptMinDigits)
		}
		p.d.log.WarnContext(ctx, "there was nothing to accept for --accept-rewrite: "+why)
	}
	if given.StatusLoss != "" && !p.rebuilt {
		p.d.log.WarnContext(ctx, "there was nothing to accept for --accept-status-loss: the status branch is there and fits the deliveries")
	}
	if given.Clock && !p.accepted.Clock {
		p.d.log.WarnContext(ctx, "there was nothing to accept for --accept-clock: the clock fits what is on record")
	}
}

// noSource says what is there instead of the source branch.
func (p *pass) noSource(ctx context.Context) error {
	names, err := p.branchNames(ctx)
	if err != nil {
		return err
	}
	s := stop{
		reason:  "BranchMissing",
		message: fmt.Sprintf("the source branch %s is not there; the repository has: %s", p.branch, names),
		remedy:  "push the branch, or configure another one (--branch)",
	}
	if names == "" {
		s = stop{
			reason:  "NoCommits",
			message: "the repository has no commits yet",
			remedy:  "commit the fleet's files and push them (gitopsd init writes files to start from, but makes no commit); the daemon goes on by itself",
		}
	}
	p.stop(s)
	// Without a status branch there is nothing to go on with, and the first
	// branch of an empty repository should be a person's.
	p.mute = p.tip == ""
	return nil
}

// deletions stops the pass when more devices are gone than anybody deletes
// without saying so. It gives false then.
func (p *pass) deletions(ctx context.Context, head *schema.Fleet) (bool, error) {
	swept := p.status.swept()
	if swept == "" || swept == p.head {
		return true, nil
	}
	total, gone := 0, 0
	for id, rec := range p.status.Devices {
		if rec.Assignment != nil && rec.Assignment.Removed {
			continue
		}
		total++
		if head.Member(id) == nil {
			gone++
		}
	}
	if gone == 0 {
		return true, nil
	}
	limit := p.deletionLimit(ctx, head, swept, total)
	if gone <= limit && gone < total {
		return true, nil
	}
	accepted, err := p.acceptedDeletions(ctx, swept)
	if err != nil {
		return false, err
	}
	if gone <= accepted {
		return true, nil
	}
	who := fmt.Sprintf("%d of %d devices are", gone, total)
	if total == 1 {
		who = "the only device is"
	}
	p.stop(stop{
		reason:  "TooManyDeletions",
		message: fmt.Sprintf("%s gone from %s since %s was swept; up to %d may go at once, and never all", who, short(p.head), short(swept), limit),
		remedy:  fmt.Sprintf("bring them back, or push a commit whose message has the line %q", fmt.Sprintf("%s %d", deletionTrailer, gone)),
	})
	return false, nil
}

// deletionLimit is the stricter one of the head's and that of the fleet swept
// last, if that can be read: the change that takes devices away must not lift
// its own limit, whether by a line of it or with the file that was lost too.
func (p *pass) deletionLimit(ctx context.Context, head *schema.Fleet, swept string, total int) int {
	limit := DeletionLimit(head, total)
	if before, err := p.load(ctx, swept, p.d.valid); err == nil {
		limit = min(limit, DeletionLimit(before.fleet, total))
	}
	return limit
}

// acceptedDeletions is the largest count that a commit since the swept one
// accepts. Where nobody knows any more which those are, only the newest speaks.
func (p *pass) acceptedDeletions(ctx context.Context, swept string) (int, error) {
	most := 0
	if p.gone {
		swept = ""
	}
	err := p.d.cfg.Remote.Log(ctx, p.head, swept, func(_, _ string, _ time.Time, message string) bool {
		for line := range strings.SplitSeq(message, "\n") {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), deletionTrailer); ok {
				if n, err := strconv.Atoi(strings.TrimSpace(rest)); err == nil {
					most = max(most, n)
				}
			}
		}
		return !p.gone
	})
	if err != nil {
		return 0, fmt.Errorf("read the commit messages since %s: %w", short(swept), err)
	}
	return most, nil
}
