package sweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// fetch lists the refs that matter in one request, and makes the source
// branch (with its history) and the tip of the status branch readable.
func (p *pass) fetch(ctx context.Context) error {
	d := p.d
	reading := d.readClock()
	p.now = reading.wall
	p.full = d.repairedAt.IsZero() || p.now.Sub(d.repairedAt).Abs() >= repairEvery

	if err := p.findBranch(ctx, p.full || d.branch == ""); err != nil {
		return err
	}
	if err := p.list(ctx); err != nil {
		return err
	}
	if p.head == "" && d.cfg.Branch == "" {
		// The default branch may have been renamed since we asked.
		before := d.branch
		if err := p.findBranch(ctx, true); err != nil {
			return err
		}
		if d.branch != before {
			if err := p.list(ctx); err != nil {
				return err
			}
		}
	}
	p.result.Head = p.head
	if p.head != "" {
		if err := d.cfg.Remote.Fetch(ctx, branchRef(p.branch), p.head, true); err != nil {
			err = fmt.Errorf("fetch the source branch %s: %w", p.branch, err)
			if kindOf(err) != kindCorrupt {
				return err
			}
			p.broken = err
		}
	}
	if err := p.readBrake(ctx); err != nil {
		return err
	}
	if err := p.readTip(ctx); err != nil {
		return err
	}
	p.judgeClock(reading)
	return nil
}

// findBranch settles which branch is the source.
func (p *pass) findBranch(ctx context.Context, ask bool) error {
	d := p.d
	if d.cfg.Branch == "" && ask {
		head, err := d.cfg.Remote.Head(ctx)
		if err != nil {
			return fmt.Errorf("ask for the default branch: %w", err)
		}
		if head != d.branch && d.branch != "" {
			d.log.InfoContext(ctx, "the default branch changed", keyOld, d.branch, keyBranch, head)
		}
		if err := d.cfg.checkPlaces(head); err != nil {
			return fmt.Errorf("follow the default branch %s: %w (--branch names another one)", oneLine(head), err)
		}
		d.branch = head
	}
	p.branch = d.branch
	return nil
}

// list asks for the refs. Deliveries are listed with the branches when all
// are compared, reports always, where they are in the same repository.
func (p *pass) list(ctx context.Context) error {
	d := p.d
	want := []string{branchRef(d.cfg.StatusBranch), branchRef(schema.BrakeBranch)}
	if p.branch != "" {
		want = append(want, branchRef(p.branch))
	}
	if p.full {
		want = append(want, d.cfg.DeviceRefs)
	}
	if d.sameRepository() {
		want = append(want, d.cfg.ReportRefs)
	}
	refs, err := d.cfg.Remote.Refs(ctx, want...)
	if err != nil {
		return fmt.Errorf("list the refs: %w", err)
	}
	p.refs = refs
	p.tip = refs[branchRef(d.cfg.StatusBranch)]
	p.head = ""
	if p.branch != "" {
		p.head = refs[branchRef(p.branch)]
		d.announced.saw(p.branch, p.head)
	}
	d.announced.saw(schema.BrakeBranch, refs[branchRef(schema.BrakeBranch)])
	return nil
}

func (d *Daemon) sameRepository() bool { return d.cfg.Reports == d.cfg.Remote }

// readTip reads the status branch, as far as it is not known yet.
func (p *pass) readTip(ctx context.Context) error {
	d := p.d
	switch {
	case p.tip == "":
		p.status = newStatus()
		if !p.full {
			// Whether it was ever there, the deliveries tell.
			p.full = true
			if err := p.list(ctx); err != nil {
				return err
			}
			if p.tip != "" {
				return &raceError{what: "the status branch appeared while it was looked for"}
			}
		}
		return nil
	case d.status != nil && d.status.Commit == p.tip:
		p.status = d.status
		return nil
	}
	if err := d.cfg.Remote.Fetch(ctx, branchRef(d.cfg.StatusBranch), p.tip, false); err != nil {
		err = fmt.Errorf("fetch the status branch %s: %w", d.cfg.StatusBranch, err)
		if s, ok := p.asStop(noStatus(err)); ok {
			return p.noStatus(ctx, s)
		}
		return err
	}
	st, err := readStatus(ctx, d.cfg.Remote, p.tip, d.status)
	if err == nil && d.accept.StatusLoss != "" {
		err = st.usedUp()
	}
	if err != nil {
		if s, ok := p.asStop(err); ok {
			return p.noStatus(ctx, s)
		}
		return err
	}
	if err := p.noteHandMade(ctx, st); err != nil {
		return err
	}
	p.status = st
	return p.noteForeignCommit(ctx)
}

// noteHandMade says once that a person has written to the status branch. What
// stands there is the truth for all daemons, so what was decided is believed;
// what follows from it is written anew, and nobody would hear of that.
func (p *pass) noteHandMade(ctx context.Context, st *Status) error {
	if st.swept() == "" {
		return nil // the commits of a daemon that has no source name none
	}
	by, made := "", true
	err := p.d.cfg.Remote.Log(ctx, st.Commit, "", func(_, author string, _ time.Time, message string) bool {
		by, made = author, strings.Contains(message, "\n"+sourceTrailer+": ")
		return false
	})
	if err != nil {
		return fmt.Errorf("read the status commit %s: %w", short(st.Commit), err)
	}
	if !made && p.d.news("hand-made status", st.Commit) {
		p.d.log.WarnContext(ctx, "no daemon made the commit at the tip of the status branch: its attempts and assignments are believed, the rest is written anew",
			keyCommit, short(st.Commit), "by", oneLine(by), keyRemedy, "change the source branch instead: hold, pause, retry and set-version write there")
	}
	return nil
}

// noStatus goes on without what stands on the status branch, as far as that
// may be.
func (p *pass) noStatus(ctx context.Context, s stop) error {
	p.status = newStatus()
	p.status.Commit = p.tip
	return p.statusLoss(ctx, s)
}

// noteForeignCommit compares a status branch that somebody else moved with
// what this daemon knew: generations never fall, unless the branch was
// rewound; deliveries of changed assignments were written by the other.
func (p *pass) noteForeignCommit(ctx context.Context) error {
	d := p.d
	if d.status == nil {
		d.status = p.status
		return nil
	}
	for id, old := range d.status.Devices {
		if old.Assignment == nil {
			continue
		}
		if now := p.status.generation(id); now < old.Assignment.Generation {
			if err := p.checkTip(ctx); err != nil { // a replica that lags says the same
				return err
			}
			return p.statusLoss(ctx, p.rewound(id, old.Assignment.Generation, now))
		}
		if rec := p.status.Devices[id]; rec == nil || rec.Assignment != old.Assignment {
			d.unsure[id] = true
		}
	}
	for id := range p.status.Devices {
		if d.status.Devices[id] == nil {
			d.unsure[id] = true
		}
	}
	d.log.DebugContext(ctx, "the status branch was moved by somebody else", keyOld, short(d.status.Commit), keyCommit, short(p.tip))
	d.status = p.status
	return nil
}

// generation is that of a device's last document, a removed device's too.
func (s *Status) generation(id string) int64 {
	if rec := s.Devices[id]; rec != nil && rec.Assignment != nil {
		return rec.Assignment.Generation
	}
	for _, rec := range []*Record{s.Devices[id], s.Retired[id]} {
		if rec != nil && rec.Status.Assignment != nil {
			return rec.Status.Assignment.Generation
		}
	}
	return 0
}

// branchNames lists the branches of the remote, for a message.
func (p *pass) branchNames(ctx context.Context) (string, error) {
	refs, err := p.d.cfg.Remote.Refs(ctx, "refs/heads/")
	if err != nil {
		return "", fmt.Errorf("list the branches: %w", err)
	}
	var names []string
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		name := strings.TrimPrefix(ref, "refs/heads/")
		if name != p.d.cfg.StatusBranch && !strings.HasPrefix(ref, p.d.cfg.DeviceRefs) && !strings.HasPrefix(ref, p.d.cfg.ReportRefs) {
			names = append(names, oneLine(name))
		}
	}
	const shown = 10 // enough to recognise a rename
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown), nil
	}
	return strings.Join(names, ", "), nil
}
