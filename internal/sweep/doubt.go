package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// Doubt is what speaks against what a status branch says: a daemon that sees
// it writes nothing there, so that the branch itself cannot say so.
type Doubt struct {
	Reason  string // the reason of the daemon's stop
	Message string
	Remedy  string
}

// maxDoubted bounds the deliveries that are read to compare generations, and
// their sizes in bytes: one that is newer is enough.
const (
	maxDoubted       = 20
	maxDoubtedTree   = 64 << 20
	askDaemonForRest = "the daemon's log says with which command it goes on"
)

// FindDoubt compares a status branch that was read with what stands at the
// delivery refs with this prefix, which a daemon moves after it. Without the
// daemon's memory this is all that can be found out: nil does not say that the
// branch never went back. deviceRefs may be one whole ref.
func FindDoubt(ctx context.Context, r Remote, s *Status, statusBranch, deviceRefs string) (*Doubt, error) {
	setDefault(&statusBranch, schema.DefaultStatusBranch)
	ref := branchRef(statusBranch)
	refs, err := r.Refs(ctx, deviceRefs, ref)
	if err != nil {
		return nil, fmt.Errorf("list the deliveries: %w", err)
	}
	if refs[ref] != s.Commit {
		return nil, nil // it has moved on since it was read
	}
	maps.DeleteFunc(refs, func(name, _ string) bool { return name == ref || !strings.HasPrefix(name, deviceRefs) })
	if s.Commit == "" {
		if len(refs) == 0 {
			return nil, nil
		}
		return &Doubt{Reason: "StatusMissing", Remedy: "push the branch again if somebody has it; else " + askDaemonForRest,
			Message: fmt.Sprintf("there is no status branch %s, although something was assigned to %s", statusBranch, count(len(refs), "device"))}, nil
	}
	doubted := map[string]string{}
	for _, at := range slices.Sorted(maps.Keys(refs)) {
		if len(doubted) == maxDoubted {
			break
		}
		if want, err := s.wouldDeliver(ctx, r, idOfRef(at)); err != nil {
			return nil, err
		} else if refs[at] != want {
			doubted[at] = refs[at]
		}
	}
	if len(doubted) == 0 {
		return nil, nil
	}
	tips, err := r.Tips(ctx, doubted, maxDoubtedTree)
	if err != nil {
		return nil, fmt.Errorf("read %d deliveries: %w", len(doubted), err)
	}
	for _, at := range slices.Sorted(maps.Keys(tips)) {
		id, a := idOfRef(at), &schema.Assignment{}
		if err := decodeStatus(at, tips[at][assignmentFile], a); err != nil || a.Metadata.Name != id {
			continue
		}
		if here := s.generation(id); a.Generation > here {
			return &Doubt{Reason: "StatusRewound", Message: wentBack(id, a.Generation, here),
				Remedy: "push the newer status branch again if somebody has it; else " + askDaemonForRest}, nil
		}
	}
	return nil, nil
}

func idOfRef(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// wouldDeliver is the commit that a device's delivery ref should be at; "" is
// none.
func (s *Status) wouldDeliver(ctx context.Context, r Remote, id string) (string, error) {
	rec := s.Devices[id]
	if rec == nil || rec.Assignment == nil {
		return "", nil
	}
	files, err := deliveryFiles(rec.payloads, assignedPath(rec.Path), s.blob)
	if err != nil {
		return "", err
	}
	commit, err := r.Orphan(ctx, files)
	if err != nil {
		return "", fmt.Errorf("compare the delivery of %s: %w", id, err)
	}
	return commit, nil
}

func wentBack(id string, there, here int64) string {
	return fmt.Sprintf("the status branch went back: %s was given generation %d, the branch says %d", id, there, here)
}

// ReadRemedy is what a person can do about an error of [ReadStatus]; "" where
// the error itself has to say it.
func ReadRemedy(err error) string {
	var newer *newerFormat
	if errors.As(err, &newer) {
		return "run the version of gitopsd that wrote it, or a newer one"
	}
	var bad *unreadable
	if errors.As(err, &bad) {
		return "take the last change of the status branch back; until then no daemon writes to it"
	}
	return ""
}
