package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Application is a set of containers that come and go together.
type Application struct {
	Quadlet    map[string]*Content `json:"quadlet,omitempty"` // by file name
	Folder     string              `json:"folder,omitempty"`  // of its quadlets, see [QuadletFolder]
	Compose    *Compose            `json:"compose,omitempty"`
	Health     *Health             `json:"health,omitempty"` // nil = its units and containers alone are judged
	DataPolicy string              `json:"dataPolicy,omitempty"`
}

// Content is that of a file that has its place and mode by itself. As in a
// [File], exactly one of content, contentBase64 and source is set; in an
// assignment source has become payload.
type Content struct {
	Content       *string `json:"content,omitempty"`
	ContentBase64 *string `json:"contentBase64,omitempty"`
	Source        string  `json:"source,omitempty"`
	Payload       string  `json:"payload,omitempty"` // "sha256:<hex>" of the rendered bytes
	Template      bool    `json:"template,omitempty"`
}

// Health says when an application is healthy: at most one of command, http
// and unit, beside its own units.
type Health struct {
	Command   []string    `json:"command,omitempty"` // argv, on the device
	HTTP      *HTTPHealth `json:"http,omitempty"`
	Unit      string      `json:"unit,omitempty"`
	Timeout   *Duration   `json:"timeout,omitempty"`   // nil = 2m
	StableFor *Duration   `json:"stableFor,omitempty"` // nil = 10s
}

// HTTPHealth is a request that a healthy application answers.
type HTTPHealth struct {
	URL    string `json:"url"`
	Status int    `json:"status,omitempty"` // 0 = 200
}

// applicationKinds are the fields of an application that exclude each other.
var applicationKinds = []string{"quadlet", "compose"}

func applicationNeeds(applications map[string]any) []string {
	var needs []string
	for _, v := range applications {
		app, _ := v.(map[string]any)
		known := false
		for _, kind := range applicationKinds {
			if app[kind] != nil {
				needs, known = append(needs, "applications."+kind), true
			}
		}
		if !known && v != nil {
			needs = append(needs, "applications")
		}
	}
	return needs
}

// applicationFindings are the values of applications that work on no device.
func applicationFindings(spec map[string]any, at string) []finding {
	var found []finding
	applications, _ := spec["applications"].(map[string]any)
	for _, name := range sortedKeys(applications) {
		app, _ := applications[name].(map[string]any)
		here := at + "/applications/" + escapePointer(name)
		files, _ := app["quadlet"].(map[string]any)
		for _, file := range sortedKeys(files) {
			entry, _ := files[file].(map[string]any)
			place := here + "/quadlet/" + escapePointer(file)
			if msg, hint := quadletName(file); msg != "" && entry != nil {
				found = append(found, finding{pointer: place, rule: ruleQuadletFile, atKey: true, msg: msg, hint: hint})
			}
			if text, ok := entry["content"].(string); ok {
				if image := unpinned(file, text); image != "" {
					found = append(found, imageFinding(image, place+"/content"))
				}
			}
		}
		compose, _ := app["compose"].(map[string]any)
		found = append(found, composeFindings(name, compose, here+"/compose")...)
		health, _ := app["health"].(map[string]any)
		found = append(found, healthFindings(health, here+"/health")...)
	}
	return found
}

// isQuadlet says whether keys lead to a quadlet file in a spec.
func isQuadlet(keys []string) bool { return len(keys) == 4 && keys[2] == "quadlet" }

// longestHealth bounds how long a device may wait for its applications, and be
// in the way of the next.
const longestHealth = 24 * time.Hour

// healthChecks are the fields of a health that exclude each other.
var healthChecks = []string{"command", "http", "unit"}

func healthFindings(health map[string]any, at string) []finding {
	var found []finding
	add := func(where, msg, hint string) {
		found = append(found, finding{pointer: at + where, rule: ruleHealth, msg: msg, hint: hint})
	}
	for field, least := range map[string]string{"timeout": "2m", "stableFor": "10s"} {
		text, _ := health[field].(string)
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
		case d > longestHealth:
			add("/"+field, fmt.Sprintf("%s is %s, and at most %s are waited for: the device has its slot until then", field, clip(text), Duration(longestHealth).String()),
				"watch an update for longer with the soak of a wave in the policy")
		case d <= 0:
			add("/"+field, fmt.Sprintf("%s is %s, in which nothing can be judged", field, clip(text)), "leave it out for the default of "+least)
		}
	}
	command, _ := health["command"].([]any)
	for i, v := range command {
		if word, ok := v.(string); ok && (strings.ContainsRune(word, 0) || i == 0 && word == "") {
			add("/command/"+itoa(i), "the check cannot be started: a word is empty or holds a NUL", "begin command with the program's path")
		}
	}
	http, _ := health["http"].(map[string]any)
	if text, ok := http["url"].(string); ok {
		if u, err := url.Parse(text); err != nil || u.Host == "" {
			add("/http/url", fmt.Sprintf("%s cannot be asked", quote(text)), "write it as http://host:port/path")
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.pointer, b.pointer) })
	return found
}

// States of an application in a report.
const (
	ApplicationRunning  = "running"
	ApplicationStarting = "starting"
	ApplicationStopping = "stopping" // which it does by itself, or somebody has it do so
	ApplicationStopped  = "stopped"
	ApplicationFailed   = "failed"
)

// ApplicationState is how an application of the current spec is.
type ApplicationState struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // which unit, where it does not run
}
