package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/internal/preview"
	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// largestInline is what of a text stands in the document itself, in bytes: more
// is nothing that people read there.
const largestInline = 8 << 10

type importOptions struct {
	files, units []string
	labels       []string
	device, to   string
	secrets      bool
}

func agentImportCommand(a *app) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import --file PATH... --unit NAME...",
		Short: "Write a Device file from what is on this machine",
		Long: `Write a Device file that has this machine as it is: the files that you name with
their content, mode, owner and group, and units of systemd by their name, with
their drop-ins and whether they are enabled. What is as its release says already
is taken over without being written or restarted.

Without --to the document is printed, and every content stands in it. With --to,
a folder of a fleet repository, it becomes devices/ID.yaml there, and contents
that are large or no text become files below files/ID. Nothing is overwritten.

What looks like a secret, and what not everybody on the machine may read, is
refused, since all who read the repository would read it; --secrets takes it.`,
		DisableFlagsInUseLine: true,
		Args:                  args(0, 0, ""),
		Example: `  gitopsd agent import --device gw-1 --file /etc/chrony.conf
  gitopsd agent import --to ~/fleet --file /etc/motd --unit edge.service
  gitopsd agent import --to ~/fleet --label site=oslo --unit edge.timer`,
	}
	options := bindLocal(cmd)
	cmd.Flags().StringArrayVar(&o.files, "file", nil, "`path` of a file to have; may be given again")
	cmd.Flags().StringArrayVar(&o.units, "unit", nil, "`name` of a unit of systemd to have; may be given again")
	cmd.Flags().StringArrayVar(&o.labels, "label", nil, "`key=value` of a label of the device; may be given again")
	cmd.Flags().StringVar(&o.device, "device", "", "`id` of the device (default that of the agent's configuration)")
	cmd.Flags().StringVar(&o.to, "to", "", "`folder` of the fleet repository to write to")
	cmd.Flags().BoolVar(&o.secrets, "secrets", false, "take what looks like a secret, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := options.resolve(a)
		if err != nil {
			return err
		}
		return a.importDevice(d, o)
	}
	return cmd
}

// imported is a Device in the making, and the files beside it.
type imported struct {
	options importOptions
	doc     schema.Device
	beside  map[string][]byte // by path in the repository
	refused []error
}

func (a *app) importDevice(d *device, o importOptions) error {
	if len(o.files)+len(o.units) == 0 {
		return withHint(usagef("nothing is named to be imported"), "name files with --file, and units with --unit")
	}
	o.device = or(o.device, d.state.Device)
	if !deviceID.MatchString(o.device) {
		return withHint(usagef("%q is no device id", o.device), "name the device with --device: at most 63 lower-case letters, digits and dashes inside")
	}
	i := &imported{options: o, beside: map[string][]byte{}, doc: schema.Device{
		TypeMeta: schema.TypeMeta{APIVersion: schema.APIVersion, Kind: schema.KindDevice}, Metadata: schema.Metadata{Name: o.device},
	}}
	for _, l := range o.labels {
		key, value, ok := strings.Cut(l, "=")
		if !ok {
			return usagef("--label %q is not key=value", l)
		}
		if i.doc.Metadata.Labels == nil {
			i.doc.Metadata.Labels = map[string]string{}
		}
		i.doc.Metadata.Labels[key] = value
	}
	live, err := reconcile.OpenLive(d.state)
	if err != nil {
		return permission(err)
	}
	defer live.Close()
	i.read(live)
	if err := errors.Join(i.refused...); err != nil {
		return permission(err)
	}
	text, err := schema.Encode(&i.doc)
	if err != nil {
		return fmt.Errorf("write the device: %w", err)
	}
	if o.to == "" {
		_, err := a.out.Write(text)
		return err
	}
	i.beside["devices/"+o.device+".yaml"] = text
	return a.writeImport(o.to, i)
}

// read takes everything that was named, and notes what cannot be had.
func (i *imported) read(live *reconcile.Live) {
	desired := map[string]any{}
	files := map[string]any{}
	for _, p := range i.options.files {
		f, err := live.File(path.Clean(p))
		if err != nil {
			i.refused = append(i.refused, fmt.Errorf("import %s: %w", p, err))
			continue
		}
		one := i.content(f)
		for name, value := range map[string]string{"mode": f.Mode, "owner": f.Owner, "group": f.Group} {
			if value != "" {
				one[name] = value
			}
		}
		files[f.Path] = one
	}
	units := map[string]any{}
	for _, name := range i.options.units {
		u, err := live.Unit(name)
		if err != nil {
			i.refused = append(i.refused, fmt.Errorf("import %s: %w", name, err))
			continue
		}
		units[name] = i.unit(u)
	}
	if len(files) > 0 {
		desired["files"] = files
	}
	if len(units) > 0 {
		desired["units"] = units
	}
	i.doc.Spec.Desired = desired
}

func (i *imported) unit(u *reconcile.LiveUnit) map[string]any {
	one := map[string]any{}
	if u.Masked {
		one["state"] = "masked"
		return one
	}
	if u.File != nil {
		one = i.content(u.File)
	}
	drops := map[string]any{}
	for name, f := range u.DropIns {
		drops[name] = i.content(f)
	}
	if len(drops) > 0 {
		one["dropIns"] = drops
	}
	if u.Enabled {
		one["enabled"] = true
	}
	if len(one) == 0 {
		i.refused = append(i.refused, fmt.Errorf("import %s: /etc/systemd/system has neither its file nor a drop-in, and nothing wants it: there is nothing of it to write down", u.Name))
	}
	return one
}

// content is a file's content as a spec writes it.
func (i *imported) content(f *reconcile.LiveFile) map[string]any {
	text := utf8.Valid(f.Data) && bytes.IndexByte(f.Data, 0) < 0
	if !i.options.secrets {
		why := ""
		if !f.Shown {
			why = "not everybody on this machine may read it"
		} else if text {
			why = preview.LooksSecret(f.Path, string(f.Data))
		} else {
			why = preview.LooksSecret(f.Path, "")
		}
		if why != "" {
			i.refused = append(i.refused, withHint(fmt.Errorf("import %s: %s, and all who read the repository would", f.Path, why), "leave secrets on the device; --secrets takes it all the same"))
		}
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

// writeImport writes the files of an import into a fleet repository, all of
// them or none; the one that people read comes last.
func (a *app) writeImport(to string, i *imported) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return withHint(err, "--to is the folder of a clone of the fleet repository")
	}
	defer root.Close()
	names := slices.Sorted(maps.Keys(i.beside))
	for _, name := range names {
		if _, err := root.Lstat(filepath.FromSlash(name)); !errors.Is(err, fs.ErrNotExist) {
			return withHint(fmt.Errorf("%s exists already in %s; nothing was written", name, to), "without --to the document is printed, to be merged by hand")
		}
	}
	device := "devices/" + i.options.device + ".yaml"
	for _, name := range names {
		if name != device {
			err = errors.Join(err, writeImported(root, name, i.beside[name]))
		}
	}
	if err = errors.Join(err, writeImported(root, device, i.beside[device])); err != nil {
		return err
	}
	for _, name := range names {
		a.sayln("wrote %s", clean(name))
	}
	a.sayln("next: gitopsd validate %s", shellWord(to))
	return nil
}

func writeImported(root *os.Root, name string, data []byte) error {
	name = filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
