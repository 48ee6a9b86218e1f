package osimage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
)

// ostree is the driver of systems that boot what ostree has deployed. An image
// is a branch of the remote, or a commit of it; a version is a commit.
type ostree struct {
	program
	remote string
	osName string // "" = that of the booted deployment
}

func (d *ostree) Name() string { return "ostree" }

// commit is a checksum as ostree writes it.
var commit = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Fetch pulls: what was pulled before is kept, and not pulled again.
func (d *ostree) Fetch(ctx context.Context, image string) (string, error) {
	if err := argument(image); err != nil {
		return "", err
	}
	if commit.MatchString(image) {
		return image, d.have(ctx, image)
	}
	if strings.ContainsAny(image, ": ") {
		return "", failure.Permanent(component, image, "a branch of the remote %s is wanted, or a commit", d.remote)
	}
	if err := d.pull(ctx, image); err != nil {
		return "", err
	}
	out, err := d.run(ctx, "rev-parse", []string{"ostree", "rev-parse", "--repo=" + d.repo(), d.remote + ":" + image}, askTimeout)
	if err == nil && !commit.MatchString(out) {
		err = failure.Retryable(component, image, "ostree gives %q for it, which is no commit", out)
	}
	return out, err
}

func (d *ostree) repo() string { return filepath.Join(d.root, "ostree/repo") }

func (d *ostree) sysroot() string { return "--sysroot=" + d.root }

// have pulls a commit unless all of it is here.
func (d *ostree) have(ctx context.Context, version string) error {
	_, partial := os.Stat(filepath.Join(d.repo(), "state", version+".commitpartial"))
	_, here := os.Stat(filepath.Join(d.repo(), "objects", version[:2], version[2:]+".commit"))
	if here == nil && errors.Is(partial, os.ErrNotExist) {
		return nil
	}
	return d.pull(ctx, version)
}

// pull leaves what it got where it did not come to its end, so that the next
// one goes on from there; but on a full disk that would be in the way.
func (d *ostree) pull(ctx context.Context, what string) error {
	_, err := d.run(ctx, "pull "+what, []string{"ostree", "pull", "--repo=" + d.repo(), d.remote, what}, stageTimeout)
	return d.makeRoom(ctx, err)
}

// makeRoom removes what no deployment needs where there was no room.
func (d *ostree) makeRoom(ctx context.Context, err error) error {
	if err == nil || !full.MatchString(err.Error()) {
		return err
	}
	if _, e := d.run(ctx, "cleanup", []string{"ostree", "admin", "cleanup", d.sysroot()}, undoTimeout); e != nil {
		return failure.Join(err, e)
	}
	return err
}

// full is how ostree says that there is no room: the kernel's word, or its own
// where it keeps some room free (min-free-space-percent, min-free-space-size).
var full = regexp.MustCompile(`No space left on device|min-free-space`)

// deployment is a line of the list that ostree keeps, of which the first boots
// next.
type deployment struct {
	osName, version string
	booted, staged  bool
}

// deploymentLine is what each deployment begins with; what follows is indented
// further. The first one may have lost its margin.
var deploymentLine = regexp.MustCompile(`^(\* |  )?(\S+) ([0-9a-f]{64})\.[0-9]+( .*)?$`)

// deployments gives the list, and which one is booted. Below another root than
// "/" nothing is booted: there it is the one that would be.
func (d *ostree) deployments(ctx context.Context) (all []deployment, booted int, err error) {
	out, err := d.run(ctx, "status", []string{"ostree", "admin", "status", d.sysroot()}, askTimeout)
	if err != nil {
		return nil, 0, err
	}
	booted = -1
	for line := range strings.SplitSeq(out, "\n") {
		m := deploymentLine.FindStringSubmatch(line)
		switch {
		case m == nil && len(all) == 0:
			return nil, 0, failure.Retryable(component, "booted", "ostree's list does not begin with a deployment: %q", line)
		case m == nil:
			continue
		case m[1] == "* ":
			booted = len(all)
		}
		all = append(all, deployment{osName: m[2], version: m[3], booted: m[1] == "* ", staged: strings.Contains(m[4], "(staged)")})
	}
	switch {
	case booted < 0 && d.root == "/":
		return nil, 0, failure.Retryable(component, "booted", "this system was not booted from a deployment of ostree")
	case booted < 0:
		return all, 0, nil
	}
	return all, booted, nil
}

func (d *ostree) Booted(ctx context.Context) (string, error) {
	all, booted, err := d.deployments(ctx)
	if err != nil {
		return "", err
	}
	return all[booted].version, nil
}

func (d *ostree) Staged(ctx context.Context) (string, error) {
	all, booted, err := d.deployments(ctx)
	if err != nil || booted == 0 {
		return "", err
	}
	return all[0].version, nil
}

// Has goes by the list: what is staged stands in it only until the next boot,
// and after that if the system came to its end before.
func (d *ostree) Has(ctx context.Context, version string) (bool, error) {
	all, _, err := d.deployments(ctx)
	return slices.ContainsFunc(all, func(o deployment) bool { return o.version == version }), err
}

// Stage has ostree make the deployment when the system goes down, so that it
// gets the configuration in /etc as it is then. The booted one stays, to come
// back to.
func (d *ostree) Stage(ctx context.Context, version string) error {
	if !commit.MatchString(version) {
		return failure.Permanent(component, version, "it is no commit")
	}
	all, booted, err := d.deployments(ctx)
	if err != nil {
		return err
	}
	if err := d.have(ctx, version); err != nil {
		return err
	}
	argv := []string{"ostree", "admin", "deploy", d.sysroot(), "--os=" + all[booted].osName}
	if d.osName != "" {
		argv[len(argv)-1] = "--os=" + d.osName
	}
	if all[booted].booted {
		argv = append(argv, "--stage")
	}
	_, err = d.run(ctx, "deploy", append(argv, version), stageTimeout)
	return d.makeRoom(ctx, err)
}

// Undo never has a third system boot next, also not for a moment. What changes
// the boot entries comes to its end when the agent is stopped: ostree freezes
// the file system of /boot for a moment, and killed then it would stay frozen.
func (d *ostree) Undo(ctx context.Context, to string) error {
	whole := context.WithoutCancel(ctx)
	for {
		all, booted, err := d.deployments(ctx)
		if err != nil {
			return err
		}
		kept := slices.IndexFunc(all, func(o deployment) bool { return o.version == to && !o.staged })
		switch {
		case kept < 0:
			return failure.Retryable(component, to, "no deployment of it was kept")
		case kept == 0:
			return nil
		case all[0].staged || kept == booted:
			_, err = d.run(whole, "undeploy", []string{"ostree", "admin", "undeploy", d.sysroot(), "0"}, undoTimeout)
			if err != nil {
				return err
			}
		default:
			_, err = d.run(whole, "set-default", []string{"ostree", "admin", "set-default", d.sysroot(), strconv.Itoa(kept)}, undoTimeout)
			return err
		}
	}
}
