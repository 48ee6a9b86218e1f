package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// waitFor waits until a document of the status branch has all these values.
func waitFor(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "wait-for DEVICE|fleet FIELD=VALUE..."); err != nil {
		return err
	}
	return w.wait(func() error { return w.check(args[0], args[1:]) })
}

// state wants a document of the status branch to have these values now.
func state(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 2, "state DEVICE|fleet FIELD=VALUE..."); err != nil {
		return err
	}
	return w.check(args[0], args[1:])
}

// short names of what scripts ask for most.
var fields = map[string]string{
	"code": "verdict.code", "reason": "verdict.reason", "version": "observed.version", "phase": "observed.phase",
	"outcome": "attempts.-1.outcome", "to": "attempts.-1.version", "attempt": "attempts.-1.attempt",
	"state": "rollouts.0.state", "condition": "conditions.0.reason",
}

func (w *world) check(document string, want []string) error {
	tree, err := w.document(document)
	if err != nil {
		return err
	}
	for _, one := range want {
		field, value, ok := strings.Cut(one, "=")
		negative := strings.HasSuffix(field, "!")
		field = strings.TrimSuffix(field, "!")
		if !ok {
			return fmt.Errorf("%q is no FIELD=VALUE", one)
		}
		path := field
		if long := fields[field]; long != "" {
			path = long
		}
		got := at(tree, strings.Split(path, "."))
		matched, err := regexp.MatchString("^(?:"+value+")$", got)
		if err != nil {
			return err
		}
		if matched == negative {
			return fmt.Errorf("%s: %s is %q, want %s\n%v", document, path, got, one, tree)
		}
	}
	return nil
}

// document reads a document of the status branch.
func (w *world) document(name string) (any, error) {
	path := "devices/" + name + ".yaml"
	if name == "fleet" {
		path = "fleet.yaml"
	}
	out, err := w.onStatus(path, "show")
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, out)
	}
	var tree any
	return tree, yaml.Unmarshal([]byte(out), &tree)
}

// answers are what the git program said of a commit of the status branch: whoever
// waits asks the same again and again, and a process for each time is most of
// what the scripts would cost.
type answers struct {
	tip  string
	said map[string]string // by the command line
}

// onStatus asks the git program about a path of the status branch, so that a
// script does not believe what gitopsd says of itself.
func (w *world) onStatus(path string, command ...string) (string, error) {
	const branch = "refs/heads/gitopsd/status"
	tip := branch // where it is packed, git finds it
	if data, err := os.ReadFile(filepath.Join(w.bare(), branch)); err == nil {
		tip = strings.TrimSpace(string(data))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if tip != w.status.tip || tip == branch {
		w.status = answers{tip: tip, said: map[string]string{}}
	}
	line := strings.Join(append(command, tip+":"+path), " ")
	if said, ok := w.status.said[line]; ok {
		return said, nil
	}
	out, err := gitserver.TryGit(w.bare(), append(command, tip+":"+path)...)
	if err == nil {
		w.status.said[line] = out
	}
	return out, err
}

func (w *world) bare() string { return filepath.Join(w.work, "fleet.git") }

// at follows a path of names and positions; a negative position counts from
// the end. What is not there is "".
func at(tree any, path []string) string {
	for _, step := range path {
		switch node := tree.(type) {
		case map[string]any:
			tree = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil {
				return ""
			}
			if i < 0 {
				i += len(node)
			}
			if i < 0 || i >= len(node) {
				return ""
			}
			tree = node[i]
		default:
			return ""
		}
	}
	if tree == nil {
		return ""
	}
	return fmt.Sprint(tree)
}

// started wants exactly these devices to have ever started a version.
func started(w *world, _ *testscript.TestScript, args []string) error {
	if err := usage(args, 1, "started VERSION [DEVICE...]"); err != nil {
		return err
	}
	ids, err := w.devices()
	if err != nil {
		return err
	}
	var got []string
	for _, id := range ids {
		tree, err := w.document(id)
		if err != nil {
			return err
		}
		attempts, _ := tree.(map[string]any)["attempts"].([]any)
		for _, a := range attempts {
			// A start that ended between two sweeps has no time of its own.
			begun := at(a, []string{"startedAt"}) != "" || slices.Contains([]string{"ok", "failed", "lost"}, at(a, []string{"outcome"}))
			if begun && at(a, []string{"version"}) == args[0] {
				got = append(got, id)
				break
			}
		}
	}
	if !slices.Equal(got, args[1:]) {
		return fmt.Errorf("%s was started by %v, want %v", args[0], got, args[1:])
	}
	return nil
}
