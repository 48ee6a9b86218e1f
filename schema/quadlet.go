package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// QuadletImage is the image that a quadlet file with its drop-ins, in their
// order, has pulled, or "". Left out is one that another quadlet makes (x.image,
// x.build), and a name that only systemd or a template fills in. Those of a
// .kube file stand in its documents ([KubeDocuments]).
func QuadletImage(name string, texts ...[]byte) string {
	section := quadletSection(name)
	if !slices.Contains([]string{"Container", "Image", "Volume"}, section) {
		return ""
	}
	v := lastValue(texts, section, "Image")
	switch ext := path.Ext(v); {
	case v == "", ext == ".image", ext == ".build", strings.ContainsAny(v, "%${} \t"), v[0] == '-':
		return ""
	case section == "Volume" && strings.HasPrefix(v, "/"):
		return ""
	}
	return v
}

// lastValue is that of a key which counts: of one file after the other, the last.
func lastValue(texts [][]byte, section, key string) string {
	last := ""
	for _, text := range texts {
		if all := iniValues(string(text), section, key); len(all) > 0 {
			last = all[len(all)-1]
		}
	}
	return last
}

// allValues are those of a key that may stand there several times: an empty one
// takes away those before it.
func allValues(texts [][]byte, section, key string) []string {
	var values []string
	for _, text := range texts {
		for _, v := range iniValues(string(text), section, key) {
			if values = append(values, v); v == "" {
				values = nil
			}
		}
	}
	return values
}

// unpinned is the image of a quadlet file or of a drop-in if it has neither a
// tag nor a digest, or "".
func unpinned(name, text string) string {
	file, _ := QuadletOf(name)
	if image := QuadletImage(file, []byte(text)); withoutTag(image) {
		return image
	}
	return ""
}

func withoutTag(image string) bool {
	return image != "" && !strings.ContainsAny(image[strings.LastIndexByte(image, '/')+1:], ":@")
}

func imageFinding(image, at string) finding {
	return finding{pointer: at, rule: ruleImage, warning: true,
		msg: fmt.Sprintf("the image %s has neither a tag nor a digest", quote(image)), hint: "name a tag, or better a digest (image@sha256:…), which is the same everywhere and always"}
}
