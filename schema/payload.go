package schema

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Sizes of payloads, in bytes. Hosting services warn of blobs over a few
// megabytes, and every payload travels to every device by git.
const (
	maxPayload   = 64 << 20
	largePayload = 1 << 20
)

// payload is what was worked out of one blob.
type payload struct {
	id     string
	size   int64
	digest string // "" where rule is set
	text   string // only of those that somebody uses as a template
	isText bool
	rule   string // what is wrong with the content, whoever names it
	msg    string
	hint   string
}

// lfsPrefix begins every pointer of Git LFS (its specification, version 1).
var lfsPrefix = []byte("version https://git-lfs.github.com/spec/")

// sourceProblem says what is wrong with the path of a source in this revision.
func (p *pass) sourceProblem(path string) (rule, msg, hint string) {
	e := p.entry(path)
	if e == nil {
		for i := range len(path) {
			if path[i] != '/' {
				continue
			}
			if above := p.entry(path[:i]); above != nil && !isRegular(above.Mode) {
				return ruleSourceKind, fmt.Sprintf("the source %s lies below %s, which is %s", quote(path), quote(path[:i]), modeWord(above.Mode)), "keep the file itself in this repository"
			}
		}
		if p.isFolder(path) {
			return ruleSourceMissing, fmt.Sprintf("the source %s is a folder", quote(path)), "name each file"
		}
		hint := ""
		if p.hinted < maxProblems { // comparing names costs more than all else here
			p.hinted++
			if near := p.sourceNear(path); near != "" {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
		}
		return ruleSourceMissing, fmt.Sprintf("the source %s does not exist", quote(path)), hint
	}
	if !isRegular(e.Mode) {
		return ruleSourceKind, fmt.Sprintf("the source %s is %s", quote(path), modeWord(e.Mode)), "keep the file itself in this repository"
	}
	if e.Size > maxPayload {
		return ruleSourceSize, tooLargePayload(path), "let the device fetch it from elsewhere"
	}
	return "", "", ""
}

func (p *pass) isFolder(path string) bool {
	i := sort.Search(len(p.entries), func(i int) bool { return p.entries[i].Path >= path+"/" })
	return i < len(p.entries) && strings.HasPrefix(p.entries[i].Path, path+"/")
}

func tooLargePayload(path string) string {
	return fmt.Sprintf("the source %s has more than %d MiB", quote(path), maxPayload>>20)
}

// sourceNear finds the file that was probably meant: one of the same folder,
// or the one of that name among the payloads of all.
func (p *pass) sourceNear(path string) string {
	dir, base := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, base = path[:i+1], path[i+1:]
	}
	if near := Nearest(base, p.namesIn(dir)); near != "" {
		return dir + near
	}
	if among := dirPayloads + "/" + base; p.entry(among) != nil {
		return among
	}
	return ""
}

// namesIn lists the first files that stand directly in a folder, which ends
// with a slash, or in the root. Each folder is looked through once.
func (p *pass) namesIn(dir string) []string {
	if names, known := p.names[dir]; known {
		return names
	}
	const enough = 100 // names that are compared; this is only for a hint
	names := []string{}
	first := sort.Search(len(p.entries), func(i int) bool { return p.entries[i].Path >= dir })
	for _, e := range p.entries[first:] {
		rest, ok := strings.CutPrefix(e.Path, dir)
		if !ok || len(names) == enough {
			break
		}
		if !strings.Contains(rest, "/") {
			names = append(names, rest)
		}
	}
	p.names[dir] = names
	return names
}

// payloadOf reads a payload once for each content. The error is for a source
// that cannot be read at all.
func (p *pass) payloadOf(path string, asText bool) (*payload, error) {
	e := p.entry(path)
	for _, known := range []map[string]*payload{p.payloads, p.loader.payloads} {
		if pl, ok := known[e.ID]; ok && e.ID != "" && (pl.isText || !asText || pl.rule != "") {
			p.payloads[e.ID] = pl
			return pl, nil
		}
	}
	pl := &payload{id: e.ID}
	data, err := p.src.Read(*e, maxPayload)
	switch {
	case errors.Is(err, ErrTooLarge):
		pl.rule, pl.msg, pl.hint = ruleSourceSize, tooLargePayload(path), "let the device fetch it from elsewhere"
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", clip(path), err)
	case bytes.HasPrefix(data, lfsPrefix) && len(data) < 1024:
		pl.rule, pl.msg, pl.hint = ruleLFS, fmt.Sprintf("the source %s is a pointer of Git LFS, not the file", quote(path)), "keep the file itself in this repository"
	default:
		pl.size, pl.digest = int64(len(data)), PayloadDigest(data)
		if asText && len(data) <= maxTemplate {
			pl.text = string(data)
		}
		pl.isText = asText
	}
	if e.ID != "" {
		p.payloads[e.ID] = pl
	}
	return pl, nil
}

// checkSources looks at every source that a document names, also of releases
// that nobody is on yet.
func (p *pass) checkSources() error {
	for _, group := range [][]*file{p.releases, p.overlays, p.devices} {
		for _, f := range group {
			for _, s := range f.sources {
				if err := p.checkSource(f, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *pass) checkSource(f *file, s sourceRef) error {
	rule, msg, hint := p.sourceProblem(s.path)
	if rule == "" {
		quadlet, compose := isQuadlet(s.keys), isCompose(s.keys)
		_, isUnitText := textFormOf(s.keys)
		pl, err := p.payloadOf(s.path, s.template || isUnitText || compose)
		if err != nil {
			return err
		}
		rule, msg, hint = pl.rule, pl.msg, pl.hint
		if rule == "" && pl.size > largePayload {
			p.warnAt(f, s.pointer, ruleBigPayload, fmt.Sprintf("the source %s has %d MiB; every device fetches it by git", quote(s.path), pl.size>>20), "")
		}
		if rule == "" && s.template {
			p.checkTemplate(s.path, pl)
		}
		if rule == "" {
			p.checkTextSource(f, s, pl)
		}
		if rule == "" && quadlet {
			if image := unpinned(s.keys[len(s.keys)-1], pl.text); image != "" {
				p.find(f, imageFinding(image, s.pointer))
			}
		}
		if rule == "" && compose && !s.template {
			if err := p.checkComposeSource(f, s); err != nil {
				return err
			}
		}
	}
	if rule != "" {
		p.find(f, finding{pointer: s.pointer, rule: rule, msg: msg, hint: hint})
	}
	return nil
}

// checkTemplate reports a template that does not parse, in its own file.
func (p *pass) checkTemplate(path string, pl *payload) {
	if _, err := p.template(pl.text, pl.size); err != nil {
		p.spreadAt(findingKey{file: path, line: err.line, rule: err.rule, msg: "template: " + err.msg, hint: err.hint})
	}
}

// triedTemplate is a compiled template or what is wrong with it.
type triedTemplate struct {
	tmpl *compiledTemplate
	err  *templateError
}

func (p *pass) template(text string, size int64) (*compiledTemplate, *templateError) {
	if size > maxTemplate {
		return nil, &templateError{rule: ruleTemplateSize, msg: fmt.Sprintf("it has %d bytes, more than the %d allowed", size, maxTemplate)}
	}
	if known, ok := p.loader.templates[text]; ok {
		return known.tmpl, known.err
	}
	tmpl, err := compileTemplate(text)
	if p.loader.templates == nil {
		p.loader.templates = map[string]*triedTemplate{}
	}
	p.loader.templates[text] = &triedTemplate{tmpl, err}
	p.loader.templateBytes += len(text)
	return tmpl, err
}
