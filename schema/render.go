package schema

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"strings"
)

// maxRendered bounds what all templates of a fleet render to, in bytes, each
// content counted once: it stays in memory.
const maxRendered = 512 << 20

// staticFile is a file of a spec as assigned, with its payload.
type staticFile struct {
	entry   map[string]any
	digest  string // "" = its content is in the entry
	payload Payload
}

// render merges and renders one device; what goes wrong is in its findings.
func (p *pass) render(s *deviceState) error {
	g := s.group
	if g.static == nil {
		if err := p.prepare(g); err != nil {
			return err
		}
	}
	adds := len(s.file.desired) > 0
	if !adds && g.plain != nil {
		s.member.Rendered = g.plain
		return nil
	}
	spec := g.base
	if adds {
		spec = mergeSpec(spec, s.file.desired, p.lent)
	}
	for _, found := range append(completeFindings(spec, ""), conditionFindings(spec, "")...) {
		p.noteMerged(s, found)
	}
	if !s.wrong {
		for _, check := range []func(map[string]any) ([]finding, error){p.kubeFindings, p.quadletFindings, p.enabledFindings} {
			found, err := check(spec)
			if err != nil {
				return err
			}
			for _, one := range found {
				p.noteMerged(s, one)
			}
		}
	}
	if s.wrong {
		return nil
	}
	device := s.member.Device
	vars := g.vars
	if len(device.Spec.Vars) > 0 {
		vars = p.lent.text()
		maps.Copy(vars, g.vars)
		maps.Copy(vars, device.Spec.Vars)
	}
	r := &rendering{pass: p, state: s, data: newTemplateData(s.member.ID, device.Metadata.Labels, vars, p.lent), payloads: map[string]Payload{}}
	out, err := r.spec(spec)
	if err != nil || s.wrong {
		return err
	}
	if p.loader.ProblemsOnly && surelyFits(out) {
		if !adds && !g.varies {
			g.plain = &Rendered{}
		}
		return nil
	}
	text, err := canonicalJSON(out)
	if err != nil {
		return fmt.Errorf("device %s: %w", s.member.ID, err)
	}
	if len(text) > largeSpec || bytes.Count(text, []byte(`":`)) >= largeMap {
		if msg := unfit(out); msg != "" {
			p.note(s, findingKey{file: s.file.path, line: 1, rule: ruleSpecSize,
				msg: "the rendered spec does not fit into an assignment: " + msg, hint: "put large content into files named as source"})
			return nil
		}
	}
	s.member.Rendered = &Rendered{Spec: out, Digest: PayloadDigest(text), Payloads: r.payloads, Needs: Needs(out)}
	if !adds && !g.varies {
		g.plain = s.member.Rendered
	}
	return nil
}

// largeSpec is the size of the canonical JSON, in bytes, from which a spec is
// tried as an assignment. YAML indents each line of a text, which makes it at
// most a few times as long; below, it is within the limits of a document.
const largeSpec = 100 << 10

// largeMap is the number of keys from which a spec is tried too: some map of
// it may have more than the thousand entries that a document may have, which
// only merging brings about.
const largeMap = 1000

// unfit says why an agent could not read an assignment with this spec.
func unfit(spec map[string]any) string {
	a := Assignment{TypeMeta: TypeMeta{APIVersion, KindAssignment}, Metadata: Metadata{Name: "x"}, Spec: spec}
	text, err := Encode(&a)
	if err != nil {
		return clip(err.Error())
	}
	const rest = 16 << 10 // bytes for what else an assignment says
	if len(text) > maxDocument-rest {
		return fmt.Sprintf("it has %d KiB", len(text)>>10)
	}
	if problems := Decode("", text, &Assignment{}); hasErrors(problems) {
		return problems[0].Message
	}
	return ""
}

// prepare renders once what is the same for all devices of a group.
func (p *pass) prepare(g *group) error {
	g.static = map[uintptr]staticFile{}
	for _, always := range alwaysTemplates {
		text, _ := valueAt(g.base, always).(string)
		g.varies = g.varies || strings.Contains(text, "{{")
	}
	_, err := withContents(g.base, func(_ []string, entry map[string]any) (map[string]any, error) {
		if entry["template"] == true {
			g.varies = true
			return entry, nil
		}
		static, err := p.staticFile(entry, nil)
		if err == nil {
			g.static[identity(entry)] = static
		}
		return entry, err
	})
	return err
}

func identity(m map[string]any) uintptr { return reflect.ValueOf(m).Pointer() }

func (p *pass) staticFile(file map[string]any, lent *scratch) (staticFile, error) {
	out := staticFile{entry: file}
	source, _ := file["source"].(string)
	if _, has := file["template"]; has || source != "" {
		out.entry = lent.clone(file)
		delete(out.entry, "template")
		delete(out.entry, "source")
	}
	if source == "" {
		return out, nil
	}
	pl, err := p.payloadOf(source, false)
	if err != nil {
		return out, err
	}
	out.digest, out.payload = pl.digest, Payload{ID: pl.id, Size: pl.size}
	if pl.id == "" {
		// A source without content ids: the bytes have to travel along.
		if out.payload.Data, err = p.src.Read(*p.entry(source), maxPayload); err != nil {
			return out, fmt.Errorf("read %s: %w", clip(source), err)
		}
	}
	out.entry["payload"] = pl.digest
	return out, nil
}

// rendering is the work on one device.
type rendering struct {
	pass     *pass
	state    *deviceState
	data     templateData
	payloads map[string]Payload
}

func (r *rendering) spec(spec map[string]any) (map[string]any, error) {
	lent := r.pass.lent
	out := lent.clone(spec)
	if os, _ := spec["os"].(map[string]any); os != nil {
		if image, _ := os["image"].(string); strings.Contains(image, "{{") {
			os = lent.clone(os)
			image = r.text(image, "/os/image")
			if strings.TrimSpace(image) == "" || oneLine(image) != image || len(image) > maxPath {
				r.find("/os/image", "the image does not render to a name of one line")
			}
			os["image"] = image
			out["os"] = os
		}
	}
	out, err := withContentsIn(out, lent, r.file)
	if err != nil {
		return nil, err
	}
	r.program(out)
	return compactSpec(out), nil
}

func (r *rendering) file(keys []string, file map[string]any) (map[string]any, error) {
	if file["template"] != true {
		static, ok := r.state.group.static[identity(file)]
		if !ok {
			var err error
			if static, err = r.pass.staticFile(file, r.pass.lent); err != nil {
				return nil, err
			}
		}
		if static.digest != "" {
			r.payloads[static.digest] = static.payload
		}
		return static.entry, r.staticCompose(keys, file)
	}
	entry := r.pass.lent.clone(file)
	delete(entry, "template")
	at := joinPointer(keys...)
	switch {
	case file["content"] != nil:
		text, _ := file["content"].(string)
		text = r.text(text, at+"/content")
		entry["content"] = text
		r.filled(keys, file, text)
	case file["contentBase64"] != nil:
		encoded, _ := file["contentBase64"].(string)
		data, err := decodeBase64(encoded)
		if err != nil {
			break // reported where it is written
		}
		text := r.bytes(string(data), at+"/contentBase64")
		entry["contentBase64"] = base64.StdEncoding.EncodeToString([]byte(text))
		r.filled(keys, file, text)
	default:
		source, _ := file["source"].(string)
		delete(entry, "source")
		return entry, r.templateSource(keys, file, entry, source)
	}
	return entry, nil
}

// text renders a template that stands in a document and has to stay text.
func (r *rendering) text(text, pointer string) string {
	tmpl, err := r.pass.template(text, int64(len(text)))
	if err == nil {
		var out string
		if out, err = tmpl.renderText(r.data); err == nil {
			r.grew(out)
			return out
		}
	}
	r.pass.noteMerged(r.state, templateFinding(err, pointer))
	return ""
}

// bytes renders a template that stands encoded in a document.
func (r *rendering) bytes(text, pointer string) string {
	tmpl, err := r.pass.template(text, int64(len(text)))
	if err == nil {
		var out string
		if out, err = tmpl.render(r.data); err == nil {
			r.grew(out)
			return out
		}
	}
	found := templateFinding(err, pointer)
	found.line = 0 // of a text that nobody sees
	r.pass.noteMerged(r.state, found)
	return ""
}

func (r *rendering) find(pointer, msg string) {
	if !r.state.wrong {
		r.pass.noteMerged(r.state, finding{pointer: pointer, rule: ruleTemplateRender, msg: msg})
	}
}

// templateSource renders a payload for this device.
func (r *rendering) templateSource(keys []string, file, entry map[string]any, source string) error {
	p := r.pass
	pl, err := p.payloadOf(source, true)
	if err != nil {
		return err
	}
	tmpl, terr := p.template(pl.text, pl.size)
	var out string
	if terr == nil {
		out, terr = tmpl.render(r.data)
	}
	if terr != nil {
		r.pass.note(r.state, findingKey{file: source, line: terr.line, rule: terr.rule, msg: "template: " + terr.msg, hint: terr.hint})
		return nil
	}
	r.filled(keys, file, out)
	if out == pl.text && pl.id != "" {
		entry["payload"] = pl.digest
		r.payloads[pl.digest] = Payload{ID: pl.id, Size: pl.size}
		return nil
	}
	if p.loader.ProblemsOnly {
		if p.counted(out) {
			r.grew(out)
		}
		entry["payload"] = pl.digest // as long as the digest of what was rendered
		return nil
	}
	digest := PayloadDigest([]byte(out))
	data, known := p.interned[digest]
	if !known {
		data = []byte(out)
		p.interned[digest] = data
		r.grew(out)
	}
	entry["payload"] = digest
	r.payloads[digest] = Payload{Data: data, Size: int64(len(data))}
	return nil
}

// grew counts rendered bytes against what a fleet may have.
func (r *rendering) grew(s string) {
	r.state.bytes += int64(len(s))
	r.pass.rendered += int64(len(s))
	if r.pass.rendered > maxRendered {
		r.pass.note(r.state, findingKey{file: r.state.file.path, line: 1, rule: ruleTemplateSize,
			msg: fmt.Sprintf("the templates of this fleet render to more than %d MiB", maxRendered>>20), hint: "let devices share files that do not differ"})
	}
}

// attribute places a finding in a merged spec in the document that had the
// last word on it.
func (p *pass) attribute(s *deviceState, found finding) findingKey {
	keys := splitPointer(found.pointer)
	layers := s.layers()
	at := layers[len(layers)-1]
	for _, f := range layers {
		if isSet(f.desired, keys) {
			at = f
			break
		}
	}
	found.pointer = joinPointer(append(append([]string{}, at.specKeys()...), keys...)...)
	return p.located(at, found)
}
