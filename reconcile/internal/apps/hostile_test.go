package apps

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// hostileNames are what no application, folder or file is called.
var hostileNames = []string{
	"", ".", "..", "/", "../../../../etc/cron.d", "a/../../../../../etc", "a/b", "/etc", "a\nb", "a\x1b[2J", "a\x00b", "-a", "a b", "a%n", "a;b", "$(a)", "a\u202eb", strings.Repeat("a", 300),
}

// What names lead elsewhere, or say more than a name, is refused before anything
// is written for podman's tools to look at.
func TestHostileNames(t *testing.T) {
	text := container("reg/web:1", "")
	content := &schema.Content{Content: &text}
	specs := map[string]*schema.Spec{}
	for _, name := range hostileNames {
		one := func(what, called string, app *schema.Application) {
			specs[what+" "+name] = &schema.Spec{Applications: map[string]*schema.Application{called: app}}
		}
		one("quadlet", name, &schema.Application{Quadlet: map[string]*schema.Content{"web.container": content}})
		one("quadlet in a folder", name, &schema.Application{Folder: "web", Quadlet: map[string]*schema.Content{"web.container": content}})
		one("file", "web", &schema.Application{Quadlet: map[string]*schema.Content{name + ".container": content}})
		one("drop-in", "web", &schema.Application{Quadlet: map[string]*schema.Content{"web.container": content, "web.container.d/" + name + ".conf": content}})
		one("drop-in of", "web", &schema.Application{Quadlet: map[string]*schema.Content{name + ".container.d/a.conf": content}})
		one("compose", name, &schema.Application{Compose: &schema.Compose{Body: schema.Body{Content: composeText("reg/web:1")}}})
		if name != "" && name != "." {
			one("folder", "web", &schema.Application{Folder: name, Quadlet: map[string]*schema.Content{"web.container": content}})
		}
	}
	for what, spec := range specs {
		w := stocked(t)
		err := w.agent().Check(context.Background(), spec, nil)
		if f := failure.From(err); err == nil || f.Class != schema.ClassPermanent {
			t.Errorf("%q: %v", what, err)
		}
		_ = filepath.WalkDir(w.dir, func(p string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				t.Errorf("%q: there is %s", what, p)
			}
			return err
		})
	}
}

func composeText(images ...string) *string {
	text := services(images...)
	return &text
}
