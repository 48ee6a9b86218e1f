package preview

import (
	"path"
	"slices"

	"github.com/gitopsd/gitopsd/schema"
)

// restartedApplications are those that run before and after, and are made of
// something else.
func restartedApplications(from, to map[string]any) []string {
	before, _ := from[sectionApplications].(map[string]any)
	after, _ := to[sectionApplications].(map[string]any)
	var changed []string
	for name, v := range after {
		was, _ := before[name].(map[string]any)
		is, _ := v.(map[string]any)
		if was != nil && is != nil && (!equal(was["quadlet"], is["quadlet"]) || was["folder"] != is["folder"] || !equal(was["compose"], is["compose"]) || podsDiffer(from, to, name, is)) {
			changed = append(changed, "application "+name)
		}
	}
	slices.Sort(changed)
	return changed
}

// startedApplications are those that are new.
func startedApplications(from, to map[string]any) []string {
	before, _ := from[sectionApplications].(map[string]any)
	after, _ := to[sectionApplications].(map[string]any)
	var list []string
	for name := range after {
		if before[name] == nil {
			list = append(list, "application "+name)
		}
	}
	slices.Sort(list)
	return list
}

// droppedApplications are those that are no more.
func droppedApplications(from, to map[string]any) []string { return startedApplications(to, from) }

// podsDiffer says whether a document of an application's pods differs, as far as
// the files that name it can be read.
func podsDiffer(from, to map[string]any, name string, app map[string]any) bool {
	before, _ := from[sectionFiles].(map[string]any)
	after, _ := to[sectionFiles].(map[string]any)
	quadlets, _ := app["quadlet"].(map[string]any)
	for file, v := range quadlets {
		entry, _ := v.(map[string]any)
		text, _ := entry["content"].(string)
		if path.Ext(file) != ".kube" {
			continue
		}
		documents, _ := schema.KubeDocuments(schema.QuadletFolder(name, folderOf(app)), []byte(text)) // what is wrong is refused
		for _, d := range documents {
			if !equal(before[d], after[d]) {
				return true
			}
		}
	}
	return false
}
