package units

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// verifyLimit is for systemd-analyze on a slow board, in seconds; it reads
	// every unit that the new one needs.
	verifyLimit = 120
	// maxCopied bounds the file of a unit that a drop-in is added to, in bytes.
	maxCopied = 1 << 20
)

// verify has systemd-analyze look at the units whose files will be different,
// all of the spec's in one folder, so that each finds the others.
func (c *Controller) verify(ctx context.Context, spec *schema.Spec, states []State, texts map[string]string, p Plan) error {
	var look []string
	made := c.made(spec)
	for _, s := range states {
		u := spec.Units[s.Name]
		if u == nil || u.State == schema.UnitMasked || !slices.ContainsFunc(p.Ahead, func(a string) bool { return concerns(unitOf(a), s.Name) }) {
			continue
		}
		if !u.IsSet() && s.Fragment == "" && !brought(spec, s.Name) && !made[s.Name] {
			continue // it comes with the new system
		}
		look = append(look, s.Name)
	}
	if len(look) == 0 {
		return nil
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if c.warned != err.Error() {
			c.warned = err.Error()
			c.warn(fmt.Errorf("new units are not looked at before they replace good ones: %w", err))
		}
		return nil
	}
	if err := c.lay(spec, states, texts, made, p); err != nil {
		return failed("", err)
	}
	defer os.RemoveAll(c.scratch)
	var errs []error
	for _, name := range look {
		errs = append(errs, c.analyze(ctx, name))
	}
	return failure.Join(errs...)
}

// stub stands for a unit that is not there yet, for those that need it and for
// its drop-ins.
const stub = "[Service]\nType=oneshot\nExecStart=/bin/sh\n"

// lookEnv has systemd-analyze find what generators have made, too. It ends with
// a colon, which stands for the folders where it looks anyway.
var lookEnv = []string{
	"SYSTEMD_UNIT_PATH=/run/systemd/generator.early:/run/systemd/generator:/run/systemd/generator.late:",
	"SYSTEMD_LOG_LEVEL=warning", "SYSTEMD_COLORS=0",
}

// lay puts the units of the spec into the scratch folder.
func (c *Controller) lay(spec *schema.Spec, states []State, texts map[string]string, made map[string]bool, p Plan) error {
	if err := os.RemoveAll(c.scratch); err != nil {
		return err
	}
	comes := func(program string) bool { return p.NewOS || spec.Files[program] != nil }
	all := map[string]string{}
	for at, text := range texts {
		all[strings.TrimPrefix(at, folder+"/")] = text
	}
	for _, s := range states {
		if u := spec.Units[s.Name]; u == nil || u.IsSet() || s.Fragment == "" || isTemplate(s.Name) {
			continue // only a unit that gets drop-ins alone is copied
		}
		data, err := c.root.ReadFile(s.Fragment, maxCopied)
		if err == nil {
			all[s.Name] = string(data)
		}
	}
	for name := range made {
		if all[name] == "" {
			all[name] = stub
		}
	}
	for name, text := range all {
		to := filepath.Join(c.scratch, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(runnable(text, comes)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// execLine is a line of a unit that runs a program by its path.
var execLine = regexp.MustCompile(`(?m)^(\s*Exec[A-Za-z]+\s*=\s*[-@:+!|]*)(/[^\s;]+)`)

// runnable puts a program that is there in the place of those that come with
// the update and are not there yet.
func runnable(text string, comes func(program string) bool) string {
	return execLine.ReplaceAllStringFunc(text, func(line string) string {
		if m := execLine.FindStringSubmatch(line); comes(path.Clean(m[2])) {
			return m[1] + "/bin/sh"
		}
		return line
	})
}

func (c *Controller) analyze(ctx context.Context, name string) error {
	_, err := hooks.Command(ctx, []string{"systemd-analyze", "verify", "--man=no", filepath.Join(c.scratch, name)}, "/", lookEnv, verifyLimit)
	if err == nil {
		return nil
	}
	var exit *hooks.Exit
	if !errors.As(err, &exit) || exit.Timeout || exit.Signal != "" {
		return failed(name, err)
	}
	said := about(name, strings.ReplaceAll(exit.Output, c.scratch+"/", ""))
	return &failure.Error{Class: schema.ClassPermanent, Component: component, Element: name, Output: said, Err: errors.New("systemd-analyze finds it broken")}
}

// about keeps the lines that speak of a unit, where there are any: others may
// have been found odd beside it.
func about(name, text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, name) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return text
	}
	return strings.Join(lines, "\n")
}
