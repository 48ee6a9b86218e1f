//go:build system

package systemtest

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gitopsd/gitopsd/internal/gitserver"
	"github.com/gitopsd/gitopsd/repo"
	"github.com/gitopsd/gitopsd/schema"
)

const statusRef = "refs/heads/" + schema.DefaultStatusBranch

// fleet is a bare repository, and the work tree of an operator who pushes to
// it with git.
type fleet struct {
	*bench
	bare string
	tree string
	git  *repo.Repo // looks at the bare repository
}

const (
	policyText = `apiVersion: gitopsd.dev/v1alpha1
kind: Policy
metadata: {name: %[1]s}
spec:
  enabled: true
  selector: {matchLabels: {role: %[1]s}}
  targetVersion: %[2]s
  maxInFlight: %[3]d
  failureLimit: %[4]d
  backoff: {base: 1s, cap: 2s}
`
	deviceText = `apiVersion: gitopsd.dev/v1alpha1
kind: Device
metadata: {name: %s, labels: {role: %s}}
spec: {}
`
	releaseText = `apiVersion: gitopsd.dev/v1alpha1
kind: Release
metadata: {name: %s}
spec:
%s`
)

// newFleet makes the repository below dir, which may be a mount.
func newFleet(b *bench, dir string) *fleet {
	b.Helper()
	f := &fleet{bench: b, tree: b.path("operator")}
	f.bare = gitserver.Bare(b, dir, "fleet.git")
	gitserver.Git(b, b.dir, "clone", "-q", f.bare, f.tree)
	gitserver.Git(b, f.tree, "checkout", "-q", "-B", "main")
	git, err := repo.Open(repo.Config{URL: f.bare})
	if err != nil {
		b.Fatal(err)
	}
	f.git = git
	b.Cleanup(func() { git.Close() })
	return f
}

func (f *fleet) write(name, text string) {
	f.Helper()
	writeFile(f, filepath.Join(f.tree, filepath.FromSlash(name)), text, 0o644)
}

// policy writes a policy; devices with its name as their role are its own.
func (f *fleet) policy(name, target string, maxInFlight, failureLimit int) {
	f.Helper()
	f.write("policies/"+name+".yaml", fmt.Sprintf(policyText, name, target, maxInFlight, failureLimit))
}

func (f *fleet) device(id, role string) {
	f.Helper()
	f.write("devices/"+id+".yaml", fmt.Sprintf(deviceText, id, role))
}

// release writes a release; spec is YAML without indentation.
func (f *fleet) release(line, version, spec string) {
	f.Helper()
	var b strings.Builder
	for l := range strings.Lines(strings.TrimSpace(spec) + "\n") {
		b.WriteString("  " + l)
	}
	f.write("releases/"+line+"/"+version+".yaml", fmt.Sprintf(releaseText, version, b.String()))
}

// push commits all that was written and gives the commit.
func (f *fleet) push(message string) string {
	f.Helper()
	gitserver.Git(f, f.tree, "add", "-A")
	gitserver.Git(f, f.tree, "commit", "-q", "-m", message)
	gitserver.Git(f, f.tree, "push", "-q", "origin", "main")
	return gitserver.Git(f, f.tree, "rev-parse", "HEAD")
}

// status is one commit of the status branch.
type status struct {
	commit  string
	fleet   *schema.FleetStatus
	devices map[string]*schema.DeviceStatus
	blobs   map[string]*schema.DeviceStatus // by content, to read each once
}

// at reads one commit of the status branch, strictly: what the daemon writes
// must be what its schema says.
func (f *fleet) at(commit string, known status) (status, error) {
	ctx := context.Background()
	s := status{commit: commit, devices: map[string]*schema.DeviceStatus{}, blobs: map[string]*schema.DeviceStatus{}}
	err := f.git.Walk(ctx, commit, func(name, blob string, _ uint32) error {
		isDevice := strings.HasPrefix(name, "devices/") && path.Ext(name) == ".yaml"
		if !isDevice && name != "fleet.yaml" {
			return nil
		}
		id := strings.TrimSuffix(path.Base(name), ".yaml")
		if d := known.blobs[blob]; isDevice && d != nil {
			s.devices[id], s.blobs[blob] = d, d
			return nil
		}
		data, err := f.git.Blob(ctx, blob, 1<<20)
		if err != nil {
			return err
		}
		if !isDevice {
			s.fleet = new(schema.FleetStatus)
			return strict(name, data, s.fleet)
		}
		d := new(schema.DeviceStatus)
		if err := strict(name, data, d); err != nil {
			return err
		}
		s.devices[id], s.blobs[blob] = d, d
		return nil
	})
	return s, err
}

func strict(name string, data []byte, into any) error {
	for _, p := range schema.Decode(name, data, into) {
		if p.Severity == schema.SeverityError {
			return fmt.Errorf("%s:%d: %s", p.File, p.Line, p.Message)
		}
	}
	return nil
}

// now reads the tip of the status branch; before there is one, it is empty.
func (f *fleet) now() (status, error) {
	refs, err := f.git.Refs(context.Background(), statusRef)
	if err != nil || refs[statusRef] == "" {
		return status{}, err
	}
	return f.at(refs[statusRef], status{})
}

// is waits until a device's status says this code (and, where it is not "",
// this version), with no open attempt.
func (f *fleet) is(id, code, version string) {
	f.Helper()
	f.wait(fmt.Sprintf("%s %s on %s", id, code, version), func() error {
		s, err := f.now()
		if err != nil {
			return err
		}
		return s.is(id, code, version)
	})
}

func (s status) is(id, code, version string) error {
	d := s.devices[id]
	if d == nil {
		return fmt.Errorf("%s is not on the status branch", id)
	}
	on := "nothing"
	if d.Observed != nil {
		on = d.Observed.Version
	}
	if d.Verdict.Code != code || version != "" && on != version || open(d) != nil {
		return fmt.Errorf("%s is %s (%s) on %s", id, d.Verdict.Code, d.Verdict.Reason, on)
	}
	return nil
}

// open is the attempt of a device that has not ended.
func open(d *schema.DeviceStatus) *schema.Attempt {
	for i := range d.Attempts {
		if d.Attempts[i].Outcome == "" {
			return &d.Attempts[i]
		}
	}
	return nil
}

// whole wants git to find nothing wrong with a repository.
func whole(b *bench, dir string) {
	b.Helper()
	out, err := gitserver.TryGit(dir, "fsck", "--full", "--strict", "--no-dangling")
	if err != nil {
		b.Errorf("git fsck of %s: %v\n%s", dir, err, out)
	}
}

// nothingLeft wants no lock and no unfinished file in a repository.
func nothingLeft(b *bench, dir string) {
	b.Helper()
	for _, p := range leftovers(b, dir) {
		b.Errorf("%s was left behind", p)
	}
}

func leftovers(b *bench, dir string) []string {
	b.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		name := e.Name()
		if !e.IsDir() && (strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".gitopsd-tmp-")) {
			found = append(found, p)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// agent starts the agent of a device below roots/ID, quick to look.
func (f *fleet) agent(id string, more ...string) *process {
	f.Helper()
	root := f.path("roots", id)
	if err := os.MkdirAll(root, 0o755); err != nil {
		f.Fatal(err)
	}
	return f.start(id, agentArgs(id, root, more...)...)
}

func agentArgs(id, root string, more ...string) []string {
	return append([]string{"agent", "--device", id, "--root", root, "--interval", "300ms", "--heartbeat", "10s", "--timeout", "15s"}, more...)
}

func serveArgs(state string, more ...string) []string {
	return append([]string{"serve", "--state", state, "--interval", "300ms", "--timeout", "15s"}, more...)
}
