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

// maxKubeWeight bounds its [weight]: the memory that an agent has for it.
const maxKubeWeight = 100_000

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
func KubeImages(document []byte) (images []string, err error) {
	if len(document) > maxKube || weight(document) > maxKubeWeight {
		return nil, fmt.Errorf("it has more than the %d KiB, or more values than the %d, that are read", maxKube>>10, maxKubeWeight)
	}
	defer func() {
		if p := recover(); p != nil { // the parser is written for friends
			images, err = nil, fmt.Errorf("the YAML parser gave up: %v", p)
		}
	}()
	for dec, left := yaml.NewDecoder(bytes.NewReader(document)), maxUnfolded; ; {
		var one yaml.Node // what it would be decoded into is compared key by key with all before
		if err := dec.Decode(&one); errors.Is(err, io.EOF) {
			slices.Sort(images)
			return slices.Compact(images), nil
		} else if err != nil {
			return nil, errors.New("it is no YAML: " + unknownAnchor.ReplaceAllString(err.Error(), noAnchor))
		}
		if !hasPlainKeys(&one) {
			return nil, errors.New("a key of a mapping is a list or a mapping itself")
		}
		if left -= unfolded(&one, map[*yaml.Node]int{}); left < 0 {
			return nil, errors.New("its aliases stand for more than is read")
		}
		for _, image := range podImages(&one) {
			if !isImage(image) {
				return nil, fmt.Errorf("%s is no image", quote(image))
			}
			images = append(images, image)
		}
	}
}

// podImages finds the images of pods wherever a kind of Kubernetes has them.
// What its aliases stand for is bounded by [unfolded].
func podImages(n *yaml.Node) []string {
	var images []string
	n = behindAlias(n)
	if n.Kind != yaml.MappingNode {
		for _, child := range n.Content {
			images = append(images, podImages(child)...)
		}
		return images
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, child := behindAlias(n.Content[i]).Value, behindAlias(n.Content[i+1])
		if child.Kind == yaml.SequenceNode && slices.Contains(podFields, key) {
			for _, entry := range child.Content {
				image, policy := "image", "imagePullPolicy"
				if key == "volumes" {
					entry, image, policy = fieldOf(entry, image), "reference", "pullPolicy"
				}
				if name := scalarText(fieldOf(entry, image)); name != "" && scalarText(fieldOf(entry, policy)) != "Never" {
					images = append(images, name)
				}
			}
		}
		images = append(images, podImages(child)...)
	}
	return images
}

// hasPlainKeys says whether all keys are texts, numbers and the like, as podman
// wants them.
func hasPlainKeys(n *yaml.Node) bool {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && behindAlias(child).Kind != yaml.ScalarNode || !hasPlainKeys(child) {
			return false
		}
	}
	return true
}

// podFields are lists whose entries have images.
var podFields = []string{"volumes", "containers", "initContainers", "ephemeralContainers"}

// fieldOf is the value of a field of a mapping, of its own before a merged one;
// nil = there is none.
func fieldOf(n *yaml.Node, name string) *yaml.Node {
	if n = behindAlias(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch behindAlias(n.Content[i]).Value {
		case name:
			return behindAlias(n.Content[i+1])
		case "<<":
			from := behindAlias(n.Content[i+1])
			if from.Kind != yaml.SequenceNode {
				from = &yaml.Node{Content: []*yaml.Node{from}}
			}
			for _, m := range from.Content {
				if merged == nil {
					merged = fieldOf(m, name)
				}
			}
		}
	}
	return merged
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
