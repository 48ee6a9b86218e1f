package reconcile

import (
	"maps"

	"github.com/gitopsd/gitopsd/reconcile/internal/apps"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// wholeSet is a spec with the files of all its parts among its files: whatever
// is to stand on the device goes the same way there and back.
func wholeSet(spec *schema.Spec) *schema.Spec {
	more := units.Files(spec)
	ofApps := apps.Files(spec)
	if len(more)+len(ofApps) == 0 {
		return spec
	}
	whole := *spec
	whole.Files = maps.Clone(spec.Files)
	if whole.Files == nil {
		whole.Files = map[string]*schema.File{}
	}
	maps.Copy(whole.Files, more)
	maps.Copy(whole.Files, ofApps)
	return &whole
}
