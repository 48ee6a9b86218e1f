package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxKube is the size of a document of pods, in bytes: that of the fleet's own
// documents, and more than a person writes.
const maxKube = maxDocument

// KubeDocuments lists the paths of the documents that a .kube file in a folder,
// with its drop-ins, names. The error says why nobody can know what they hold.
func KubeDocuments(folder string, texts ...[]byte) ([]string, error) {
	var values, paths []string
	for _, text := range texts {
		values = append(values, iniValues(string(text), "Kube", "Yaml")...)
	}
	for _, v := range values {
		switch {
		case v == "":
			continue
		case strings.Contains(v, "{{"):
			return nil, fmt.Errorf("the path of its document, %s, is a template", quote(v))
		case strings.ContainsAny(v, "%$") || strings.Contains(v, "://"):
			return nil, fmt.Errorf("its document %s is no file that a spec has", quote(v))
		case !strings.HasPrefix(v, "/"):
			v = folder + "/" + v
		}
		if v = path.Clean(v); !slices.Contains(paths, v) {
			paths = append(paths, v)
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("it names no document with Yaml=")
	}
	return paths, nil
}

// KubeImages lists the images that the pods of a document have pulled, each
// once, in no order that means something: those of containers and of volumes.
func KubeImages(document []byte) ([]string, error) {
	if len(document) > maxKube {
		return nil, fmt.Errorf("it has more than %d KiB", maxKube>>10)
	}
	var images []string
	for dec := yaml.NewDecoder(bytes.NewReader(document)); ; {
		var one any
		if err := dec.Decode(&one); errors.Is(err, io.EOF) {
			slices.Sort(images)
			return slices.Compact(images), nil
		} else if err != nil {
			return nil, fmt.Errorf("it is no YAML: %w", err)
		}
		for _, image := range podImages(one) {
			if image[0] == '-' || strings.ContainsAny(image, " \t\r\n") {
				return nil, fmt.Errorf("%s is no image", quote(image))
			}
			images = append(images, image)
		}
	}
}

// podImages finds the images of pods wherever a kind of Kubernetes has them.
func podImages(node any) []string {
	var images []string
	switch v := node.(type) {
	case []any:
		for _, item := range v {
			images = append(images, podImages(item)...)
		}
	case map[string]any:
		for key, child := range v {
			items, _ := child.([]any)
			for _, item := range items {
				entry, _ := item.(map[string]any)
				switch key {
				case "volumes":
					entry, _ = entry["image"].(map[string]any)
					entry = map[string]any{"image": entry["reference"], "imagePullPolicy": entry["pullPolicy"]}
				case "containers", "initContainers", "ephemeralContainers":
				default:
					continue
				}
				if image, _ := entry["image"].(string); image != "" && entry["imagePullPolicy"] != "Never" {
					images = append(images, image)
				}
			}
			images = append(images, podImages(child)...)
		}
	}
	return images
}

// kubeFindings tells of documents of pods whose images nobody can know before
// podman starts them, and of those that have no tag.
func (p *pass) kubeFindings(spec map[string]any) ([]finding, error) {
	var found []finding
	applications, _ := spec["applications"].(map[string]any)
	files, _ := spec["files"].(map[string]any)
	for _, name := range sortedKeys(applications) {
		app, _ := applications[name].(map[string]any)
		folder, _ := app["folder"].(string)
		quadlets, _ := app["quadlet"].(map[string]any)
		for _, file := range sortedKeys(quadlets) {
			if path.Ext(file) != ".kube" {
				continue
			}
			at := "/applications/" + escapePointer(name) + "/quadlet/" + escapePointer(file)
			refuse := func(why string) {
				found = append(found, finding{pointer: at, rule: ruleKube, atKey: true,
					msg: fmt.Sprintf("the images of %s cannot be known: %s", quote(file), why), hint: "name the path of a document that stands in files of the same spec"})
			}
			var texts [][]byte
			for _, one := range append([]string{file}, dropInsOf(file, sortedKeys(quadlets))...) {
				text, err := p.textOf(quadlets[one])
				if err != nil {
					return nil, err
				}
				texts = append(texts, text)
			}
			documents, err := KubeDocuments(QuadletFolder(name, folder), texts...)
			if err != nil {
				refuse(err.Error())
			}
			for _, d := range documents {
				entry, _ := files[d].(map[string]any)
				if entry == nil {
					refuse(fmt.Sprintf("the spec has no file %s", quote(d)))
					continue
				}
				if entry["template"] == true {
					continue // the device knows
				}
				text, err := p.textOf(entry)
				if err != nil {
					return nil, err
				}
				images, err := KubeImages(text)
				if err != nil {
					refuse(fmt.Sprintf("%s: %v", quote(d), err))
				}
				for _, image := range images {
					if withoutTag(image) {
						found = append(found, imageFinding(image, "/files/"+escapePointer(d)))
					}
				}
			}
		}
	}
	return found, nil
}

// textOf is the content of a file of a spec, as it is written: a template is
// not filled in. What is wrong with it is reported where it is written.
func (p *pass) textOf(file any) ([]byte, error) {
	entry, _ := file.(map[string]any)
	if text, ok := entry["content"].(string); ok {
		return []byte(text), nil
	}
	if encoded, ok := entry["contentBase64"].(string); ok {
		data, _ := decodeBase64(encoded)
		return data, nil
	}
	source, _ := entry["source"].(string)
	if source == "" {
		return nil, nil
	}
	if rule, _, _ := p.sourceProblem(source); rule != "" {
		return nil, nil
	}
	pl, err := p.payloadOf(source, true)
	if err != nil {
		return nil, err
	}
	if len(pl.text) < int(pl.size) { // it is not kept
		return make([]byte, min(pl.size, maxKube+1)), nil
	}
	return []byte(pl.text), nil
}
