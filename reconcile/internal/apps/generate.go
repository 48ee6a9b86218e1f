package apps

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
)

// generatorLimit is for a slow device, in seconds; it reads a few small files.
const generatorLimit = 60

// maxGenerated bounds what it shows, in bytes: a thousand units are well below.
const maxGenerated = 4 << 20

// generated is a unit that the generator shows.
type generated struct {
	unit
	app string
}

// generate has podman's generator say what it makes of the files, without
// making it: they are put into a folder of the state, by application, because
// quadlets of one may name those of another.
func (c *Controller) generate(ctx context.Context, all []*want) ([]generated, error) {
	dir := path.Join(c.State, "apps-check")
	host, err := c.writeCheck(dir, all)
	if err != nil {
		return nil, err
	}
	out, err := c.Run(ctx, []string{c.Generator, "--dryrun"}, "/", []string{"QUADLET_UNIT_DIRS=" + host}, generatorLimit, maxGenerated)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, refused(err, host)
	}
	if err := c.sweepCheck(dir); err != nil {
		c.Warn(err)
	}
	if len(out) >= maxGenerated {
		return nil, failure.Permanent(component, "", "podman's generator makes more than %d MiB of the quadlet files", maxGenerated>>20)
	}
	return readUnits(out, host), nil
}

// checks is where files are put that somebody else reads.
func (c *Controller) checks() *disk.Root {
	if c.Scratch != nil {
		return c.Scratch
	}
	return c.Root
}

// writeCheck puts files into a folder of the state, by application, where
// somebody else reads them. It gives the folder's path on the host.
func (c *Controller) writeCheck(dir string, all []*want) (host string, err error) {
	if err := c.sweepCheck(dir); err != nil {
		return "", failure.Retryable(component, "", "%w", err)
	}
	for _, w := range all {
		for file, data := range w.files {
			at := path.Join(dir, w.name, file)
			_, err := c.checks().MkdirAll(path.Dir(at), checkDir)
			if err == nil {
				err = c.checks().WriteFile(at, data, checkFile)
			}
			if err != nil {
				return "", failure.Retryable(component, w.name, "%w", err)
			}
		}
	}
	if host, err = c.checks().HostPath(dir); err != nil {
		return "", failure.Retryable(component, "", "%w", err)
	}
	return host, nil
}

var (
	checkDir  = disk.Meta{Mode: 0o700, UID: -1, GID: -1}
	checkFile = disk.Meta{Mode: 0o600, UID: -1, GID: -1}
)

// sweepCheck removes what was put there for the generator.
func (c *Controller) sweepCheck(dir string) error {
	entries, err := c.checks().List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		if e.IsDir() {
			err = c.sweepCheck(at)
		} else {
			err = c.checks().Remove(at)
		}
		if err != nil {
			return err
		}
	}
	return c.checks().Remove(dir)
}

// refused makes a failure of what the generator said, without the lines that
// only tell what it reads and with the paths that a person knows. It says why
// behind the units that it makes of the other files.
func refused(err error, host string) error {
	var exit *hooks.Exit
	if !errors.As(err, &exit) || exit.Timeout {
		return failure.Retryable(component, "", "podman's generator: %w", err)
	}
	var lines []string
	ofUnit := generatorWords.MatchString(exit.Output) // whose beginning may be cut
	for line := range strings.SplitSeq(exit.Output, "\n") {
		if own := generatorWords.FindString(line); own != "" {
			line, ofUnit = line[len(own):], false
		}
		ofUnit = ofUnit || strings.HasPrefix(line, "---")
		if ofUnit || strings.Contains(line, "Loading source unit file") {
			continue
		}
		if line = strings.TrimSpace(strings.ReplaceAll(line, host+"/", "")); line != "" {
			lines = append(lines, line)
		}
	}
	f := failure.From(failure.Permanent(component, "", "podman's generator refuses the quadlet files"))
	f.Output = strings.Join(lines, "; ")
	if f.Output == "" {
		f.Output = exit.Error()
	}
	return f
}

// generatorWords begins a line of the generator's own, which more may follow.
var generatorWords = regexp.MustCompile(`(?m)^quadlet-generator\[\d+\]: `)

// readUnits reads what the generator shows: each unit behind a line with its
// name, in the form of unit files.
func readUnits(out, dir string) []generated {
	var all []generated
	var cur *generated
	var oneshot, install bool
	end := func() {
		if cur != nil && cur.app != "" {
			if strings.HasPrefix(cur.Object, "-") {
				cur.Object = "" // podman would take it for an option, and so it makes none
			}
			cur.Passive = !slices.Contains([]string{"container", "kube", "pod"}, cur.Kind) ||
				strings.Contains(cur.Name, "@.") || oneshot && !install
			all = append(all, *cur)
		}
		cur, oneshot, install = nil, false, false
	}
	section := ""
	for line := range strings.SplitSeq(out, "\n") {
		if name, ok := strings.CutPrefix(line, "---"); ok && strings.HasSuffix(name, "---") {
			end()
			cur = &generated{unit: unit{Name: strings.TrimSuffix(name, "---")}}
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = line
			install = install || section == "[Install]"
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if cur == nil || !ok || strings.HasPrefix(section, "[X-") {
			continue
		}
		words := strings.Fields(value)
		switch key {
		case "SourcePath":
			if rel, err := filepath.Rel(dir, value); err == nil && !strings.HasPrefix(rel, "..") {
				cur.app, cur.Kind = path.Dir(rel), strings.TrimPrefix(path.Ext(rel), ".")
			}
		case "Type":
			oneshot = value == "oneshot"
		case "ExecStart":
			if len(words) > 3 && words[1] == "network" && words[2] == "create" {
				cur.Object = words[len(words)-1]
			}
		case "ExecStartPre":
			if at := slices.Index(words, "--name"); at >= 0 && at+1 < len(words) && len(words) > 1 && words[1] == "pod" {
				cur.Object = words[at+1]
			}
		}
	}
	end()
	return all
}
