package schema

import "fmt"

// fullPercent is all of a disk or of a memory; a load may be more.
const fullPercent = 100

// resourceFindings are monitors that can never tell what they are there for.
func resourceFindings(spec map[string]any, at string) []finding {
	var found []finding
	resources, _ := spec["resources"].(map[string]any)
	monitors, _ := resources["monitors"].(map[string]any)
	for _, name := range sortedKeys(monitors) {
		m, _ := monitors[name].(map[string]any)
		of, _ := m["of"].(string)
		add := func(field, msg, hint string) {
			found = append(found, finding{pointer: at + "/resources/monitors/" + escapePointer(name) + "/" + field, rule: ruleMonitor, msg: msg, hint: hint})
		}
		if m["path"] != nil && of != "" && of != MonitorDisk {
			add("path", fmt.Sprintf("the %s of a device has no path", of), "remove it")
		}
		warning, hasWarning := m["warning"].(int64)
		critical, hasCritical := m["critical"].(int64)
		if hasWarning && hasCritical && warning > critical {
			add("warning", fmt.Sprintf("the warning at %d%% would come after the critical level at %d%%", warning, critical), "exchange them")
		}
		for field, percent := range map[string]int64{"warning": warning, "critical": critical} {
			if percent > fullPercent && of != "" && of != MonitorLoad {
				add(field, fmt.Sprintf("more than %d%% of a %s is never in use", fullPercent, of), "")
			}
		}
	}
	return found
}

// quantitiesOf gives the sizes that a spec asks for, by field.
func quantitiesOf(r *Resources) map[string]string {
	sizes := map[string]string{}
	if r != nil && r.Disk != nil && r.Disk.MinFree != "" {
		sizes["disk/minFree"] = r.Disk.MinFree
	}
	if r != nil && r.Memory != nil && r.Memory.MinAvailable != "" {
		sizes["memory/minAvailable"] = r.Memory.MinAvailable
	}
	return sizes
}

// completeResources looks for what only a whole spec has to have.
func completeResources(spec map[string]any, at string) []finding {
	var found []finding
	resources, _ := spec["resources"].(map[string]any)
	lacks := func(entry any, where, name, field string) {
		if m, ok := entry.(map[string]any); ok && m[field] == nil {
			found = append(found, finding{pointer: at + "/resources/" + where, rule: ruleIncomplete, msg: name + " has no " + field, hint: "set " + field})
		}
	}
	lacks(resources["disk"], "disk", "disk", "minFree")
	lacks(resources["memory"], "memory", "memory", "minAvailable")
	monitors, _ := resources["monitors"].(map[string]any)
	for _, name := range sortedKeys(monitors) {
		lacks(monitors[name], "monitors/"+escapePointer(name), "the monitor "+quote(name), "of")
	}
	return found
}
