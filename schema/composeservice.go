package schema

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// absoluteHint is for files that a compose file has beside itself elsewhere.
const absoluteHint = "put it on the device by files, and name its absolute path there"

func (r *composeReading) service(key, value *yaml.Node) {
	name := key.Value
	if !unitStem(name) {
		r.slip(key, "use letters, digits and ._- and begin with a letter or digit", "no container can be called after the service %s", quote(clip(name)))
		return
	}
	fields := r.mapping(value, 0)
	if len(fields) == 0 {
		r.slip(key, "give it an image", "the service %s is empty", quote(name))
		return
	}
	s := ComposeService{Name: name}
	if at, build := fields.get("build"); build != nil {
		r.slip(at, "build the image elsewhere, push it, and name it as image", "the service %s is to be built, and devices do not build", quote(name))
	} else if image := r.image(fields, 0); image != nil {
		s.Image, s.Line = image.Value, image.Line
		if !isImage(s.Image) {
			r.slip(image, "it looks like registry.example.com/web:1.4, without spaces", "%s is no image", quote(clip(s.Image)))
		}
	} else if _, podman := fields.get("x-podman"); len(r.mapping(podman, 0)) == 0 {
		r.slip(key, "give it an image", "the service %s has no image", quote(name))
	}
	r.ending(fields, &s)
	r.dependencies(fields, name)
	r.files(fields, name)
	r.mounts(fields, name)
	_, networks := fields.get("networks")
	attached := r.list(networks)
	for _, e := range r.mapping(networks, 0) {
		attached = append(attached, e.key)
	}
	for _, n := range attached {
		if !r.networks[n.Value] && n.Value != "default" && isFixed(n.Value) {
			r.slip(n, "declare it under networks at the end of the file", "the network %s of the service %s is not declared", quote(clip(n.Value)), quote(name))
		}
	}
	r.file.Services = append(r.file.Services, s)
}

// image is that of a service, or of the one that it extends.
func (r *composeReading) image(fields composeMap, depth int) *yaml.Node {
	if _, image := fields.get("image"); scalarText(image) != "" {
		return image
	}
	_, extends := fields.get("extends")
	base := scalarText(extends)
	if from := r.mapping(extends, 0); len(from) > 0 {
		if _, file := from.get("file"); scalarText(file) != "" {
			if depth == 0 {
				r.slip(file, "write it out in this file", "the file %s that a service extends is not on the device", quote(clip(file.Value)))
			}
			return file
		}
		_, service := from.get("service")
		base = scalarText(service)
	}
	_, other := r.services.get(base)
	if base == "" || other == nil || depth > maxComposeDepth {
		return nil
	}
	return r.image(r.mapping(other, 0), depth+1)
}

// ending reads how a service ends and comes back.
func (r *composeReading) ending(fields composeMap, s *ComposeService) {
	_, restart := fields.get("restart")
	policy := scalarText(restart)
	if restart != nil && restart.Style == 0 && slices.Contains([]string{"no", "off", "false", "yes", "on", "true"}, strings.ToLower(policy)) {
		r.slip(restart, `quote it: "no"`, "restart is %s, which YAML takes for a truth value", policy)
	}
	s.Restarts = policy != "" && policy != "no"
	s.Ends = strings.HasPrefix(policy, "on-failure")
	_, profiles := fields.get("profiles")
	s.Optional = len(r.list(profiles)) > 0
	_, deploy := fields.get("deploy")
	_, replicas := r.mapping(deploy, 0).get("replicas")
	_, scale := fields.get("scale")
	for _, n := range []*yaml.Node{replicas, scale} {
		if count, err := strconv.Atoi(scalarText(n)); n != nil && (err != nil || count < 1) {
			s.Optional = true
		}
	}
	_, grace := fields.get("stop_grace_period")
	given := scalarText(grace)
	if _, err := strconv.Atoi(given); err == nil {
		given += "s"
	}
	if d, err := time.ParseDuration(given); err == nil && d > 0 {
		s.Grace = min(d, maxComposeGrace)
	}
}

func (r *composeReading) dependencies(fields composeMap, name string) {
	_, on := fields.get("depends_on")
	names := r.list(on)
	for _, e := range r.mapping(on, 0) {
		names = append(names, e.key)
		if _, condition := r.mapping(e.value, 0).get("condition"); scalarText(condition) == "service_completed_successfully" {
			r.ended[e.key.Value] = true
		}
	}
	for _, n := range names {
		if !r.services.has(n.Value) && isFixed(n.Value) {
			r.slip(n, "name a service of this file", "the service %s depends on %s, which is none", quote(name), quote(clip(n.Value)))
		}
	}
}

// files reads what a service wants to have beside the compose file.
func (r *composeReading) files(fields composeMap, name string) {
	_, env := fields.get("env_file")
	for _, n := range r.list(env) {
		if entry := r.mapping(n, 0); len(entry) > 0 {
			if _, required := entry.get("required"); scalarText(required) == "false" {
				continue
			}
			_, n = entry.get("path")
		}
		p := scalarText(n)
		switch {
		case !isRelative(p):
		case path.Clean(p) == ComposeEnvName:
			r.file.DotEnv = n.Line
		default:
			r.slip(n, absoluteHint, "the env_file %s of the service %s is not beside the compose file on the device", quote(clip(p)), quote(name))
		}
	}
}

// mounts reads where the data of a service is.
func (r *composeReading) mounts(fields composeMap, name string) {
	_, volumes := fields.get("volumes")
	for _, n := range r.list(volumes) {
		source, bind, at := "", false, n
		if entry := r.mapping(n, 0); len(entry) > 0 {
			_, kind := entry.get("type")
			_, at = entry.get("source")
			source, bind = scalarText(at), scalarText(kind) == "bind"
			if !bind && scalarText(kind) != "volume" {
				continue
			}
		} else {
			first, _, both := strings.Cut(scalarText(n), ":")
			if !both {
				continue // a volume without a name
			}
			source, bind = first, strings.HasPrefix(first, ".")
		}
		switch {
		case !isRelative(source):
		case bind:
			r.slip(at, "name an absolute path, or a volume for data", "the service %s mounts %s, which is not beside the compose file on the device", quote(name), quote(clip(source)))
		case !r.volumes[source]:
			r.slip(at, "declare it under volumes at the end of the file", "the volume %s of the service %s is not declared", quote(clip(source)), quote(name))
		}
	}
}
