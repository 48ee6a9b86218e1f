package schema

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// isCompose says whether keys lead to the compose file of an application.
func isCompose(keys []string) bool { return len(keys) == 3 && keys[2] == "compose" }

// composeFindings are those of a compose file that stands in a document.
func composeFindings(application string, compose map[string]any, at string) []finding {
	var found []finding
	env, _ := compose["env"].(map[string]any)
	for _, name := range sortedKeys(env) {
		if value, _ := env[name].(string); !composeVariable(value) {
			found = append(found, finding{pointer: at + "/env/" + escapePointer(name), rule: ruleComposeEnv,
				msg: fmt.Sprintf("the value of %s would not arrive as it stands", quote(name)), hint: "it may hold no ${, no \\' and no \\ at its end; envFile is taken as it is"})
		}
	}
	if compose["template"] == true {
		return found // looked at when it is rendered
	}
	place, text := at+"/content", ""
	switch {
	case compose["content"] != nil:
		text, _ = compose["content"].(string)
	case compose["contentBase64"] != nil:
		encoded, _ := compose["contentBase64"].(string)
		data, err := decodeBase64(encoded)
		if err != nil {
			return found // reported with all contents
		}
		place, text = at+"/contentBase64", string(data)
	default:
		return found
	}
	file, slips := ReadCompose(application, []byte(text))
	for _, s := range slips {
		found = append(found, finding{pointer: place, rule: ruleComposeFile, msg: s.Message, hint: s.Hint, line: s.Line})
	}
	for _, image := range unpinnedOf(file.Images(nil)) {
		found = append(found, imageFinding(image, place))
	}
	return found
}

// checkComposeSource looks at a compose file that is a file of the repository,
// and reports what is wrong in it there.
func (p *pass) checkComposeSource(f *file, s sourceRef) error {
	text, err := p.textOf(map[string]any{"source": s.path})
	if err != nil {
		return err
	}
	file, slips := p.compose(s.keys[1], string(text))
	for _, slip := range slips {
		p.spreadAt(findingKey{file: s.path, line: slip.Line, column: slip.Column, rule: ruleComposeFile, msg: slip.Message, hint: slip.Hint})
	}
	if len(slips) > 0 {
		p.unusable[f] = true
	}
	for _, image := range unpinnedOf(file.Images(nil)) {
		p.find(f, imageFinding(image, s.pointer))
	}
	return nil
}

// readCompose is what [ReadCompose] has made of a text.
type readCompose struct {
	file  *ComposeFile
	slips []ComposeSlip
}

// maxComposes is how many of them a pass remembers.
const maxComposes = 1000

// compose is [ReadCompose], once for all devices with the same file.
func (p *pass) compose(application, text string) (*ComposeFile, []ComposeSlip) {
	key := sha256.Sum256([]byte(application + "\x00" + text))
	known, ok := p.composes[key]
	if !ok {
		known.file, known.slips = ReadCompose(application, []byte(text))
		if p.composes == nil || len(p.composes) >= maxComposes {
			p.composes = map[[sha256.Size]byte]readCompose{}
		}
		p.composes[key] = known
	}
	return known.file, known.slips
}

// staticCompose is [rendering.compose] for a file that is no template.
func (r *rendering) staticCompose(keys []string, entry map[string]any) error {
	if !isCompose(keys) {
		return nil
	}
	text, err := r.pass.textOf(entry)
	if err != nil {
		return err
	}
	r.compose(keys, entry, string(text))
	return nil
}

// compose checks what was rendered for one device, with the variables that the
// device has, where it is a compose file.
func (r *rendering) compose(keys []string, entry map[string]any, text string) {
	if !isCompose(keys) || text == "" {
		return
	}
	at := joinPointer(keys...)
	for _, field := range contentFields {
		if entry[field] != nil {
			at += "/" + field
		}
	}
	file, slips := r.pass.compose(keys[1], text)
	if entry["template"] == true {
		for _, s := range slips {
			r.pass.noteMerged(r.state, finding{pointer: at, rule: ruleComposeFile, hint: s.Hint,
				msg: fmt.Sprintf("%s (line %d of what the template renders to)", s.Message, s.Line)})
		}
	}
	if entry["envFile"] != nil {
		return // what it holds is its own affair
	}
	given, _ := entry["env"].(map[string]any)
	env := make(map[string]string, len(given))
	for name, v := range given {
		env[name], _ = v.(string)
	}
	find := func(line int, hint, format string, args ...any) {
		f := finding{pointer: at, rule: ruleComposeEnv, msg: fmt.Sprintf(format, args...), hint: hint}
		if entry["template"] != true && entry["content"] != nil {
			f.line = line
		}
		r.pass.noteMerged(r.state, f)
	}
	for _, s := range file.Services {
		if _, missing := expandCompose(s.Image, env); len(missing) > 0 {
			find(s.Line, "set it in env, or give it a default: ${"+missing[0]+":-…}",
				"the image of the service %s has the variable %s, which has no value", quote(s.Name), quote(clip(missing[0])))
		}
	}
	if file.DotEnv > 0 && len(env) == 0 {
		find(file.DotEnv, "set env or envFile, of which .env is made", "a service has the env_file .env, and there are no variables")
	}
	if entry["template"] == true {
		for _, image := range unpinnedOf(file.Images(env)) {
			r.pass.noteMerged(r.state, imageFinding(image, at))
		}
	}
}

// unpinnedOf lists the images that have neither a tag nor a digest.
func unpinnedOf(images []string) []string {
	return slices.DeleteFunc(images, func(image string) bool { return !withoutTag(image) })
}
