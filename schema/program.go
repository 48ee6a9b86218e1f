package schema

import (
	"fmt"
	"net/url"
	"strings"
)

// alwaysTemplates are the texts of a spec that are templates without being
// marked as such.
var alwaysTemplates = [][]string{{"os", "image"}, {"agent", "url"}}

// programFindings check what a document says of the agent's own program.
func programFindings(spec map[string]any, at string) []finding {
	var found []finding
	agent, _ := spec["agent"].(map[string]any)
	if v, ok := agent["version"].(string); ok && !isVersion(v) {
		found = append(found, finding{pointer: at + "/agent/version", rule: ruleVersion, msg: fmt.Sprintf("%s is no version", quote(v)), hint: versionHint})
	}
	if u, ok := agent["url"].(string); ok && !strings.Contains(u, "{{") {
		if msg := oddProgramURL(u); msg != "" {
			found = append(found, finding{pointer: at + "/agent/url", rule: ruleProgram, msg: msg, hint: programURLHint})
		}
	}
	return found
}

const programURLHint = "it looks like https://dl.example.com/gitopsd-v1.5.0-arm64"

// oddProgramURL says why nobody could fetch a program there.
func oddProgramURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case oddRune(s) != "":
		return fmt.Sprintf("the URL %s holds %s", quote(s), oddRune(s))
	case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
		return fmt.Sprintf("%s is no URL with https or http", quote(s))
	case u.User != nil:
		return "the URL holds a user, and would be shown in logs and reports"
	}
	return ""
}

// wholeProgram looks for what only a merged spec has to have.
func wholeProgram(spec map[string]any, at string) []finding {
	agent, ok := spec["agent"].(map[string]any)
	if !ok || len(agent) == 0 {
		return nil
	}
	lacks := func(what, hint string) []finding {
		return []finding{{pointer: at + "/agent", rule: ruleIncomplete, atKey: true, msg: "the agent's program has no " + what, hint: hint}}
	}
	switch {
	case agent["version"] == nil:
		return lacks("version", "set version to what the program tells with --version")
	case len(contentsOf(agent)) == 0:
		return lacks("url and no source", "set url with sha256, or source")
	case agent["url"] != nil && agent["sha256"] == nil:
		return lacks("sha256", "set sha256; sha256sum prints it")
	}
	return nil
}

// program has what is known of a spec's program where an agent looks for it.
// The spec is the rendering's own.
func (r *rendering) program(spec map[string]any) {
	agent, _ := spec["agent"].(map[string]any)
	if agent == nil {
		return
	}
	agent = r.pass.lent.clone(agent)
	spec["agent"] = agent
	if text, _ := agent["url"].(string); strings.Contains(text, "{{") {
		text = r.text(text, "/agent/url")
		if msg := oddProgramURL(text); msg != "" && !r.state.wrong {
			r.pass.noteMerged(r.state, finding{pointer: "/agent/url", rule: ruleProgram, msg: msg, hint: programURLHint})
		}
		agent["url"] = text
	}
	digest, _ := agent["payload"].(string)
	if told, _ := agent["sha256"].(string); digest != "" && told != "" {
		if is := strings.TrimPrefix(digest, "sha256:"); is != told {
			r.pass.noteMerged(r.state, finding{pointer: "/agent/sha256", rule: ruleProgram,
				msg: "the source has another sha256, which is " + is, hint: "leave sha256 out: that of a source is worked out"})
		}
		delete(agent, "sha256")
	}
}
