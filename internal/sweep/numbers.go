package sweep

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gitopsd/gitopsd/schema"
)

// Generations and attempts only rise, by one. A number that no daemon can have
// come to was written by hand, and going on from it would soon give one that
// cannot be written any more.
const (
	// saneNumber is out of range for a generation or an attempt: a device that
	// counts one a second gets there in thirty thousand years.
	saneNumber = 1 << 40

	// likelyNumber is out of range where numbers are put together anew, so
	// that one just below the limit can be got rid of.
	likelyNumber = saneNumber / 2
)

func beyond(limit int64, numbers ...int64) bool {
	return slices.ContainsFunc(numbers, func(n int64) bool { return n < 0 || n >= limit })
}

// badNumber says that a document has a number that is out of range, or "".
func badNumber(limit int64, doc any) string {
	bad := false
	switch doc := doc.(type) {
	case *schema.DeviceStatus:
		if ref := doc.Assignment; ref != nil {
			bad = beyond(limit, ref.Generation, ref.Attempt, ref.Recalled)
		}
		for i := range doc.Attempts {
			a := &doc.Attempts[i]
			bad = bad || beyond(limit, a.Attempt) || a.Recall != nil && beyond(limit, a.Recall.Generation)
		}
	case *schema.Assignment:
		bad = beyond(limit, doc.Generation, doc.Attempt, doc.Recalled)
	}
	if bad {
		return fmt.Sprintf("it has a generation or an attempt that is not from 0 to %d", limit-1)
	}
	return ""
}

// usedUp says which document nobody can go on from, though it can be read: its
// numbers are so near the limit that the next ones are beyond it.
func (s *Status) usedUp() error {
	for _, records := range []map[string]*Record{s.Devices, s.Retired} {
		for _, id := range slices.Sorted(maps.Keys(records)) {
			rec := records[id]
			if why := badNumber(likelyNumber, rec.Status); why != "" {
				return &unreadable{path: rec.Path, why: why}
			}
			if rec.Assignment == nil {
				continue
			}
			if why := badNumber(likelyNumber, rec.Assignment); why != "" {
				return &unreadable{path: assignedPath(rec.Path), why: why}
			}
		}
	}
	return nil
}
