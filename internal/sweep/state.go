package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

const (
	watchFile = "watch.json" // small, written in every pass
	seenFile  = "seen.json"  // one entry a device, written when one was heard from

	// keptInstalls is how many earlier installations of a device are known
	// again when they come back; a device that is set up anew more often has
	// had all of them long ago.
	keptInstalls = 4

	// keptBoots is the same for the times that a machine was started.
	keptBoots = 4
)

// state is what a daemon keeps on its own disk: what it saw and when. None of
// it is needed to be right, all of it only to be patient; a lost folder makes
// the daemon count silence anew.
type state struct {
	dir   string
	watch watchState
	seen  map[string]*seenState

	written map[string][]byte
}

type watchState struct {
	// Since is the start of the unbroken series of passes; Last is the newest.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// Gap is the silence between two passes that breaks the series.
	Gap time.Duration `json:"gap"`
	// Swept is the source commit of the last complete pass: what a person has
	// to name should the status branch be lost.
	Swept string     `json:"swept,omitempty"`
	Clock clockState `json:"clock"`
	// Pickup holds, by device, from when the pickup clock of an attempt runs,
	// where this daemon had to write the delivery again.
	Pickup map[string]Pickup `json:"pickup,omitempty"`
}

// Pickup is when the pickup clock of one attempt was restarted.
type Pickup struct {
	Attempt int64     `json:"attempt"`
	From    time.Time `json:"from"`
}

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

func openState(dir string, now time.Time, log *slog.Logger) (*state, error) {
	s := &state{dir: dir, seen: map[string]*seenState{}, written: map[string][]byte{}}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := s.load(watchFile, &s.watch, now, log); err != nil {
		return nil, err
	}
	if err := s.load(seenFile, &s.seen, now, log); err != nil {
		return nil, err
	}
	if s.seen == nil {
		s.seen = map[string]*seenState{}
	}
	s.dropNonsense()
	return s, nil
}

// dropNonsense forgets what no daemon notes: one entry that cannot be written
// would keep all others from being.
func (s *state) dropNonsense() {
	for id, v := range s.seen {
		if v == nil || !isWritable(v.At) || !v.Duplicate.IsZero() && !isWritable(v.Duplicate) {
			delete(s.seen, id)
		}
	}
}

// load reads one file; what is there but cannot be understood is set aside,
// because a daemon that does not start guards nothing.
func (s *state) load(name string, v any, now time.Time, log *slog.Logger) error {
	file := filepath.Join(s.dir, name)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		aside := file + "." + now.UTC().Format("20060102T150405Z")
		log.Warn("a state file cannot be read; it is set aside, and silence is counted anew", keyFile, aside, keyError, err.Error())
		if err := os.Rename(file, aside); err != nil {
			return fmt.Errorf("set the unreadable %s aside: %w", name, err)
		}
		switch v := v.(type) {
		case *watchState:
			*v = watchState{}
		case *map[string]*seenState:
			*v = map[string]*seenState{}
		}
		return nil
	}
	s.written[name] = data
	return nil
}

// save writes what changed, each file whole.
func (s *state) save() error {
	if s.dir == "" {
		return nil
	}
	s.dropNonsense()
	return errors.Join(s.put(watchFile, s.watch), s.put(seenFile, s.seen))
}

func (s *state) put(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if bytes.Equal(data, s.written[name]) {
		return nil
	}
	if err := renameio.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
		return err
	}
	s.written[name] = data
	return nil
}

// watching notes a pass at now and gives the start of the unbroken series.
func (s *state) watching(now time.Time) time.Time {
	w := &s.watch
	gap := w.Gap
	if gap <= 0 {
		gap = minOfflineAfter
	}
	if w.Since.IsZero() || now.Sub(w.Last) > gap || now.Before(w.Last.Add(-gap)) {
		w.Since = now
	}
	w.Last = now
	return w.Since
}

// restartPickup lets the pickup clock of an attempt that has not started run
// from now: its device could not see it before.
func (d *Daemon) restartPickup(rec *Record, now time.Time) {
	a := lastAttempt(rec.Status)
	if a == nil || a.Outcome != "" || a.StartedAt != nil {
		return
	}
	if d.state.watch.Pickup == nil {
		d.state.watch.Pickup = map[string]Pickup{}
	}
	d.state.watch.Pickup[rec.ID] = Pickup{Attempt: a.Attempt, From: now}
}
