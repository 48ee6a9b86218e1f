package demo

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// view is one commit of the status branch.
type view struct {
	commit  string // "" = the branch does not exist yet
	fleet   *schema.FleetStatus
	devices map[string]*schema.DeviceStatus // by id
	blobs   map[string]*schema.DeviceStatus // by content id: what was decoded before
}

// maxStatusFile bounds one file of the status branch, in bytes.
const maxStatusFile = 1 << 20

// look reads the tip of the status branch; an unchanged one is last itself.
func (r *fleetRepo) look(ctx context.Context, last view) (view, error) {
	refs, err := r.git.Refs(ctx, statusRef)
	if err != nil {
		return last, err
	}
	tip := refs[statusRef]
	if tip == "" || tip == last.commit {
		return last, nil
	}
	if err := r.git.Fetch(ctx, statusRef, tip, false); err != nil {
		return last, err
	}
	return r.read(ctx, tip, last.blobs)
}

// read decodes one commit of the status branch, but for blobs that are known.
func (r *fleetRepo) read(ctx context.Context, commit string, known map[string]*schema.DeviceStatus) (view, error) {
	v := view{commit: commit, devices: map[string]*schema.DeviceStatus{}, blobs: map[string]*schema.DeviceStatus{}}
	for blob, status := range known {
		v.blobs[blob] = status
	}
	err := r.git.Walk(ctx, commit, func(name, blob string, _ uint32) error {
		isDevice := strings.HasPrefix(name, "devices/") && path.Ext(name) == ".yaml"
		if !isDevice && name != "fleet.yaml" {
			return nil
		}
		id := strings.TrimSuffix(path.Base(name), ".yaml")
		if status := v.blobs[blob]; isDevice && status != nil {
			v.devices[id] = status
			return nil
		}
		data, err := r.git.Blob(ctx, blob, maxStatusFile)
		if err != nil {
			return err
		}
		if !isDevice {
			v.fleet = new(schema.FleetStatus)
			return decode(name, data, v.fleet)
		}
		status := new(schema.DeviceStatus)
		if err := decode(name, data, status); err != nil {
			return err
		}
		v.devices[id], v.blobs[blob] = status, status
		return nil
	})
	return v, err
}

// decode is strict: what the daemon writes must be what its schema says.
func decode(name string, data []byte, into any) error {
	for _, p := range schema.Decode(name, data, into) {
		if p.Severity == schema.SeverityError {
			return fmt.Errorf("%s:%d: %s", p.File, p.Line, p.Message)
		}
	}
	return nil
}

// version is what the device says that it runs, or "-".
func (v view) version(id string) string {
	if d := v.devices[id]; d != nil && d.Observed != nil && d.Observed.Version != "" {
		return d.Observed.Version
	}
	return "-"
}

// code is the device's verdict, or "".
func (v view) code(id string) string {
	if d := v.devices[id]; d != nil {
		return d.Verdict.Code
	}
	return ""
}

// attempts are the device's attempts of one version, oldest first.
func (v view) attempts(id, version string) []schema.Attempt {
	var out []schema.Attempt
	if d := v.devices[id]; d != nil {
		for _, a := range d.Attempts {
			if a.Version == version {
				out = append(out, a)
			}
		}
	}
	return out
}

// began says whether an attempt changed anything on its device. The daemon
// need not have seen the announcement: a device that is done before the next
// sweep reports its end over it.
func began(a schema.Attempt) bool {
	switch a.Outcome {
	case schema.OutcomeOK, schema.OutcomeFailed, schema.OutcomeLost:
		return true
	}
	return a.StartedAt != nil
}

// attemptsOf are all attempts of one version.
func (v view) attemptsOf(version string) []schema.Attempt {
	var out []schema.Attempt
	for id := range v.devices {
		out = append(out, v.attempts(id, version)...)
	}
	return out
}

// attemptsOfDevice are all attempts of one device.
func (v view) attemptsOfDevice(id string) []schema.Attempt {
	if d := v.devices[id]; d != nil {
		return d.Attempts
	}
	return nil
}

// inFlight counts the devices of a policy that hold a slot: those with an
// attempt that has not ended.
func (v view) inFlight(policy string) int {
	n := 0
	for _, d := range v.devices {
		for _, a := range d.Attempts {
			if a.Policy == policy && a.Outcome == "" {
				n++
				break
			}
		}
	}
	return n
}
