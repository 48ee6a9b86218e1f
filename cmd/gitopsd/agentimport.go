package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

type importOptions struct {
	files, units, applications []string
	labels                     []string
	device, to                 string
	secrets                    bool
}

func agentImportCommand(a *app) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import --file PATH... --unit NAME... --application NAME...",
		Short: "Write a Device file from what is on this machine",
		Long: `Write a Device file that has this machine as it is: the files that you name with
their content, mode, owner and group; units of systemd by their name, with
their drop-ins and whether they are enabled; and applications by their quadlet
files. What is as its release says already is taken over without being written
or restarted, so whatever could not be that is refused, all of it at once.

The quadlet files of --application web are those of /etc/containers/systemd/web
or, where that is none, web.container and its like in the folder above, with
those that they name. web=FOLDER and web=FILE say where else they are. Where
there are none, it is the compose file of the containers that podman-compose
has made for the project web; web=/PATH names that file, or its folder. The
first release takes these containers over, or is refused; the document says
what it lacks.

Without --to the document is printed, and every content stands in it. With --to,
a folder of a fleet repository, it becomes devices/ID.yaml there, and contents
that are large or no text become files below files/ID. Nothing is overwritten.

What looks like a secret, and what not everybody on the machine may read, is
refused, since all who read the repository would read it; --secrets takes it.`,
		DisableFlagsInUseLine: true,
		Args:                  args(0, 0, ""),
		Example: `  gitopsd agent import --device gw-1 --file /etc/chrony.conf
  gitopsd agent import --to ~/fleet --file /etc/motd --unit edge.service
  gitopsd agent import --to ~/fleet --label site=oslo --unit edge.timer
  gitopsd agent import --application web --application db=my_db.container
  gitopsd agent import --application shop=/opt/shop --to ~/fleet`,
	}
	options := bindLocal(cmd)
	cmd.Flags().StringArrayVar(&o.files, "file", nil, "`path` of a file to have; may be given again")
	cmd.Flags().StringArrayVar(&o.units, "unit", nil, "`name` of a unit of systemd to have; may be given again")
	cmd.Flags().StringArrayVar(&o.applications, "application", nil, "`name` of an application to have, or NAME=FOLDER, or NAME=FILE, or NAME=/PATH; may be given again")
	cmd.Flags().StringArrayVar(&o.labels, "label", nil, "`key=value` of a label of the device; may be given again")
	cmd.Flags().Var((*nonEmpty)(&o.device), "device", "`id` of the device (default that of the agent's configuration)")
	cmd.Flags().Var((*nonEmpty)(&o.to), "to", "`folder` of the fleet repository to write to")
	cmd.Flags().BoolVar(&o.secrets, "secrets", false, "take what looks like a secret, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := options.resolve(a)
		if err != nil {
			return err
		}
		return a.importDevice(cmd.Context(), d, o)
	}
	return cmd
}

func (a *app) importDevice(ctx context.Context, d *device, o importOptions) error {
	if len(o.files)+len(o.units)+len(o.applications) == 0 {
		return withHint(usagef("nothing is named to be imported"), "name files with --file, units with --unit, and applications with --application")
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
	i.read(ctx, live)
	if err := errors.Join(i.refused...); err != nil {
		return permission(err)
	}
	for _, note := range i.notes {
		a.sayln("note: %s", clean(note))
	}
	changes, err := i.changes()
	if err != nil {
		return err
	}
	if err := a.checkImport(changes); err != nil {
		return err
	}
	if o.to == "" {
		_, err := a.out.Write(changes[0].after)
		return err
	}
	return a.writeImport(ctx, o.to, changes)
}

// changes are the new files of an import, the document first.
func (i *imported) changes() ([]fileChange, error) {
	text, err := schema.Encode(&i.doc)
	if err != nil {
		return nil, fmt.Errorf("write the device: %w", err)
	}
	var head []byte
	for _, note := range i.notes {
		head = fmt.Appendf(head, "# %s\n", clean(note))
	}
	text = append(head, text...)
	list := []fileChange{{path: "devices/" + i.options.device + ".yaml", after: text}}
	for _, name := range slices.Sorted(maps.Keys(i.beside)) {
		list = append(list, fileChange{path: name, after: i.beside[name]})
	}
	return list, nil
}

// checkImport refuses a document that no repository could have.
func (a *app) checkImport(changes []fileChange) error {
	loader := schema.Loader{OwnVersion: a.build.Version}
	fleet, err := loader.Load(&changedSource{source: noFiles{}, changes: changes})
	if err != nil {
		return fmt.Errorf("check the device: %w", err)
	}
	var wrong []error
	for _, p := range fleet.Problems {
		if p.Severity == schema.SeverityError {
			wrong = append(wrong, errors.New(problemText(p)))
		}
	}
	return errors.Join(wrong...)
}

// noFiles is a repository without any.
type noFiles struct{}

func (noFiles) Entries() ([]schema.Entry, error)         { return nil, nil }
func (noFiles) Read(schema.Entry, int64) ([]byte, error) { return nil, fs.ErrNotExist }

// writeImport writes the files of an import into a fleet repository, all of
// them or none.
func (a *app) writeImport(ctx context.Context, to string, changes []fileChange) error {
	if err := writeChanges(ctx, to, changes); err != nil {
		if !isFolder(to) {
			return withHint(err, "--to is the folder of a clone of the fleet repository")
		}
		return withHint(err, "without --to the document is printed, to be merged by hand")
	}
	for _, c := range changes {
		a.sayln("wrote %s", clean(c.path))
	}
	a.sayln("next: gitopsd validate %s", shellWord(to))
	return nil
}
