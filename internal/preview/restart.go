package preview

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// sectionUnits is the part of a spec with the units of systemd.
const sectionUnits = "units"

// restarts lists the units that start, restart, reload or stop because of a
// change, sorted: those whose own files or state differ, and those that changed
// files name. A unit that does not run on the device is not among those that a
// device really restarts.
func restarts(from, to map[string]any) []string {
	all := map[string]bool{}
	before, _ := from[sectionUnits].(map[string]any)
	after, _ := to[sectionUnits].(map[string]any)
	for _, side := range []map[string]any{before, after} {
		for name := range side {
			if !reflect.DeepEqual(running(before[name]), running(after[name])) {
				all[name] = true
				for other := range after {
					all[other] = all[other] || isInstance(other, name)
				}
			}
		}
	}
	was, _ := from[sectionFiles].(map[string]any)
	is, _ := to[sectionFiles].(map[string]any)
	for _, side := range []map[string]any{was, is} {
		for p, v := range side {
			if reflect.DeepEqual(withoutReaders(was[p]), withoutReaders(is[p])) {
				continue
			}
			for _, name := range readers(v) {
				all[name] = true
			}
		}
	}
	maps.DeleteFunc(all, func(name string, is bool) bool {
		return !is || strings.HasSuffix(strings.TrimSuffix(name, path.Ext(name)), "@")
	})
	return slices.Sorted(maps.Keys(all))
}

// startedUnits are the new units with a file of their own that are to run,
// sorted. One without may be the system's, and run already.
func startedUnits(from, to map[string]any) []string {
	before, _ := from[sectionUnits].(map[string]any)
	after, _ := to[sectionUnits].(map[string]any)
	var list []string
	for name, v := range after {
		unit, _ := v.(map[string]any)
		hasFile := slices.ContainsFunc(contentKeys, func(key string) bool { return unit[key] != nil })
		if before[name] == nil && hasFile && unit["state"] == schema.UnitStarted {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// running is a unit without what its processes do not notice.
func running(unit any) any {
	u, ok := unit.(map[string]any)
	if !ok {
		return nil
	}
	u = maps.Clone(u)
	delete(u, "enabled")
	return u
}

// isInstance says whether a unit is one of a template.
func isInstance(name, template string) bool {
	kind := path.Ext(name)
	prefix, instance, found := strings.Cut(strings.TrimSuffix(name, kind), "@")
	return found && instance != "" && prefix+"@"+kind == template
}

// readers are the units that a file restarts or reloads.
func readers(file any) []string {
	f, _ := file.(map[string]any)
	var names []string
	for _, field := range []string{"restart", "reload"} {
		list, _ := f[field].([]any)
		for _, v := range list {
			if name, ok := v.(string); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// withoutReaders is what stands on the device of a file.
func withoutReaders(file any) map[string]any {
	f, _ := file.(map[string]any)
	f = maps.Clone(f)
	delete(f, "restart")
	delete(f, "reload")
	return f
}
