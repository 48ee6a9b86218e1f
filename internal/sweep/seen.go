package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

const (
	seenFile = "seen.json" // one entry a device
	logFile  = "seen.log"  // what changed since, a line for each pass that heard something

	// minLogged is how many entries the log may have before all of them are
	// written anew, or as many as there are devices: so one costs a few writes
	// on the average, whatever the size of the fleet.
	minLogged = 1000

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
	seen   map[string]*seenState
	noted  map[string]bool // what is to be written
	logged int             // entries in the log
	stale  bool            // what is on the disk is not to be added to
}

// note says that the entry of a device changed, or went.
func (s *seenLog) note(id string) { s.noted[id] = true }

// replay reads the log. What was cut off while it was written is left out.
func (s *seenLog) replay(dir string) error {
	if s.seen == nil {
		s.seen = map[string]*seenState{}
	}
	data, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(data) {
		var entries map[string]*seenState
		if err := json.Unmarshal(line, &entries); err != nil {
			s.stale = true
			break
		}
		for id, v := range entries {
			s.seen[id] = v
		}
		s.logged += len(entries)
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

// save adds what was noted to the log, or writes all anew once that is long.
func (s *seenLog) save(dir string) error {
	if len(s.noted) == 0 {
		return nil
	}
	if s.stale || s.logged+len(s.noted) >= max(minLogged, len(s.seen)) {
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
	s.stale = true // until the whole line is there
	f, err := os.OpenFile(filepath.Join(dir, logFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.stale, s.logged = false, s.logged+len(entries)
	clear(s.noted)
	return nil
}

// saveAll writes every entry. A log that is still there afterwards does not
// harm: its last word about a device is what was written.
func (s *seenLog) saveAll(dir string) error {
	for id := range s.seen {
		s.entry(id)
	}
	data, err := json.Marshal(s.seen)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, seenFile), data, 0o600); err != nil {
		return err
	}
	s.stale = true // until the log is gone
	if err := os.Remove(filepath.Join(dir, logFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.stale, s.logged = false, 0
	clear(s.noted)
	return nil
}
