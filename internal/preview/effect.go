package preview

import (
	"cmp"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// Points at which hooks run, in their order. The last two only where there is
// a reboot.
var (
	pointsAlways = []string{"beforeUpdating", "afterUpdating"}
	pointsReboot = []string{"beforeUpdating", "afterUpdating", "beforeRebooting", "afterRebooting"}
)

// effectOf is what a device does that goes from one spec to the other.
func effectOf(from, to Side) Effect {
	e := Effect{Hooks: []string{}}
	if e.Observes = observes(to.Spec); e.Observes {
		return e
	}
	e.Applies = observes(from.Spec)
	isRead := !e.Applies && !unknown(from)
	if e.Applies {
		from.Spec = nil // it was only compared with that
	}
	if image := imageOf(to.Spec); image != "" && image != imageOf(from.Spec) {
		e.Reboot = image
	}
	if isRead { // else nobody knows what is new
		e.Starts = append(startedUnits(from.Spec, to.Spec), startedApplications(from.Spec, to.Spec)...)
	}
	e.Stops = stoppedUnits(from.Spec, to.Spec)
	e.Removes, e.PutsBack = droppedUnits(from.Spec, to.Spec)
	otherwise := func(name string) bool {
		return slices.Contains(slices.Concat(e.Starts, e.Restarts, e.Removes, e.PutsBack), name) || isStopped(to.Spec, name)
	}
	e.Restarts = slices.DeleteFunc(restarts(from.Spec, to.Spec), otherwise)
	e.Reloads = slices.DeleteFunc(readers(from.Spec, to.Spec, "reload"), otherwise)
	e.Restarts = append(e.Restarts, restartedApplications(from.Spec, to.Spec)...)
	e.Removes = append(e.Removes, droppedApplications(from.Spec, to.Spec)...)
	e.Restarts = append(e.Restarts, nextAgent(from.Spec, to.Spec)...)
	points := pointsAlways
	if e.Reboot != "" {
		points = pointsReboot
	}
	changed := changedPaths(from.Spec, to.Spec)
	hooks, _ := to.Spec[sectionHooks].(map[string]any)
	for _, point := range points {
		named, _ := hooks[point].(map[string]any)
		names := slices.SortedFunc(maps.Keys(named), func(a, b string) int {
			return cmp.Or(cmp.Compare(orderOf(named[a]), orderOf(named[b])), cmp.Compare(a, b))
		})
		for _, name := range names {
			if due(named[name], changed) {
				e.Hooks = append(e.Hooks, point+"/"+name)
			}
		}
	}
	return e
}

// effect is that of the head's spec on a device.
func (b *before) effect(to Side, again bool) Effect {
	if b.already {
		return Effect{Already: true, Hooks: []string{}}
	}
	e := effectOf(b.side, to)
	e.Again = again
	return e
}

// masked is an effect that may be shown: the image is a template.
func (c *comparison) masked(e Effect) Effect {
	e.Reboot = c.shown("image", e.Reboot)
	return e
}

// runs says whether a device is known to run what the head wants of it.
func (c *comparer) runs(id string, to Side) bool {
	p, known := c.Present[id]
	return known && p.Digest != "" && p.Digest == to.Digest && p.Version == to.Version && !observes(to.Spec)
}

// observes says whether a device is only compared with a spec.
func observes(spec map[string]any) bool {
	return slices.Contains(schema.Needs(spec), schema.NeedsObserve)
}

// isAgain says that a device is updated although its version stays: not where it
// was, or will be, only compared with it.
func (b *before) isAgain(m *schema.Member, to Side) bool {
	from := b.side
	return !b.already && b.policy == m.Policy && from.Spec != nil && from.Version == to.Version && !observes(from.Spec) && !observes(to.Spec)
}

// nextAgent says that the agent goes on as another program.
func nextAgent(from, to map[string]any) []string {
	was, _ := from["agent"].(map[string]any)
	agent, _ := to["agent"].(map[string]any)
	if was["sha256"] == agent["sha256"] && was["payload"] == agent["payload"] {
		return nil
	}
	if version, ok := agent["version"].(string); ok {
		return []string{"the agent as " + clip(mask{}.value("version", version), longestValue)}
	}
	return []string{"the agent of the package"}
}

func imageOf(spec map[string]any) string {
	os, _ := spec[sectionOS].(map[string]any)
	image, _ := os["image"].(string)
	return image
}

// orderOf is the order of a hook; none is 0.
func orderOf(hook any) float64 {
	h, _ := hook.(map[string]any)
	switch n := h["order"].(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	case int:
		return float64(n)
	}
	return 0
}

// downloaded is what one device has to fetch.
type downloaded struct {
	bytes int64
	bound bool // it may have some of it already
}

// download counts the payloads of the head's spec that a device does not have:
// it keeps those of the spec that it runs.
func (c *comparer) download(m *schema.Member, from, to Side) downloaded {
	var d downloaded
	has, known := c.has(m, from)
	for digest, p := range to.Payloads {
		if !has[digest] {
			d.bytes += p.Size
		}
	}
	d.bound = !known && d.bytes > 0
	return d
}

// has lists the payloads of the spec that a device runs, and says whether it
// is known which that is.
func (c *comparer) has(m *schema.Member, from Side) (map[string]bool, bool) {
	if c.Present == nil {
		return payloadsOf(from.Spec), true // as if it were what it should be
	}
	p, seen := c.Present[m.ID]
	switch {
	case !seen || p.Version == "" && p.Digest == "":
		return nil, true // never seen: it has nothing
	case p.Assigned.Spec != nil && p.Assigned.Digest == p.Digest:
		return payloadsOf(p.Assigned.Spec), true
	case from.Spec != nil && from.Digest == p.Digest:
		return payloadsOf(from.Spec), true
	case p.Digest == "" && p.Assigned.Digest == "":
		return nil, true // never assigned: it is what it was before
	}
	return nil, false
}

func payloadsOf(spec map[string]any) map[string]bool {
	has := map[string]bool{}
	for _, digest := range schema.PayloadNames(spec) {
		has[digest] = true
	}
	return has
}

// Where the files lie that an agent makes of the entries of these sections.
var foldersOf = map[string]string{"files": "", "directories": "", "units": "/etc/systemd/system/", sectionApplications: "/etc/containers/systemd/"}

// changedPaths are the places on a device at which two specs differ. A unit and
// an application stand for all files of theirs.
func changedPaths(from, to map[string]any) []string {
	var paths []string
	for section, folder := range foldersOf {
		a, _ := from[section].(map[string]any)
		b, _ := to[section].(map[string]any)
		for _, side := range []map[string]any{a, b} {
			for name := range side {
				if reflect.DeepEqual(a[name], b[name]) {
					continue
				}
				paths = append(paths, path.Join(folder, cmp.Or(folderOf(side[name]), name)))
				if section == sectionApplications { // of which kind it is, and was, does not matter here
					paths = append(paths, schema.ComposeFolder(name))
				}
			}
		}
	}
	return paths
}

// folderOf is the folder that an application names; "" for all else.
func folderOf(entry any) string {
	e, _ := entry.(map[string]any)
	folder, _ := e["folder"].(string)
	return folder
}

// due says whether a hook runs where these paths change.
func due(hook any, changed []string) bool {
	h, _ := hook.(map[string]any)
	condition, _ := h["if"].(map[string]any)
	wanted, _ := condition["changed"].([]any)
	if len(wanted) == 0 {
		return true
	}
	for _, w := range wanted {
		folder, _ := w.(string)
		for _, p := range changed {
			if p == folder || strings.HasPrefix(p, strings.TrimSuffix(folder, "/")+"/") ||
				strings.HasPrefix(folder, p+".d/") || strings.HasPrefix(folder, p+"/") {
				return true
			}
		}
	}
	return false
}
