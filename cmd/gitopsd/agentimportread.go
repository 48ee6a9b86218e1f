package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// largestInline is what of a text stands in the document itself, in bytes: more
// is nothing that people read there.
const largestInline = 8 << 10

// imported is a Device in the making, and the files beside it.
type imported struct {
	options importOptions
	doc     schema.Device
	beside  map[string][]byte // by path in the repository
	refused []error
	notes   []string // of what is there and not in the document
}

// read takes everything that was named, and notes what cannot be had.
func (i *imported) read(ctx context.Context, live *reconcile.Live) {
	files := map[string]any{}
	for _, p := range i.options.files {
		if f, err := live.File(path.Clean(p)); err != nil {
			i.refuse(p, err)
		} else {
			files[f.Path] = i.file(f)
		}
	}
	units := map[string]any{}
	for _, name := range i.options.units {
		if u, err := live.Unit(name); err != nil {
			i.refuse(name, err)
		} else {
			units[name] = i.unit(u)
		}
	}
	applications, taken := map[string]any{}, map[string]string{}
	for _, arg := range i.options.applications {
		name, from, _ := strings.Cut(arg, "=")
		app, err := live.Application(ctx, name, from)
		if err != nil {
			i.refuse("application "+name, err)
			continue
		}
		if app.Compose != nil {
			applications[name] = map[string]any{"compose": i.compose(name, app.Compose)}
			continue
		}
		quadlets := i.quadlets(app, taken)
		one := map[string]any{"quadlet": quadlets}
		if app.Folder != "" {
			one["folder"] = app.Folder
		}
		applications[name] = one
		for _, f := range app.Beside {
			entry := i.file(f)
			if readers := readersOf(app, f); len(readers) > 0 && !slices.Contains(app.Pods, f.Path) {
				entry["restart"] = readers
			}
			files[f.Path] = entry
		}
	}
	desired := map[string]any{}
	for field, part := range map[string]map[string]any{"files": files, "units": units, "applications": applications} {
		if len(part) > 0 {
			desired[field] = part
		}
	}
	i.doc.Spec.Desired = desired
}

func (i *imported) refuse(what string, err error) {
	i.refused = append(i.refused, fmt.Errorf("import %s: %w", what, err))
}

// file is a file as a spec writes it.
func (i *imported) file(f *reconcile.LiveFile) map[string]any {
	one := i.content(f)
	for name, value := range map[string]string{"mode": f.Mode, "owner": f.Owner, "group": f.Group} {
		if value != "" {
			one[name] = value
		}
	}
	return one
}

// plain is what has the mode and owner that a spec gives to all of its kind.
func (i *imported) plain(f *reconcile.LiveFile) map[string]any {
	if f.Mode != "" || f.Owner != "" || f.Group != "" {
		i.refused = append(i.refused, withHint(fmt.Errorf("import %s: its mode, owner or group is not that which a spec gives such files, so that it would be changed, and what runs with it be restarted", f.Path),
			"chmod 644 and chown root:root do it before, and nothing that runs notices"))
	}
	return i.content(f)
}

func (i *imported) unit(u *reconcile.LiveUnit) map[string]any {
	one := map[string]any{}
	if u.Masked {
		one["state"] = "masked"
		return one
	}
	if u.File != nil {
		one = i.plain(u.File)
	}
	drops := map[string]any{}
	for name, f := range u.DropIns {
		drops[name] = i.plain(f)
	}
	if len(drops) > 0 {
		one["dropIns"] = drops
	}
	if u.Enabled {
		one["enabled"] = true
	}
	switch {
	case u.ByHand != "":
		i.notes = append(i.notes, fmt.Sprintf("%s is no part of the document, because nothing in the [Install] section of %s asks for it; it stays as it is", u.ByHand, u.Name))
	case len(one) == 0:
		i.refuse(u.Name, errors.New("/etc/systemd/system has neither its file nor a drop-in, and no link that its file asks for: there is nothing of it to write down"))
	}
	return one
}

// quadlets are the files of an application that no earlier one has taken:
// applications may share a network, and a file stands in one of them.
func (i *imported) quadlets(app *reconcile.LiveApplication, taken map[string]string) map[string]any {
	all := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(app.Files)) {
		f := app.Files[name]
		if other := taken[f.Path]; other != "" {
			i.notes = append(i.notes, fmt.Sprintf("%s is in the application %s, and %s shares it", f.Path, other, app.Name))
			continue
		}
		taken[f.Path] = app.Name
		all[name] = i.plain(f)
	}
	return all
}

// compose is a compose file as a spec writes it, with what a release may not
// take over of the project that runs.
func (i *imported) compose(name string, c *reconcile.LiveCompose) map[string]any {
	one, variables := i.content(c.File), "env"
	if c.Env != nil { // and a release has them in one place
		variables = "envFile"
		one[variables] = i.content(c.Env)
	}
	if c.Runs {
		i.notes = append(i.notes, fmt.Sprintf("the containers of the project %s are taken over where podman-compose would make them in no other way, which gitopsd agent diff says; otherwise the first release is refused until they are removed", name))
	} else {
		i.notes = append(i.notes, fmt.Sprintf("no containers of a project %s are here: what runs from %s by docker, or under another name, goes on beside the application, with other volumes, until somebody ends it", name, c.File.Path))
	}
	i.notes = append(i.notes,
		fmt.Sprintf("what starts the project %s with the machine now, such as a unit of systemd, is not in the document: disable it when the first release is there, without stopping it", name),
		fmt.Sprintf("variables of %s that came from the environment of a shell are not in the document; those that it needs belong into %s", c.File.Path, variables))
	return one
}

// readersOf are the units of an application whose quadlet files name a file.
func readersOf(app *reconcile.LiveApplication, f *reconcile.LiveFile) []any {
	var units []any
	for _, name := range slices.Sorted(maps.Keys(app.Files)) {
		if q := app.Files[name]; q.Mentions(path.Base(f.Path)) {
			units = append(units, schema.QuadletUnit(name, q.Data))
		}
	}
	return units
}

// content is a file's content as a spec writes it.
func (i *imported) content(f *reconcile.LiveFile) map[string]any {
	text := utf8.Valid(f.Data) && bytes.IndexByte(f.Data, 0) < 0
	shown := ""
	if text {
		shown = string(f.Data)
	}
	why := preview.LooksSecret(f.Path, shown)
	if !f.Shown {
		why = "not everybody on this machine may read it"
	}
	switch {
	case why == "":
	case i.options.secrets:
		i.notes = append(i.notes, fmt.Sprintf("%s: %s, and all who can read the repository will; give it another secret if that is not meant", f.Path, why))
	default:
		i.refused = append(i.refused, withHint(fmt.Errorf("import %s: %s, and all who read the repository would", f.Path, why),
			"make it the secret of a file with gitopsd secret encrypt, or leave it in a file of the device, and name its path where it is needed (EnvironmentFile=, env_file); --secrets takes it all the same"))
	}
	switch {
	case text && (len(f.Data) <= largestInline || i.options.to == ""):
		return map[string]any{"content": string(f.Data)}
	case i.options.to == "":
		return map[string]any{"contentBase64": base64.StdEncoding.EncodeToString(f.Data)}
	}
	source := "files/" + i.options.device + f.Path
	i.beside[source] = f.Data
	return map[string]any{"source": source}
}
