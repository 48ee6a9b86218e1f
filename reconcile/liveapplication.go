package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// LiveApplication is a set of quadlet files, or a compose file, as a spec would
// have to write it.
type LiveApplication struct {
	Name    string
	Compose *LiveCompose         // nil = it is of quadlets, as all that follows
	Folder  string               // as a spec has it
	Files   map[string]*LiveFile // its quadlet files, by name
	Beside  []*LiveFile          // what stands in its own folder, or is named by a .kube file
	Pods    []string             // paths of the files beside that .kube files name
}

// Application reads the files of an application: its quadlets or, where from is
// an absolute path, or where no quadlets are called as it is and containers of a
// project are, its compose file.
func (l *Live) Application(ctx context.Context, name, from string) (*LiveApplication, error) {
	app := &LiveApplication{Name: name}
	var none error
	if !path.IsAbs(from) {
		if app, none = l.quadlets(name, from); from != "" || !errors.Is(none, errNoQuadlets) {
			return app, none
		}
		app = &LiveApplication{Name: name}
	}
	var err error
	if app.Compose, err = l.readCompose(ctx, name, from); errors.Is(err, errNoProject) {
		err = fmt.Errorf("%w; %w", none, err)
	}
	return app, err
}

// errNoQuadlets: nothing is called as the application.
var errNoQuadlets = errors.New("NAME=FILE and NAME=FOLDER say where else they are")

// quadlets reads the quadlet files of an application. from is the folder that
// they are in, or that file in the folder of all quadlets which is to be taken
// with those that it names; "" = whichever is called as the application.
func (l *Live) quadlets(name, from string) (*LiveApplication, error) {
	from = cmp.Or(from, name)
	app := &LiveApplication{Name: name, Files: map[string]*LiveFile{}}
	if !schema.IsQuadlet(from) {
		if from != name {
			app.Folder = from
		}
		if err := l.readFolder(app, from); err != nil {
			return nil, err
		}
	}
	if len(app.Files) == 0 {
		app.Folder = "."
		if err := l.readFlat(app, from); err != nil {
			return nil, err
		}
	}
	if err := l.readPods(app); err != nil {
		return nil, err
	}
	as := &schema.Application{Folder: app.Folder, Quadlet: map[string]*schema.Content{}}
	for file := range app.Files {
		as.Quadlet[file] = nil
	}
	if why := schema.QuadletProblem(name, as); why != "" {
		return nil, errors.New(why)
	}
	return app, nil
}

// readFolder reads all that is in a folder of an application's own.
func (l *Live) readFolder(app *LiveApplication, name string) error {
	if why := schema.QuadletProblem(app.Name, &schema.Application{Folder: name}); why != "" {
		return errors.New(why)
	}
	folder := schema.QuadletFolder(name, "")
	entries, err := l.list(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := path.Join(folder, e.Name())
		if of, isDropIns := strings.CutSuffix(e.Name(), ".d"); e.IsDir() && isDropIns && schema.IsQuadlet(of) {
			if err := l.readDropIns(app, folder, of); err != nil {
				return err
			}
			continue
		}
		f, err := l.File(at)
		switch {
		case err != nil:
			return err
		case !schema.IsQuadlet(e.Name()):
			app.Beside = append(app.Beside, f)
			continue
		}
		app.Files[e.Name()] = f
		if above := schema.QuadletFolder("", ".") + "/" + e.Name(); l.there(above) {
			return fmt.Errorf("podman reads %s instead of %s; remove the one that is not needed", above, at)
		}
	}
	return nil
}

// readPods reads the documents that .kube files name, wherever they are.
func (l *Live) readPods(app *LiveApplication) error {
	for _, file := range slices.Sorted(maps.Keys(app.Files)) {
		if path.Ext(file) != ".kube" {
			continue
		}
		docs, err := schema.KubeDocuments(schema.QuadletFolder(app.Name, app.Folder), app.Files[file].Data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, d := range docs {
			app.Pods = append(app.Pods, d)
			if slices.ContainsFunc(app.Beside, func(f *LiveFile) bool { return f.Path == d }) {
				continue
			}
			f, err := l.File(d)
			if err != nil {
				return err
			}
			app.Beside = append(app.Beside, f)
		}
	}
	return nil
}

func (l *Live) there(p string) bool {
	_, err := l.root.Lstat(p)
	return err == nil
}

// readFlat reads from the folder of all quadlets those that are called as
// begin, those that they name, and the containers of their pods.
func (l *Live) readFlat(app *LiveApplication, begin string) error {
	folder := schema.QuadletFolder("", ".")
	entries, err := l.list(folder)
	if err != nil {
		return err
	}
	var rest, next []string
	for _, e := range entries {
		switch file := e.Name(); {
		case !schema.IsQuadlet(file) || e.IsDir():
		case file == begin, strings.TrimSuffix(file, path.Ext(file)) == begin:
			next = append(next, file)
		default:
			rest = append(rest, file)
		}
	}
	if len(next) == 0 {
		return fmt.Errorf("%s has neither a folder %s with quadlet files nor one of that name; %w", folder, begin, errNoQuadlets)
	}
	for len(next) > 0 {
		for _, file := range next {
			f, err := l.File(path.Join(folder, file))
			if err != nil {
				return err
			}
			app.Files[file] = f
			if err := l.readDropIns(app, folder, file); err != nil {
				return err
			}
		}
		next = nil
		rest = slices.DeleteFunc(rest, func(file string) bool {
			belongs := app.Names(file) || l.joins(app, path.Join(folder, file))
			if belongs {
				next = append(next, file)
			}
			return belongs
		})
	}
	return nil
}

// readDropIns reads what is added to a quadlet file beside it.
func (l *Live) readDropIns(app *LiveApplication, folder, file string) error {
	entries, err := l.list(path.Join(folder, file+".d"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := file + ".d/" + e.Name()
		if !strings.HasSuffix(name, ".conf") {
			continue // podman does not read it
		}
		if app.Files[name], err = l.File(path.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// Names says whether one of an application's files names another file.
func (app *LiveApplication) Names(file string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(app.Files)), func(f *LiveFile) bool { return f.Mentions(file) })
}

// joins says whether a file is of a container in a pod of the application.
func (l *Live) joins(app *LiveApplication, at string) bool {
	if path.Ext(at) != ".container" {
		return false
	}
	f, err := l.File(at)
	return err == nil && slices.ContainsFunc(slices.Collect(maps.Keys(app.Files)), func(file string) bool {
		return path.Ext(file) == ".pod" && f.Mentions(file)
	})
}
