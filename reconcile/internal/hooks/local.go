package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// localFolders hold the device's own hooks, in a folder for each point; a file
// of a later one takes the place of one of the same name.
var localFolders = []string{"/usr/lib/gitopsd/hooks.d", "/etc/gitopsd/hooks.d"}

const (
	localSuffix = ".yaml"
	// maxLocalFile is the largest file that is read, in bytes: a hook is a few
	// lines.
	maxLocalFile = 64 << 10
	// maxLocal bounds the entries of one folder.
	maxLocal = 200
)

// Local reads the device's own hooks; each is named by the path of its file. All
// that is wrong is in the error, and what is not, is given all the same: a hook
// that nobody can read is never passed over without a word. A disk in trouble
// is asked twice, because after an update one error would undo it.
func Local(r *disk.Root) (*schema.Hooks, error) {
	h, err := readLocal(r)
	if inTrouble(err) {
		h, err = readLocal(r)
	}
	return h, err
}

func inTrouble(err error) bool { return errors.Is(err, syscall.EIO) || disk.Short(err) }

func readLocal(r *disk.Root) (*schema.Hooks, error) {
	found := map[Point]map[string]*schema.Hook{} // by path
	var errs []error
	for _, p := range Points {
		found[p] = map[string]*schema.Hook{}
	}
	for _, folder := range localFolders {
		points, err := localEntries(r, folder)
		errs = append(errs, err)
		for _, e := range points {
			p := Point(e.Name())
			if found[p] == nil {
				if e.IsDir() {
					errs = append(errs, failure.Permanent(component, path.Join(folder, e.Name()), "it is the folder of no point; the points are %v", Points))
				}
				continue
			}
			errs = append(errs, localPoint(r, path.Join(folder, e.Name()), found[p]))
		}
	}
	return &schema.Hooks{
		BeforeUpdating: found[BeforeUpdating], AfterUpdating: found[AfterUpdating],
		BeforeRebooting: found[BeforeRebooting], AfterRebooting: found[AfterRebooting],
	}, failure.Join(errs...)
}

// localPoint adds the hooks of a folder to those that are known by their paths.
func localPoint(r *disk.Root, folder string, known map[string]*schema.Hook) error {
	entries, err := localEntries(r, folder)
	errs := []error{err}
	for _, e := range entries {
		name, at := e.Name(), path.Join(folder, e.Name())
		switch {
		case strings.HasPrefix(name, "."), strings.HasSuffix(name, "~"):
			continue
		case path.Ext(name) == ".yml":
			errs = append(errs, failure.Permanent(component, at, "the names of hooks end in %s; rename it", localSuffix))
			continue
		case path.Ext(name) != localSuffix:
			continue
		}
		for other := range known {
			if path.Base(other) == name {
				delete(known, other)
			}
		}
		h, err := localHook(r, at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		known[at] = h
	}
	return failure.Join(errs...)
}

// localEntries lists a folder that only the device's administrator can write.
func localEntries(r *disk.Root, folder string) ([]fs.DirEntry, error) {
	real, err := realPath(r, folder)
	if err != nil {
		return nil, localFailure(folder, err)
	}
	entries, err := r.List(real)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, localFailure(folder, err)
	}
	if len(entries) > maxLocal {
		return nil, failure.Permanent(component, folder, "it has %d entries, more than the %d that are read", len(entries), maxLocal)
	}
	if len(entries) > 0 {
		err = safeParents(r, path.Join(real, "x"))
	}
	return entries, localFailure(folder, err)
}

func localHook(r *disk.Root, at string) (*schema.Hook, error) {
	real, err := realPath(r, at)
	if err != nil {
		return nil, localFailure(at, err)
	}
	info, err := r.Lstat(real)
	if err == nil && !info.Mode().IsRegular() {
		err = disk.ErrNotRegular
	}
	if err == nil {
		err = errors.Join(safe(real, info), safeParents(r, real))
	}
	var data []byte
	if err == nil {
		data, err = r.ReadFile(real, maxLocalFile)
	}
	if err != nil {
		return nil, localFailure(at, err)
	}
	h, problems := schema.DecodeHook(at, data)
	if h != nil {
		return h, nil
	}
	return nil, failure.Permanent(component, at, "%s", problemsText(problems))
}

// maxTold is how many problems of one file a failure tells.
const maxTold = 3

func problemsText(problems []schema.Problem) string {
	var b strings.Builder
	for i, p := range problems[:min(len(problems), maxTold)] {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "line %d: %s", p.Line, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " (%s)", p.Hint)
		}
	}
	if more := len(problems) - maxTold; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// localFailure is permanent for what a person has to mend, and retryable for a
// disk or a machine in trouble.
func localFailure(at string, err error) error {
	if err == nil {
		return nil
	}
	if inTrouble(err) {
		return failure.Retryable(component, at, "%w", err)
	}
	return failure.Permanent(component, at, "%w", err)
}

// realPath gives a path with all its symlinks followed.
func realPath(r *disk.Root, p string) (string, error) {
	host, err := r.HostPath(p)
	if err != nil {
		return "", err
	}
	return path.Join("/", strings.TrimPrefix(host, r.Dir())), nil
}

// errUnsafe is the error of a hook that others than the device's administrator
// could have written: it would run with all that the agent may do.
var errUnsafe = errors.New("others could have written it")

// safeParents looks at the folders on the way to a path, but for the root: who
// can write in one of them can put something else in its place.
func safeParents(r *disk.Root, real string) error {
	for d := path.Dir(real); d != "/"; d = path.Dir(d) {
		info, err := r.Lstat(d)
		if err != nil {
			return err
		}
		if err := safe(d, info); err != nil {
			return err
		}
	}
	return nil
}

func safe(at string, info fs.FileInfo) error {
	uid, _ := disk.Owner(info)
	if !slices.Contains([]int{0, os.Geteuid()}, uid) {
		return fmt.Errorf("%s belongs to user %d, and not to root or to the agent's own user: %w", at, uid, errUnsafe)
	}
	if m := info.Mode(); m.Perm()&0o022 != 0 && (!m.IsDir() || m&fs.ModeSticky == 0) {
		return fmt.Errorf("%s has the mode %04o, and should not be writable by group or others: %w", at, m.Perm(), errUnsafe)
	}
	return nil
}
