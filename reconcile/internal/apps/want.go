package apps

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

const component = "applications"

// Files gives the files that the applications of a spec need, by path.
func Files(spec *schema.Spec) map[string]*schema.File {
	files := map[string]*schema.File{}
	for name, app := range spec.Applications {
		if app == nil {
			continue
		}
		if app.Compose != nil {
			maps.Copy(files, composeFiles(name, app))
		}
		for file, c := range app.Quadlet {
			if c == nil {
				c = &schema.Content{}
			}
			files[schema.QuadletFolder(name, app.Folder)+"/"+file] = &schema.File{Content: c.Content, ContentBase64: c.ContentBase64, Payload: c.Payload}
		}
	}
	return files
}

// want is one application as a spec wants it.
type want struct {
	name   string
	folder string            // of its files
	hash   string            // of all that goes into it
	files  map[string][]byte // by file name
	docs   map[string][]byte // the documents of pods that they name, by path
	images []string          // that it has pulled, in the order of its files
	made   []string          // the networks and volumes that its compose file makes
	needed []string          // and those that it only names
	units  []unit            // that its files make; of quadlets only where they were asked for
	health *schema.Health
}

// has says whether a path is one of its files, or of a document that they name.
func (w *want) has(p string) bool {
	file, below := strings.CutPrefix(p, w.folder+"/")
	return below && w.files[file] != nil || w.docs[p] != nil
}

// stands says whether all of its files are on the device as they are wanted.
func (c *Controller) stands(w *want) bool {
	same := func(p string, want []byte) bool {
		is, err := c.Root.ReadFile(p, int64(len(want)))
		return err == nil && bytes.Equal(is, want)
	}
	for file, data := range w.files {
		if !same(w.folder+"/"+file, data) {
			return false
		}
	}
	for p, data := range w.docs {
		if !same(p, data) {
			return false
		}
	}
	return true
}

// wants reads the applications of a spec, by name.
func wants(spec *schema.Spec, p Payloads) ([]*want, error) {
	var all []*want
	var errs []error
	if spec == nil {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Applications)) {
		w, err := wantOf(spec, name, p)
		if errs = append(errs, err); w != nil {
			all = append(all, w)
		}
	}
	return all, failure.Join(errs...)
}

// wantOf reads one application of a spec.
func wantOf(spec *schema.Spec, name string, p Payloads) (*want, error) {
	app := spec.Applications[name]
	if app == nil || (len(app.Quadlet) > 0) == (app.Compose != nil) {
		return nil, failure.Permanent(component, name, "it has to have either quadlet files or a compose file to run")
	}
	if app.Compose != nil {
		return composeOf(name, app, p)
	}
	if why := schema.QuadletProblem(name, app); why != "" {
		return nil, failure.Permanent(component, name, "%s", why)
	}
	w := &want{name: name, folder: schema.QuadletFolder(name, app.Folder), files: map[string][]byte{}, docs: map[string][]byte{}, health: app.Health}
	var errs []error
	sum := sha256.New()
	if app.Folder != "" { // what its files name by relative paths is elsewhere then
		fmt.Fprintf(sum, "%s\n", w.folder)
	}
	for _, file := range slices.Sorted(maps.Keys(app.Quadlet)) {
		data, err := content(app.Quadlet[file], p)
		if err != nil {
			errs = append(errs, within(err, name, file))
			continue
		}
		w.files[file] = data
		w.add(sum, file, data)
	}
	for _, file := range slices.Sorted(maps.Keys(w.files)) {
		if _, isDropIn := schema.QuadletOf(file); isDropIn {
			continue
		}
		texts := schema.QuadletTexts(file, w.files)
		w.pulls(schema.QuadletImage(file, texts...))
		if path.Ext(file) == ".kube" {
			errs = append(errs, w.addPods(sum, spec, file, texts, p))
		}
	}
	w.hash = hex.EncodeToString(sum.Sum(nil))
	return w, failure.Join(errs...)
}

// add takes in one of the files that an application is made of.
func (w *want) add(sum io.Writer, file string, data []byte) {
	fmt.Fprintf(sum, "%d %s %d\n%s", len(file), file, len(data), data)
}

func (w *want) pulls(images ...string) {
	for _, image := range images {
		if image != "" && !slices.Contains(w.images, image) {
			w.images = append(w.images, image)
		}
	}
}

// addPods takes in the documents that a .kube file names, which stand among the
// files of the spec.
func (w *want) addPods(sum io.Writer, spec *schema.Spec, file string, texts [][]byte, p Payloads) error {
	docs, err := schema.KubeDocuments(w.folder, texts...)
	if err != nil {
		return within(err, w.name, file)
	}
	for _, d := range docs {
		f := spec.Files[d]
		if f == nil {
			return within(fmt.Errorf("the spec has no file %s, so that the images of its pods are not known", d), w.name, file)
		}
		data, err := content(&schema.Content{Content: f.Content, ContentBase64: f.ContentBase64, Payload: f.Payload}, p)
		if err != nil {
			return within(err, w.name, d)
		}
		images, err := schema.KubeImages(data)
		if err != nil {
			return within(err, w.name, d)
		}
		w.docs[d] = data
		w.add(sum, d, data)
		w.pulls(images...)
	}
	return nil
}

func within(err error, name, file string) error {
	var f *failure.Error
	if errors.As(err, &f) {
		return err
	}
	return failure.Permanent(component, name, "%s: %w", file, err)
}

func content(c *schema.Content, p Payloads) ([]byte, error) {
	switch {
	case c == nil:
	case c.Content != nil:
		return []byte(*c.Content), nil
	case c.ContentBase64 != nil:
		return base64.StdEncoding.DecodeString(*c.ContentBase64)
	case c.Payload != "" && p != nil:
		return p(c.Payload)
	}
	return nil, errors.New("it has no content")
}

// Units are those that the applications of a spec make, by their name, as far as
// their files can be read.
func Units(spec *schema.Spec, p Payloads) map[string]bool {
	made := map[string]bool{}
	for name, app := range spec.Applications {
		if app == nil {
			continue
		}
		if app.Compose != nil {
			made[schema.ComposeUnit(name)] = true
		}
		files := map[string][]byte{}
		for file, c := range app.Quadlet {
			files[file], _ = content(c, p) // what cannot be read is told where it is needed
		}
		for file := range files {
			if _, isDropIn := schema.QuadletOf(file); !isDropIn {
				made[schema.QuadletUnit(file, schema.QuadletTexts(file, files)...)] = true
			}
		}
	}
	return made
}

// unit is one that the generator makes of a quadlet file, or the one that runs
// a compose file.
type unit struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // the type of its quadlet file, without the dot, or compose
	// Object is what podman calls the network or pod that the unit makes, or the
	// project that it runs.
	Object string `json:"object,omitempty"`
	// Passive: something else starts it.
	Passive bool `json:"passive,omitempty"`
	// Services are those of a compose file; Grace is the longest time in seconds
	// that one of them asks for to end in.
	Services []service `json:"services,omitempty"`
	Grace    int       `json:"grace,omitempty"`
}

// plan asks the generator which units the applications come to. What it
// refuses, no try can change.
func (c *Controller) plan(ctx context.Context, spec *schema.Spec, p Payloads) ([]*want, error) {
	all, err := wants(spec, p)
	if err != nil || len(all) == 0 {
		return all, err
	}
	byName := map[string]*want{}
	made := map[string]string{}
	var quadlets []*want
	for _, w := range all {
		if len(w.units) > 0 {
			made[w.units[0].Name] = w.name
			continue
		}
		quadlets, byName[w.name] = append(quadlets, w), w
	}
	if len(quadlets) == 0 {
		return all, nil
	}
	out, err := c.generate(ctx, quadlets)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, g := range out {
		w := byName[g.app]
		if w == nil {
			continue
		}
		if other, taken := made[g.Name]; taken {
			errs = append(errs, failure.Permanent(component, w.name, "the unit %s is made by the application %s too", g.Name, other))
		}
		made[g.Name] = w.name
		// A quadlet file may name its unit as it likes.
		if why := schema.UnitProblem(g.Name, &schema.Unit{State: schema.UnitStarted}); why != "" {
			errs = append(errs, failure.Permanent(component, w.name, "the unit %s cannot be made: %s", g.Name, why))
		}
		w.units = append(w.units, g.unit)
	}
	for _, w := range all {
		if len(w.units) == 0 {
			errs = append(errs, failure.Permanent(component, w.name, "podman makes no unit of its files"))
		}
		slices.SortFunc(w.units, func(a, b unit) int { return strings.Compare(a.Name, b.Name) })
	}
	return all, failure.Join(errs...)
}
