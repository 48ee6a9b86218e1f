package listing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/gitopsd/gitopsd/internal/view"
	"github.com/gitopsd/gitopsd/schema"
)

// sarifResults is how many results GitHub takes of a run; it refuses all of
// a run that has more.
const sarifResults = 25_000

// The parts of SARIF 2.1.0 (OASIS) that code scanning reads.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID        string        `json:"id"`
		Short     sarifMessage  `json:"shortDescription"`
		Full      sarifMessage  `json:"fullDescription"`
		Help      *sarifMessage `json:"help,omitempty"`
		HelpURI   string        `json:"helpUri"`
		Configure sarifLevel    `json:"defaultConfiguration"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifMessage      `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact sarifArtifact `json:"artifactLocation"`
			Region   sarifRegion   `json:"region"`
		} `json:"physicalLocation"`
		Logical []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifArtifact struct {
		URI    string `json:"uri"`
		BaseID string `json:"uriBaseId"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		Pointer string `json:"fullyQualifiedName"`
	}
)

// WriteSARIF writes a SARIF log of one run, errors first, with the rules that
// something was found of.
func WriteSARIF(w io.Writer, r *Result) error {
	known := map[string]schema.Rule{}
	for _, rule := range schema.Rules() {
		known[rule.Name] = rule
	}
	var run sarifRun
	run.Tool.Driver = sarifDriver{Name: "gitopsd", Version: r.Version, InformationURI: "https://github.com/gitopsd/gitopsd", Rules: []sarifRule{}}
	run.Invocations = []sarifInvocation{{Successful: true}}
	run.ColumnKind = "unicodeCodePoints" // as package schema counts
	run.Results = []sarifResult{}
	problems := errorsFirst(r.Problems)
	if more := len(problems) - sarifResults; more > 0 {
		problems = problems[:sarifResults]
		run.Invocations[0].Notifications = []sarifNotification{{Level: "warning", Message: sarifMessage{Text: "and " + plural(more, "problem") + " more"}}}
	}
	index, seen := map[string]int{}, map[string]int{}
	for _, p := range problems {
		if _, has := index[p.Rule]; !has {
			index[p.Rule] = len(run.Tool.Driver.Rules)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRuleOf(p, known[p.Rule]))
		}
		hash := fingerprint(p)
		seen[p.File+"\n"+hash]++
		run.Results = append(run.Results, sarifResult{
			RuleID: p.Rule, RuleIndex: index[p.Rule], Level: string(p.Severity), Message: sarifMessage{Text: sarifText(p)},
			Locations: []sarifLocation{sarifPlace(r.Root, p)},
			// The form that GitHub computes where it is missing: a hash, and
			// which of several with that hash it is.
			Fingerprints: map[string]string{"primaryLocationLineHash": fmt.Sprintf("%s:%d", hash, seen[p.File+"\n"+hash])},
		})
	}
	return encode(w, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func sarifRuleOf(p schema.Problem, rule schema.Rule) sarifRule {
	made := sarifRule{ID: p.Rule, HelpURI: RuleURL(p.Rule), Configure: sarifLevel{string(p.Severity)}}
	if rule.Name == "" { // a rule that is not listed, which no rule of ours is
		made.Short.Text = p.Rule
		made.Full.Text = p.Rule
		return made
	}
	made.Short.Text, made.Full.Text = rule.Summary, rule.Summary
	made.Configure.Level = string(rule.Severity)
	made.Help = &sarifMessage{
		Text:     rule.Summary + "\n\nWrong:\n" + rule.Wrong + "\nRight:\n" + rule.Right,
		Markdown: rule.Summary + "\n\nWrong:\n" + fenced(rule.Wrong) + "\nRight:\n" + fenced(rule.Right),
	}
	return made
}

// fenced is an example as a block of markdown; the examples are our own.
func fenced(s string) string { return "\n```yaml\n" + strings.TrimRight(s, "\n") + "\n```\n" }

// sarifText is what a problem says. In a message brackets would make a link,
// and a backslash takes their meaning (SARIF 2.1.0, section 3.11.6).
func sarifText(p schema.Problem) string {
	text := view.Clean(p.Message)
	if p.Hint != "" {
		text += "\n" + view.Clean(p.Hint)
	}
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`).Replace(text)
}

func sarifPlace(root string, p schema.Problem) sarifLocation {
	var at sarifLocation
	parts := strings.Split(root+p.File, "/")
	for i, part := range parts {
		// A colon would make a scheme of the first part.
		parts[i] = strings.ReplaceAll(url.PathEscape(part), ":", "%3A")
	}
	at.Physical.Artifact = sarifArtifact{URI: strings.Join(parts, "/"), BaseID: "%SRCROOT%"}
	at.Physical.Region = sarifRegion{Line: max(p.Line, 1), Column: p.Column} // GitHub wants a line
	if p.Pointer != "" {
		at.Logical = []sarifLogical{{Pointer: view.Clean(p.Pointer)}}
	}
	return at
}

// fingerprint knows a problem of a file again when lines move, and while its
// value is still wrong in another way.
func fingerprint(p schema.Problem) string {
	what := p.Pointer
	if what == "" {
		what = p.Message
	}
	sum := sha256.Sum256([]byte(p.Rule + "\n" + strconv.Itoa(len(p.Pointer)) + "\n" + what))
	const enough = 8 // bytes, as many as GitHub's own have
	return hex.EncodeToString(sum[:enough])
}
