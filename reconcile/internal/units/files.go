package units

import (
	"path"
	"strings"

	"github.com/gitopsd/gitopsd/schema"
)

// folder is where the files of a spec's units are; it comes before those of
// packages and of the image.
const folder = "/etc/systemd/system"

// unitFolders are where systemd finds units, first those that come first.
var unitFolders = []string{folder, "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// readFolders are those of which systemd has to read anew what changes in or
// below them.
var readFolders = append([]string{"/etc/systemd/system.conf.d"}, unitFolders...)

// Files gives the files that the units of a spec are made of, by path.
func Files(spec *schema.Spec) map[string]*schema.File {
	files := map[string]*schema.File{}
	if spec == nil {
		return files
	}
	for name, u := range spec.Units {
		if u == nil {
			continue
		}
		if u.IsSet() {
			files[filePath(name)] = fileOf(&u.Body)
		}
		for d, b := range u.DropIns {
			if b != nil {
				files[dropInPath(name, d)] = fileOf(b)
			}
		}
	}
	return files
}

func filePath(name string) string           { return folder + "/" + name }
func dropInPath(name, dropIn string) string { return folder + "/" + name + ".d/" + dropIn + ".conf" }

func fileOf(b *schema.Body) *schema.File {
	return &schema.File{Content: b.Content, ContentBase64: b.ContentBase64, Payload: b.Payload}
}

// unitOf is the name of the unit that a file belongs to, "" for any other file.
func unitOf(p string) string {
	rest, below := strings.CutPrefix(p, folder+"/")
	if !below {
		return ""
	}
	switch dir, file, nested := strings.Cut(rest, "/"); {
	case !nested && path.Ext(rest) != ".d":
		return rest
	case nested && strings.HasSuffix(dir, ".d") && strings.HasSuffix(file, ".conf"):
		return strings.TrimSuffix(dir, ".d")
	}
	return ""
}

// concerns says whether a file of one unit makes another one too: that of a
// template is every instance's.
func concerns(fileOf, name string) bool {
	return fileOf == name || (isTemplate(fileOf) && templateOf(name) == fileOf)
}

// templateOf is the template of an instance, "" for any other name.
func templateOf(name string) string {
	kind := path.Ext(name)
	prefix, instance, found := strings.Cut(strings.TrimSuffix(name, kind), "@")
	if !found || instance == "" {
		return ""
	}
	return prefix + "@" + kind
}

func isTemplate(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, path.Ext(name)), "@")
}

// Sources are where systemd finds the file of a unit, or of the template that it
// is an instance of, in its order.
func Sources(name string) []string {
	var all []string
	for _, n := range []string{name, templateOf(name)} {
		for _, f := range unitFolders {
			if n != "" {
				all = append(all, f+"/"+n)
			}
		}
	}
	return all
}

// read says whether systemd reads a file as a unit or a part of one.
func read(p string) bool {
	for _, f := range readFolders {
		if strings.HasPrefix(p, f+"/") {
			return true
		}
	}
	return false
}
