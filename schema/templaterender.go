package schema

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// templateData is what templates see of one device.
type templateData map[string]any

func newTemplateData(name string, labels, vars map[string]string, lent *scratch) templateData {
	if labels == nil {
		labels = map[string]string{}
	}
	if vars == nil {
		vars = map[string]string{}
	}
	device, data := lent.tree(), lent.tree()
	device["name"], device["labels"] = name, labels
	data["device"], data["vars"] = device, vars
	return data
}

// render fills a template in. The error says what was missing and where.
func (t *compiledTemplate) render(data templateData) (string, *templateError) {
	if t.tmpl == nil {
		return t.text, nil
	}
	out := &boundedBuffer{}
	if err := t.tmpl.Execute(out, map[string]any(data)); err != nil {
		if out.full {
			return "", &templateError{rule: ruleTemplateSize, msg: fmt.Sprintf("it renders to more than %d bytes", maxTemplate)}
		}
		return "", renderFailure(err)
	}
	return out.String(), nil
}

// renderText is render for what stands in a document, which must stay text.
func (t *compiledTemplate) renderText(data templateData) (string, *templateError) {
	s, err := t.render(data)
	if err == nil && !utf8.ValidString(s) {
		return "", &templateError{rule: ruleTemplateRender, msg: "the result is not UTF-8", hint: "move it to a file named as source"}
	}
	return s, err
}

var (
	execErrorForm  = regexp.MustCompile(`^template: ` + templateName + `:(\d+):\d+: executing "` + templateName + `" at <(.*?)>: `)
	missingKeyForm = regexp.MustCompile(`map has no entry for key "(.*)"$`)
)

func renderFailure(err error) *templateError {
	e := &templateError{rule: ruleTemplateRender, msg: err.Error()}
	at := ""
	if m := execErrorForm.FindStringSubmatch(e.msg); m != nil {
		e.line, _ = strconv.Atoi(m[1])
		at, e.msg = m[2], e.msg[len(m[0]):]
	}
	if m := missingKeyForm.FindStringSubmatch(e.msg); m != nil {
		e.msg = fmt.Sprintf("%s has no value", clip(at))
		holder := strings.TrimSuffix(strings.TrimSuffix(at, m[1]), ".")
		if holder == "" {
			holder = "." // what a with made it
		}
		e.hint = fmt.Sprintf("set %s, or guard it with {{ if has %s %s }}", clip(m[1]), clip(holder), quote(m[1]))
		return e
	}
	if at != "" {
		e.msg = fmt.Sprintf("at %s: %s", clip(at), e.msg)
	}
	e.msg = clip(e.msg)
	return e
}

// boundedBuffer ends an execution whose output grows too large.
type boundedBuffer struct {
	bytes.Buffer
	full bool
}

var errOutputFull = errors.New("output too large")

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTemplate {
		b.full = true
		return 0, errOutputFull
	}
	return b.Buffer.Write(p)
}
