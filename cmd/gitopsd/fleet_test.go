package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// The fleet of the scripts: devices d1, d2, … under one policy. Waiting times
// are short, everything else is as a user would have it.
const (
	fleetPolicy = `apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: edge}
spec:
  enabled: true
  selector: {matchLabels: {role: edge}}
  targetVersion: v1.0.0
  maxInFlight: 1
  backoff: {base: 1s}
`
	fleetDevice = `apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: %s, labels: {role: edge}}
spec: {}
`
	// The template makes every device's digest its own. The hook leaves a
	// trace that no rollback takes away, with the shell's own commands only,
	// so that it runs without a PATH.
	fleetRelease = `apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: %[1]s}
spec:
  files:
    /etc/edge/release: {content: "%[1]s\n"}
    /etc/edge/edge.conf: {source: files/edge.conf, template: true, mode: "0640"}
    /opt/edge/tool: {content: "#!/bin/sh\n# %[1]s\n", mode: "4755"}
  hooks:
    afterUpdating:
      trace: {order: 1, run: [/bin/sh, -c, 'echo "$GITOPSD_TO" >> trace']}
      check: {order: 2, run: [/bin/sh, -c, '%[2]s']}
  confirm: {within: 5s}
`
	fleetPayload = "device = {{ .device.name }}\n"
)

// newFleet writes the policy, N devices and a payload into fleet/.
func newFleet(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "fleet N"); err != nil {
		return err
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	files := map[string]string{"policies/edge.yaml": fleetPolicy, "files/edge.conf": fleetPayload}
	for i := range n {
		id := fmt.Sprintf("d%d", i+1)
		files["devices/"+id+".yaml"] = fmt.Sprintf(fleetDevice, id)
	}
	for path, text := range files {
		if err := w.write(path, text); err != nil {
			return err
		}
	}
	return nil
}

// newRelease writes a release whose check is a line of shell.
func newRelease(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "release VERSION [SHELL]"); err != nil {
		return err
	}
	check := "true"
	if len(args) > 1 {
		check = args[1]
	}
	return w.write("releases/edge/"+args[0]+".yaml", fmt.Sprintf(fleetRelease, args[0], check))
}

// manage adds a file with one line to a release.
func manage(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 3, "manage VERSION PATH LINE"); err != nil {
		return err
	}
	return w.extend(args[0], "  files:\n", fmt.Sprintf("    %s: {content: \"%s\\n\"}\n", args[1], args[2]))
}

// manageOS adds an operating system to a release.
func manageOS(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "manage-os VERSION IMAGE"); err != nil {
		return err
	}
	return w.extend(args[0], "spec:\n", fmt.Sprintf("  os: {image: %s}\n", args[1]))
}

// extend puts lines behind a line of a release.
func (w *world) extend(version, line, more string) error {
	name := "releases/edge/" + version + ".yaml"
	data, err := os.ReadFile(filepath.Join(w.work, "fleet", filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(data), line)
	if !found {
		return fmt.Errorf("%s has no line %q", name, line)
	}
	return w.write(name, before+line+more+after)
}

func (w *world) write(path, text string) error {
	path = filepath.Join(w.work, "fleet", filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// target changes the policy's target version.
func target(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "target VERSION"); err != nil {
		return err
	}
	path := filepath.Join(w.work, "fleet", "policies", "edge.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(data), "\n")
	for i, l := range lines {
		if strings.Contains(l, "targetVersion:") {
			lines[i] = "  targetVersion: " + args[0]
			return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
		}
	}
	return errors.New("the policy has no target")
}

// find waits until exactly one device has these values, and sets a variable
// to its id; OTHERS becomes the ids of the rest.
func find(w *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "find VARIABLE FIELD=VALUE..."); err != nil {
		return err
	}
	return w.wait(func() error {
		ids, err := w.devices()
		if err != nil {
			return err
		}
		var found, others []string
		for _, id := range ids {
			if w.check(id, args[1:]) == nil {
				found = append(found, id)
			} else {
				others = append(others, id)
			}
		}
		if len(found) != 1 {
			return fmt.Errorf("%v has %s, want one device", found, strings.Join(args[1:], " "))
		}
		ts.Setenv(args[0], found[0])
		for i, id := range others {
			ts.Setenv(fmt.Sprintf("OTHER%d", i+1), id)
		}
		return nil
	})
}

// devices lists the ids on the status branch.
func (w *world) devices() ([]string, error) {
	names, err := w.onStatus("devices", "ls-tree", "-r", "--name-only")
	if err != nil {
		return nil, fmt.Errorf("list the status branch: %s", names)
	}
	var ids []string
	for _, path := range strings.Fields(names) {
		ids = append(ids, strings.TrimSuffix(filepath.Base(path), ".yaml"))
	}
	return ids, nil
}

// oldest wants the first of some files to have been written before the rest.
func oldest(_ *world, ts *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "oldest FILE FILE..."); err != nil {
		return err
	}
	first, err := os.Stat(ts.MkAbs(args[0]))
	if err != nil {
		return err
	}
	for _, other := range args[1:] {
		info, err := os.Stat(ts.MkAbs(other))
		if err != nil {
			return err
		}
		if !first.ModTime().Before(info.ModTime()) {
			return fmt.Errorf("%s was written at %v, %s at %v", args[0], first.ModTime(), other, info.ModTime())
		}
	}
	return nil
}

// ended waits for a process that ends by itself.
func ended(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "ended NAME"); err != nil {
		return err
	}
	w.mu.Lock()
	p := w.procs[args[0]]
	w.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%s was not started", args[0])
	}
	if err := w.wait(func() error {
		select {
		case <-p.done:
			return nil
		default:
			return fmt.Errorf("%s still runs\n%s", args[0], p.tail())
		}
	}); err != nil {
		return err
	}
	w.mu.Lock()
	delete(w.procs, args[0])
	w.mu.Unlock()
	return p.err
}
