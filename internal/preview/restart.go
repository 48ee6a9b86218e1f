package preview

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// restarts lists the units that start, restart or stop because of a change,
// sorted: those whose own files or state differ, and those that changed files name
// for it. Drop-ins of what the device stands on count from the next boot on. A unit
// that does not run on the device is not among those that a device really restarts.
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
	for _, name := range readers(from, to, "restart") {
		all[name] = true
	}
	maps.DeleteFunc(all, func(name string, is bool) bool {
		return !is || isTemplate(name) || !schema.MayRestart(name)
	})
	return slices.Sorted(maps.Keys(all))
}

// startedUnits are those that were not to run and are, sorted, and the new ones
// with a file of their own. One without may be the system's, and run already.
func startedUnits(from, to map[string]any) []string {
	return unitsThat(from, to, func(name string, unit map[string]any, isNew bool) bool {
		return unit["state"] == schema.UnitStarted && (isNew || isStopped(from, name))
	})
}

// stoppedUnits are those that are not to run any more, sorted.
func stoppedUnits(from, to map[string]any) []string {
	return unitsThat(from, to, func(name string, _ map[string]any, isNew bool) bool {
		return isStopped(to, name) && !isStopped(from, name) && !isNew
	})
}

// unitsThat are those of a spec that something is true of, sorted; isNew are the
// ones that come with it and a file of their own.
func unitsThat(from, to map[string]any, is func(name string, unit map[string]any, isNew bool) bool) []string {
	before, _ := from[sectionUnits].(map[string]any)
	after, _ := to[sectionUnits].(map[string]any)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		unit, _ := after[name].(map[string]any)
		if is(name, unit, before[name] == nil && hasFile(unit)) {
			list = append(list, name)
		}
	}
	return list
}

// isStopped says whether a spec wants a unit not to run.
func isStopped(spec map[string]any, name string) bool {
	units, _ := spec[sectionUnits].(map[string]any)
	unit, _ := units[name].(map[string]any)
	return unit["state"] == schema.UnitStopped || unit["state"] == schema.UnitMasked
}

// droppedUnits are those that are no more, sorted: the ones with a file of their
// own go with it, and the others become what they were before any spec.
func droppedUnits(from, to map[string]any) (removed, putBack []string) {
	before, _ := from[sectionUnits].(map[string]any)
	after, _ := to[sectionUnits].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch unit, _ := before[name].(map[string]any); {
		case after[name] != nil, isTemplate(name):
		case hasFile(unit):
			removed = append(removed, name)
		case unit["state"] != nil || unit["enabled"] != nil: // drop-ins alone go as files do
			putBack = append(putBack, name)
		}
	}
	return removed, putBack
}

// hasFile says whether a spec has the file of a unit, and not only settings.
func hasFile(unit map[string]any) bool {
	return slices.ContainsFunc(contentKeys, func(key string) bool { return unit[key] != nil })
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

// isTemplate says whether a unit is one that only its instances run of.
func isTemplate(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, path.Ext(name)), "@")
}

// isInstance says whether a unit is one of a template.
func isInstance(name, template string) bool {
	kind := path.Ext(name)
	prefix, instance, found := strings.Cut(strings.TrimSuffix(name, kind), "@")
	return found && instance != "" && prefix+"@"+kind == template
}

// readers are the units that changed files name in a field, "restart" or
// "reload", sorted.
func readers(from, to map[string]any, field string) []string {
	was, _ := from[sectionFiles].(map[string]any)
	is, _ := to[sectionFiles].(map[string]any)
	all := map[string]bool{}
	for _, side := range []map[string]any{was, is} {
		for p, v := range side {
			if reflect.DeepEqual(withoutReaders(was[p]), withoutReaders(is[p])) {
				continue
			}
			file, _ := v.(map[string]any)
			list, _ := file[field].([]any)
			for _, v := range list {
				if name, ok := v.(string); ok {
					all[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// withoutReaders is what stands on the device of a file.
func withoutReaders(file any) map[string]any {
	f, _ := file.(map[string]any)
	f = maps.Clone(f)
	delete(f, "restart")
	delete(f, "reload")
	return f
}
