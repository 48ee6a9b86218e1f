package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

const (
	// seenFile begins with a line that has one entry a device; what changed
	// since is a line for each pass that heard something.
	seenFile = "seen.json"

	// minAdded is how many entries may be added before all of them are written
	// anew, or as many as there are devices: so one costs a few writes on the
	// average, whatever the size of the fleet.
	minAdded = 1000

	// keptInstalls is how many earlier installations of a device are known
	// again when they come back; a device that is set up anew more often has
	// had all of them long ago.
	keptInstalls = 4

	// keptBoots is the same for the times that a machine was started.
	keptBoots = 4
)

// seenState is what is known of one device's reports.
type seenState struct {
	Install   string    `json:"install"`
	Sequence  int64     `json:"sequence"`
	At        time.Time `json:"at"` // when this sequence was first seen, by our clock
	Installs  []string  `json:"installs,omitempty"`
	Duplicate time.Time `json:"duplicate,omitzero"` // when two machines were last seen under this name

	Boot  string     `json:"boot,omitempty"`  // of the newest report
	Boots []seenBoot `json:"boots,omitempty"` // earlier ones of this installation
}

// seenBoot is one run of a machine, and the last that was heard of it.
type seenBoot struct {
	ID       string `json:"id"`
	Sequence int64  `json:"sequence"`
}

// seenLog is what was seen of all devices, and how it gets to the disk.
type seenLog struct {
	seen  map[string]*seenState
	noted map[string]bool // what is to be written
	added int             // entries behind the first line
	whole bool            // the file can be added to: its last line ends
}

// note says that the entry of a device changed, or went.
func (s *seenLog) note(id string) { s.noted[id] = true }

// load reads the file. What was cut off while it was written is left out; a
// file that does not even begin is for the caller to set aside.
func (s *seenLog) load(data []byte) error {
	if len(data) == 0 {
		return errors.New("it is empty")
	}
	s.whole = bytes.HasSuffix(data, []byte("\n"))
	n := 0
	for line := range bytes.Lines(data) {
		var entries map[string]*seenState
		if err := json.Unmarshal(line, &entries); err != nil {
			if n == 0 {
				return err
			}
			s.whole = false
			break
		}
		maps.Copy(s.seen, entries)
		if n++; n > 1 {
			s.added += len(entries)
		}
	}
	for id := range s.seen {
		s.entry(id)
	}
	return nil
}

// entry is what is to stand of a device; nil = nothing. What no daemon notes
// is forgotten: one entry that cannot be written would keep all others from
// being.
func (s *seenLog) entry(id string) *seenState {
	v := s.seen[id]
	if v == nil || !isWritable(v.At) || !v.Duplicate.IsZero() && !isWritable(v.Duplicate) {
		delete(s.seen, id)
		return nil
	}
	return v
}

// save adds what was noted, or writes all anew once that has become much.
func (s *seenLog) save(dir string) error {
	if len(s.noted) == 0 {
		return nil
	}
	if !s.whole || s.added+len(s.noted) >= max(minAdded, len(s.seen)) {
		return s.saveAll(dir)
	}
	entries := make(map[string]*seenState, len(s.noted))
	for id := range s.noted {
		entries[id] = s.entry(id)
	}
	line, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	s.whole = false // until the whole line is there
	f, err := os.OpenFile(filepath.Join(dir, seenFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err // the next time all is written
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.whole, s.added = true, s.added+len(entries)
	clear(s.noted)
	return nil
}

func (s *seenLog) saveAll(dir string) error {
	for id := range s.seen {
		s.entry(id)
	}
	data, err := json.Marshal(s.seen)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, seenFile), append(data, '\n'), 0o600); err != nil {
		return err
	}
	s.whole, s.added = true, 0
	clear(s.noted)
	return nil
}
