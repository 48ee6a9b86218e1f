package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// QuadletImages lists the images that a quadlet file has pulled, each once, in
// the order in which they stand. Left out are those that another quadlet
// makes (x.image, x.build), and names that only systemd or a template fills in.
// Those of a .kube file stand in its documents ([KubeDocuments]).
func QuadletImages(name string, text []byte) []string {
	sections := map[string]string{".container": "Container", ".image": "Image", ".volume": "Volume"}
	section := sections[path.Ext(name)]
	if section == "" {
		return nil
	}
	var images []string
	for _, v := range iniValues(string(text), section, "Image") {
		switch ext := path.Ext(v); {
		case v == "", ext == ".image", ext == ".build", strings.ContainsAny(v, "%${} \t"), v[0] == '-':
		case section == "Volume" && strings.HasPrefix(v, "/"):
		case !slices.Contains(images, v):
			images = append(images, v)
		}
	}
	return images
}

// iniValues are the values of a key of a section, in a file of the form of
// systemd.syntax(7): lines that end with a backslash go on in the next one.
func iniValues(text, section, key string) []string {
	var values []string
	in := false
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			next := strings.TrimSpace(lines[i])
			if strings.HasPrefix(next, "#") || strings.HasPrefix(next, ";") {
				continue
			}
			line = strings.TrimSpace(strings.TrimSuffix(line, `\`)) + " " + next
		}
		if strings.HasPrefix(line, "[") {
			in = line == "["+section+"]"
			continue
		}
		if k, v, ok := strings.Cut(line, "="); ok && in && strings.TrimSpace(k) == key {
			values = append(values, strings.Trim(strings.TrimSpace(v), `"`))
		}
	}
	return values
}

// unpinned lists the images of a quadlet file that have neither a tag nor a
// digest.
func unpinned(name, text string) []string {
	return slices.DeleteFunc(QuadletImages(name, []byte(text)), func(image string) bool { return !withoutTag(image) })
}

func withoutTag(image string) bool {
	return !strings.ContainsAny(image[strings.LastIndexByte(image, '/')+1:], ":@")
}

func imageFinding(image, at string) finding {
	return finding{pointer: at, rule: ruleImage, warning: true,
		msg: fmt.Sprintf("the image %s has neither a tag nor a digest", quote(image)), hint: "name a tag, or better a digest (image@sha256:…), which is the same everywhere and always"}
}
