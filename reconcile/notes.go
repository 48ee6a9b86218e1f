package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// noteTries is how often a note is written: the agent sweeps what looks like
// the leftover of a crash out of its state, perhaps just then.
const noteTries = 5

// Notes writes what people at the device tell its agent, whether that runs or
// not, and whatever it is doing.
type Notes struct {
	root *disk.Root
	clock
}

// OpenNotes opens those below a root; "" is "/".
func OpenNotes(dir string) (*Notes, error) {
	c := Config{Root: dir}
	c.setDefaults()
	root, err := disk.Open(c.Root, disk.Options{})
	if err != nil {
		return nil, err
	}
	return &Notes{root: root, clock: clock{now: c.Now, up: c.Uptime, boot: kernelBoot()}}, nil
}

// Notes opens those of the agent's own root.
func (a *Agent) Notes() (*Notes, error) {
	n, err := OpenNotes(a.cfg.Root)
	if err != nil {
		return nil, err
	}
	n.clock = a.clock
	return n, nil
}

// Close releases the root.
func (n *Notes) Close() error { return n.root.Close() }

// Hold keeps the device as it is until [Notes.Unhold]: no update begins and
// nothing is repaired.
func (n *Notes) Hold(reason string) error {
	return n.write(holdFile, []byte(strings.TrimSpace(reason)+"\n"), writeState)
}

// Held is the reason of the hold, nil where there is none.
func (n *Notes) Held() (reason *string, err error) {
	if _, err := n.root.Lstat(holdFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	b, err := n.root.ReadFile(holdFile, noteLimit)
	if err != nil {
		return nil, fmt.Errorf("read the hold: %w", err)
	}
	text := oneLine(string(b))
	return &text, nil
}

// Unhold ends the hold of the device itself; was says that there was one.
func (n *Notes) Unhold() (was bool, err error) { return n.remove(holdFile) }

// Snooze has no update begin for a time; one that goes on is replaced.
func (n *Notes) Snooze(d time.Duration, reason string) (*Snooze, error) {
	if d <= 0 || d > MaxSnooze {
		return nil, fmt.Errorf("a snooze of %s is not between nothing and %s", d, MaxSnooze)
	}
	if !n.clockSet() {
		return nil, fmt.Errorf("%w (it says %s), so a snooze could not end in time", errNoClock, n.now().UTC().Format(time.RFC3339))
	}
	s := &Snooze{Reason: oneLine(reason), At: n.now().UTC().Truncate(time.Second), From: n.instant(), For: d}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the snooze: %w", err)
	}
	return s, n.write(snoozeFile, append(b, '\n'), writeState)
}

// Wake ends a snooze; was says that there was one.
func (n *Notes) Wake() (was bool, err error) { return n.remove(snoozeFile) }

// configFile holds the texts of the agent's configuration that worked last.
const configFile = stateDir + "/config.json"

// configLimit bounds them in bytes.
const configLimit = 8 << 20

// keptConfig is configFile.
type keptConfig struct {
	Files map[string]string `json:"files"` // text by path, as the agent was told it
}

// Config gives what [Notes.KeepConfig] kept.
func (n *Notes) Config() (map[string]string, error) {
	b, err := n.root.ReadFile(configFile, configLimit)
	if err != nil {
		return nil, fmt.Errorf("read the configuration that worked last: %w", err)
	}
	var k keptConfig
	if err := json.Unmarshal(b, &k); err != nil {
		return nil, fmt.Errorf("read the configuration that worked last: %w", err)
	}
	return k.Files, nil
}

// KeepConfig keeps the texts of a configuration that works; what is kept
// already is not written again.
func (n *Notes) KeepConfig(files map[string]string) error {
	if had, err := n.Config(); err == nil && maps.Equal(had, files) {
		return nil
	}
	b, err := json.Marshal(keptConfig{Files: files})
	if err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	if len(b) > configLimit {
		return fmt.Errorf("the configuration has %d bytes, more than the %d that are kept", len(b), configLimit)
	}
	return n.write(configFile, append(b, '\n'), func(root *disk.Root, p string, data []byte) error { return root.WriteFile(p, data, secret) })
}

// write puts a note in its place. What stops a device is worth the room that is
// set aside on a full disk.
func (n *Notes) write(p string, data []byte, put func(root *disk.Root, p string, data []byte) error) error {
	var err error
	for range noteTries {
		if _, err = n.root.MkdirAll(stateDir, privDir); err != nil {
			break
		}
		if err = put(n.root, p, data); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}

func (n *Notes) remove(p string) (was bool, err error) {
	err = n.root.Remove(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove %s: %w", p, err)
	}
	return true, nil
}
