package schema

// DocumentAt says what document a path of a fleet repository is the place of,
// by the path alone: its kind, "" for none, the name that it must have, and of
// a release the line.
func DocumentAt(path string) (kind Kind, name, line string) {
	where := place(path)
	return where.kind, where.name, where.line
}

// SourcesOf lists the files, from the root of the repository, whose content a
// device's spec is made with beside its documents: those that its release, the
// overlays that select it and its own file name, also where another one has
// the last word. It is nil where the fleet does not have the device, or was
// loaded for its problems only.
func (f *Fleet) SourcesOf(id string) []string {
	state := f.states[f.Member(id)]
	if state == nil {
		return nil
	}
	var paths []string
	for _, layer := range state.layers() {
		for _, s := range layer.sources {
			paths = append(paths, s.path)
		}
	}
	return paths
}
