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

const watchFile = "watch.json" // small, written in every pass

// state is what a daemon keeps on its own disk: what it saw and when. None of
// it is needed to be right, all of it only to be patient; a lost folder makes
// the daemon count silence anew.
type state struct {
	dir   string
	watch watchState
	seenLog

	written []byte // watch.json, as it stands there
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

func openState(dir string, now time.Time, log *slog.Logger) (*state, error) {
	s := &state{dir: dir, seenLog: seenLog{seen: map[string]*seenState{}, noted: map[string]bool{}}}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	s.written, err = s.load(watchFile, now, log, func(data []byte) error { return json.Unmarshal(data, &s.watch) })
	if err != nil {
		return nil, err
	}
	if s.written == nil {
		s.watch = watchState{}
	}
	if _, err = s.load(seenFile, now, log, s.seenLog.load); err != nil {
		return nil, err
	}
	return s, nil
}

// load reads one file; what is there but cannot be understood is set aside,
// because a daemon that does not start guards nothing.
func (s *state) load(name string, now time.Time, log *slog.Logger, understand func([]byte) error) ([]byte, error) {
	file := filepath.Join(s.dir, name)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := understand(data); err != nil {
		aside := file + "." + now.UTC().Format("20060102T150405Z")
		log.Warn("a state file cannot be read; it is set aside, and silence is counted anew", keyFile, aside, keyError, err.Error())
		if err := os.Rename(file, aside); err != nil {
			return nil, fmt.Errorf("set the unreadable %s aside: %w", name, err)
		}
		return nil, nil
	}
	return data, nil
}

// save writes what changed.
func (s *state) save() error {
	if s.dir == "" {
		return nil
	}
	return errors.Join(s.saveWatch(), s.seenLog.save(s.dir))
}

func (s *state) saveWatch() error {
	data, err := json.Marshal(s.watch)
	if err != nil || bytes.Equal(data, s.written) {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(s.dir, watchFile), data, 0o600); err != nil {
		return err
	}
	s.written = data
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
