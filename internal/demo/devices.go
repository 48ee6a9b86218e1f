package demo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

// The devices that are there to be left alone, and why the story has them.
const (
	busyDevice   = "gw-berlin-02"  // busy from v1.1.0 until v1.2.1 is merged
	pinnedDevice = "gw-berlin-05"  // pinned to v1.0.0
	heldDevice   = "gw-oslo-03"    // held in git
	boxedDevice  = "gw-oslo-05"    // its agent is never started
	benchDevice  = "bench-oslo-01" // another policy, no release
)

const (
	busyFile    = "run/gitopsd/busy"
	controlFile = "etc/edge/control"         // what repoFrom names
	updatesFile = "var/log/edge/updates.log" // written by the example's check
)

// How often an agent asks and reports: far more often than a real one, for
// which a minute and ten are the defaults.
const (
	agentInterval  = 500 * time.Millisecond
	agentHeartbeat = 3 * time.Second
	agentTimeout   = 15 * time.Second // of one git operation, on a busy machine
)

// device is one device of the fleet, below a root of its own.
type device struct {
	id, site string
	root     string
	config   string // the agent's
}

// movable says whether the device takes part in every rollout.
func (d *device) movable() bool {
	switch d.id {
	case busyDevice, pinnedDevice, heldDevice, boxedDevice, benchDevice:
		return false
	}
	return true
}

// provision makes a root and an agent's configuration for each device: what
// whoever sets up a device does once.
func provision(dir string, fleet *fleetRepo) ([]*device, error) {
	var devices []*device
	for _, name := range fleet.deviceFiles() {
		id := strings.TrimSuffix(path.Base(name), ".yaml")
		d := &device{
			id:     id,
			site:   path.Base(path.Dir(name)),
			root:   filepath.Join(dir, "devices", id),
			config: filepath.Join(dir, "agents", id+".yaml"),
		}
		control := filepath.Join(d.root, controlFile)
		if err := os.MkdirAll(filepath.Dir(control), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(control, []byte(fleet.path+"\n"), 0o644); err != nil {
			return nil, err
		}
		interval, heartbeat, timeout := schema.Duration(agentInterval), schema.Duration(agentHeartbeat), schema.Duration(agentTimeout)
		config, err := schema.Encode(&schema.AgentConfig{
			TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindAgentConfig},
			Spec: schema.AgentSpec{
				Device: id, Root: d.root, RepoFrom: "/" + controlFile,
				Interval: &interval, Heartbeat: &heartbeat, Timeout: &timeout,
			},
		})
		if err != nil {
			return nil, fmt.Errorf("write the configuration of %s: %w", id, err)
		}
		if err := os.WriteFile(d.config, config, 0o644); err != nil {
			return nil, err
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// setBusy says on the device itself that it must not be interrupted, as the
// program that runs there would.
func (d *device) setBusy(reason string) error {
	file := filepath.Join(d.root, busyFile)
	if reason == "" {
		return os.Remove(file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(reason+"\n"), 0o644)
}

// tree is what stands below the device's root, but for the agent's own state
// and what the device's programs wrote: path → mode and digest.
func (d *device) tree() (map[string]string, error) {
	tree := map[string]string{}
	err := filepath.WalkDir(d.root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(d.root, name)
		if err != nil {
			return err
		}
		switch rel {
		case "var/lib/gitopsd", "run", "var/log":
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			tree[rel] = info.Mode().String()
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		tree[rel] = fmt.Sprintf("%s %x", info.Mode(), sha256.Sum256(data))
		return nil
	})
	return tree, err
}

// wasGiven says whether the device's own record has this version, however
// that ended.
func (d *device) wasGiven(version string) (bool, error) {
	data, err := os.ReadFile(filepath.Join(d.root, updatesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return strings.Contains(string(data), " was given "+version+","), err
}
