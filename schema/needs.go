package schema

import (
	"slices"
	"sort"
)

// Needs lists the capabilities that a spec asks of an agent: "agent", "files",
// "files.secret" where one is, "directories", "units" (also of a file that
// restarts one), "hooks", "hooks.if"
// where one has a condition, "requires", "resources.disk" and its
// like, "confirm",
// "onDevice", "onDevice.<mode>" where that is not apply, "os", "os.<driver>" where the spec names one,
// "applications.<kind>". Sorted. A capability is named after its field, so
// a field that this program does not know yet is one too, and no agent is
// given a spec that it would have to refuse.
func Needs(spec map[string]any) []string {
	needs := []string{}
	for field, value := range spec {
		switch v := value.(type) {
		case nil:
			continue
		case map[string]any:
			if field == "resources" {
				for part, wanted := range v {
					if wanted != nil {
						needs = append(needs, "resources."+part)
					}
				}
				continue
			}
			if field == "applications" {
				needs = append(needs, applicationNeeds(v)...)
				continue
			}
			if driver, ok := v["driver"].(string); ok && field == "os" && driver != "" {
				needs = append(needs, "os."+driver)
			}
		}
		needs = append(needs, field)
	}
	files, _ := spec["files"].(map[string]any)
	if changesUnits(files) {
		needs = append(needs, "units")
	}
	if hasSecret(files) {
		needs = append(needs, NeedsSecret)
	}
	if points, _ := spec["hooks"].(map[string]any); hasConditions(points) {
		needs = append(needs, "hooks.if")
	}
	if on, _ := spec["onDevice"].(map[string]any); on != nil {
		// A mode that an agent does not know would be applied.
		if mode, _ := on["mode"].(string); mode != "" && mode != ModeApply {
			needs = append(needs, "onDevice."+mode)
		}
	}
	sort.Strings(needs)
	return slices.Compact(needs)
}

// NeedsObserve is the capability of only comparing a device with its spec.
const NeedsObserve = "onDevice." + ModeObserve

// NeedsSecret is the capability of opening the secrets of a spec.
const NeedsSecret = "files.secret"

func hasSecret(files map[string]any) bool {
	for _, v := range files {
		if file, _ := v.(map[string]any); file["secret"] != nil {
			return true
		}
	}
	return false
}

// changesUnits says whether a file restarts or reloads a unit when it changed.
func changesUnits(files map[string]any) bool {
	for _, v := range files {
		file, _ := v.(map[string]any)
		for _, field := range []string{"restart", "reload"} {
			if names, _ := file[field].([]any); len(names) > 0 {
				return true
			}
		}
	}
	return false
}

// hasConditions says whether a hook does not run at each update.
func hasConditions(points map[string]any) bool {
	for _, point := range points {
		named, _ := point.(map[string]any)
		for _, v := range named {
			if hook, _ := v.(map[string]any); hook["if"] != nil {
				return true
			}
		}
	}
	return false
}
