package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

// Folders of the status branch that documents of devices are in.
const (
	devicesLead  = "devices/"
	assignedLead = "assigned/"
	retiredLead  = "retired/"
)

// statusDocumentLimit bounds a document of the status branch, in bytes; an
// assignment holds a whole spec.
const statusDocumentLimit = 32 << 20

// historyBounds say how far back the history of a device is read.
type historyBounds struct {
	since, until *time.Time
	events       int // enough of them; 0 = all
	commits      int // that are looked at, at most; 0 = all
}

// clockSlop is how many commits in a row have to be older than what is asked
// for: the clocks of two daemons differ.
const clockSlop = 5

// deviceHistory is what was read of a device's history.
type deviceHistory struct {
	changes []view.Change // newest first
	commits int           // that were looked at
	enough  bool          // there were as many events as were asked for
	why     string        // it was not read as far as was asked otherwise; "" = it was
}

// historyReader goes back through the versions of one device's documents on
// the status branch, and follows the device by its id when its path changes.
// It ends where the device comes into the fleet with nothing known of it: who
// left with an attempt to its name has a record in retired/.
type historyReader struct {
	reader *reader
	id     string
	bounds historyBounds
	say    func(commits int, back time.Time) // progress; nil = silent

	log    *repo.FileLog
	older  int // commits in a row that are before bounds.since
	events int
	result deviceHistory

	// What was decoded last, by blob: what one commit leaves is what the next
	// one finds.
	statuses map[string]*schema.DeviceStatus
	docs     map[string]*schema.Assignment
}

// deviceHistory fetches and reads the history of a device whose status is at
// this path of this commit of the status branch.
func (r *reader) deviceHistory(ctx context.Context, tip, file string, bounds historyBounds, say func(int, time.Time)) (*deviceHistory, error) {
	h := &historyReader{
		reader: r, id: deviceOfPath(file), bounds: bounds, say: say,
		statuses: map[string]*schema.DeviceStatus{}, docs: map[string]*schema.Assignment{},
	}
	if err := r.fleet.Fetch(ctx, "refs/heads/"+r.statusBranch(), tip, true); err != nil {
		return &h.result, err
	}
	var err error
	if h.log, err = r.fleet.FileLog(tip); err != nil {
		return &h.result, err
	}
	err = h.read(ctx, file)
	h.result.commits = h.log.Looks()
	return &h.result, err
}

func deviceOfPath(file string) string { return strings.TrimSuffix(path.Base(file), ".yaml") }

func (h *historyReader) read(ctx context.Context, file string) error {
	for {
		found, err := h.log.Next(ctx, file, h.further)
		if err != nil {
			return err
		}
		if found == nil {
			if h.log.Cut() {
				h.result.why = "this clone is shallow, and ends there"
			}
			return nil
		}
		was := file
		if found.Old == "" && found.Parent != "" {
			if was, found.Old, err = h.before(ctx, found); err != nil {
				return err
			}
		}
		change := view.Change{Commit: found.Commit, Time: found.Time}
		if change.After, err = h.standing(ctx, found.Commit, file, found.New); err == nil {
			change.Before, err = h.standing(ctx, found.Parent, was, found.Old)
		}
		var strange *strangeVersion
		if errors.As(err, &strange) {
			h.result.why = fmt.Sprintf("what stands there at %s cannot be read: %s", view.Short(found.Commit), strange.why)
			return nil
		}
		if err != nil {
			return err
		}
		h.result.changes = append(h.result.changes, change)
		if found.Old == "" && found.New != "" {
			return nil // here it began
		}
		h.events += len(view.Between(view.Events(h.result.changes[len(h.result.changes)-1:]), h.bounds.since, h.bounds.until))
		if h.bounds.events > 0 && h.events >= h.bounds.events {
			h.result.enough = true
			return nil
		}
		if !h.further(found.Commit, found.Time) {
			return nil
		}
		file = was
	}
}

// further says whether to go on to the commit before.
func (h *historyReader) further(_ string, when time.Time) bool {
	const every = 20_000 // commits: some seconds
	looks := h.log.Looks()
	if h.say != nil && looks%every == 0 {
		h.say(looks, when)
	}
	if h.bounds.since != nil && when.Before(*h.bounds.since) {
		h.older++
	} else {
		h.older = 0
	}
	switch {
	case h.older >= clockSlop:
		return false
	case h.bounds.commits > 0 && looks >= h.bounds.commits:
		h.result.why = fmt.Sprintf("%s looked at, back to %s", were(looks, "commit"), view.Stamp(when))
		return false
	}
	return true
}

// before finds where a device was in the commit before the one in which its
// document came to a path; "" = nowhere.
func (h *historyReader) before(ctx context.Context, found *repo.FileChange) (file, blob string, err error) {
	err = h.reader.fleet.Diff(ctx, found.Parent, found.Commit, func(p, oldBlob, newBlob string, _ uint32) error {
		ofDevice := strings.HasPrefix(p, devicesLead) || strings.HasPrefix(p, retiredLead)
		// A record in devices/ knows more than the one in retired/.
		if oldBlob != "" && newBlob == "" && ofDevice && deviceOfPath(p) == h.id && path.Ext(p) == ".yaml" && (file == "" || strings.HasPrefix(p, devicesLead)) {
			file, blob = p, oldBlob
		}
		return nil
	})
	return file, blob, err
}

// standing reads what a commit says of the device.
func (h *historyReader) standing(ctx context.Context, commit, file, blob string) (view.Standing, error) {
	s := view.Standing{Path: file}
	if blob == "" {
		return s, nil
	}
	var err error
	if s.Status, err = readOnce(ctx, h.reader.fleet, h.statuses, file, blob); err != nil {
		return s, err
	}
	rest, inFleet := strings.CutPrefix(file, devicesLead)
	if !inFleet {
		return s, nil
	}
	doc := assignedLead + rest
	if blob, err = h.reader.fleet.FileAt(ctx, commit, doc); err != nil || blob == "" {
		return s, err
	}
	s.Assignment, err = readOnce(ctx, h.reader.fleet, h.docs, doc, blob)
	return s, err
}

// strangeVersion is an earlier version of a document that this program does
// not understand.
type strangeVersion struct{ why string }

func (e *strangeVersion) Error() string { return e.why }

// readOnce reads a document of the status branch that was not among the last.
func readOnce[T any](ctx context.Context, r *repo.Repo, known map[string]*T, file, blob string) (*T, error) {
	if doc := known[blob]; doc != nil {
		return doc, nil
	}
	data, err := r.Blob(ctx, blob, statusDocumentLimit)
	if err != nil {
		return nil, err
	}
	doc := new(T)
	for _, p := range schema.DecodeStatus(file, data, doc) {
		if p.Severity == schema.SeverityError {
			return nil, &strangeVersion{problemText(p)}
		}
	}
	const kept = 4 // what a commit leaves is what the next one finds
	if len(known) >= kept {
		clear(known)
	}
	known[blob] = doc
	return doc, nil
}

// findRecord is where the status branch has a device: in the fleet, or among
// those that left it; "" = nowhere. ids are all that it has.
func (r *reader) findRecord(ctx context.Context, tip, id string) (file string, ids []string, err error) {
	err = r.fleet.Walk(ctx, tip, func(p, _ string, _ uint32) error {
		inFleet, gone := strings.HasPrefix(p, devicesLead), strings.HasPrefix(p, retiredLead)
		if !inFleet && !gone || path.Ext(p) != ".yaml" {
			return nil
		}
		found := deviceOfPath(p)
		ids = append(ids, found)
		if found == id && (file == "" || inFleet) {
			file = p
		}
		return nil
	})
	return file, ids, err
}
