package units

import (
	"context"
	"encoding/base64"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// Plan is what is known of an update before it changes anything.
type Plan struct {
	Payloads Payloads
	Ahead    []string // paths that will be different, as [Controller.Prepare] is given
	// NewOS says that another operating system comes with it, and with that
	// programs and units that are not here yet.
	NewOS bool
}

// Check finds what cannot work here, changing nothing: permanent failures. New
// units are looked at by systemd-analyze.
func (c *Controller) Check(ctx context.Context, spec *schema.Spec, p Plan) error {
	if err := possible(spec); err != nil || len(spec.Units) == 0 {
		return err
	}
	return c.with(ctx, func(m Manager) error {
		asked := slices.Sorted(maps.Keys(spec.Units))
		states, err := m.States(ctx, asked...)
		if err != nil {
			return failed("", err)
		}
		texts, err := bodies(spec, p.Payloads)
		errs := []error{err}
		for i := range states {
			if u := spec.Units[states[i].Name]; u != nil {
				errs = append(errs, c.checkOne(spec, u, &states[i], texts, p.NewOS))
			}
		}
		if err := failure.Join(errs...); err != nil {
			return err
		}
		return c.verify(ctx, spec, states, texts, p)
	})
}

// possible refuses what no device can have, whoever has assigned it.
func possible(spec *schema.Spec) error {
	var errs []error
	refuse := func(name, why string) {
		if why != "" {
			errs = append(errs, failure.Permanent(component, name, "%s", why))
		}
	}
	for _, name := range sortedKeys(spec.Units) {
		refuse(name, schema.UnitProblem(name, spec.Units[name]))
	}
	told := notifyOf(spec)
	for _, p := range sortedKeys(told) {
		for _, name := range union(told[p].Restart, told[p].Reload) {
			refuse(name, schema.UnitChangeProblem(name))
		}
	}
	return failure.Join(errs...)
}

func (c *Controller) checkOne(spec *schema.Spec, u *schema.Unit, s *State, texts map[string]string, newOS bool) error {
	name := s.Name
	permanent := func(format string, args ...any) error { return failure.Permanent(component, name, format, args...) }
	wantsEnabled := u.Enabled != nil && *u.Enabled
	switch {
	case s.ID != name && s.Load == "loaded":
		return permanent("it is another name of %s here; name that one", s.ID)
	case u.State == schema.UnitMasked && c.rec.Before[name] == nil && s.Fragment == filePath(name) && !s.Masked():
		return permanent("it cannot be masked: %s stands where the mask would have to", s.Fragment)
	case (wantsEnabled || u.State == schema.UnitStarted) && !u.IsSet() && !newOS && s.maskedForGood():
		return permanent(maskedForGood, s.Fragment)
	case s.Missing() && !s.Masked() && !u.IsSet() && u.State != schema.UnitMasked && !newOS && !brought(spec, name) && !c.made(spec)[name]:
		return permanent("no file makes this unit here, and the spec has none for it")
	case wantsEnabled && u.IsSet() && !installs(name, texts):
		return permanent("it cannot be enabled: %s", noInstall)
	case wantsEnabled && !u.IsSet() && !installs(name, texts) && slices.Contains([]string{"static", "indirect", "generated", "transient"}, s.File):
		return permanent("it cannot be enabled (%s): %s", s.File, noInstall)
	}
	return nil
}

// brought says whether another part of the spec has a unit's file: that of its
// template, or one that is written as a file.
func brought(spec *schema.Spec, name string) bool {
	for _, n := range []string{name, templateOf(name)} {
		if n == "" {
			continue
		}
		if u := spec.Units[n]; u != nil && u.IsSet() {
			return true
		}
		for _, f := range unitFolders {
			if spec.Files[f+"/"+n] != nil {
				return true
			}
		}
	}
	return false
}

// install is a line that asks for a link, in a section of its own.
var install = regexp.MustCompile(`(?m)^\[Install\]\s*(?:\n[^\[].*|\n)*?\n(?:WantedBy|RequiredBy|UpheldBy|Alias)\s*=\s*\S`)

// Installs says whether the text of a unit asks for links, without which it
// cannot be enabled.
func Installs(text string) bool { return install.MatchString(text) }

// installs says whether a unit's file or a drop-in of it asks for links.
func installs(name string, texts map[string]string) bool {
	for p, text := range texts {
		if concerns(unitOf(p), name) && Installs(text) {
			return true
		}
	}
	return false
}

// bodies gives the texts of all files of a spec's units, by path.
func bodies(spec *schema.Spec, payloads Payloads) (map[string]string, error) {
	texts := map[string]string{}
	var errs []error
	for p, f := range Files(spec) {
		switch {
		case f.Content != nil:
			texts[p] = *f.Content
		case f.ContentBase64 != nil:
			data, err := base64.StdEncoding.DecodeString(*f.ContentBase64)
			if err != nil {
				errs = append(errs, failure.Permanent(component, unitOf(p), "contentBase64: %w", err))
			}
			texts[p] = string(data)
		case payloads != nil:
			data, err := payloads(f.Payload)
			if err != nil {
				errs = append(errs, failed(unitOf(p), err))
			}
			texts[p] = string(data)
		}
	}
	for p, text := range texts {
		if strings.ContainsRune(text, 0) {
			errs = append(errs, failure.Permanent(component, unitOf(p), "%s is no text", p))
		}
	}
	return texts, failure.Join(errs...)
}

// Masks are those paths of a spec's units where a mask stands now, which
// [Controller.Prepare] takes away.
func (c *Controller) Masks(spec *schema.Spec) []string {
	var masks []string
	for p := range Files(spec) {
		if info, err := c.root.Lstat(p); err != nil || info.Mode().Type() != fs.ModeSymlink {
			continue
		}
		if to, err := c.root.Readlink(p); err == nil && to == "/dev/null" {
			masks = append(masks, p)
		}
	}
	return masks
}
