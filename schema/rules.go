package schema

import (
	_ "embed"
	"fmt"
	"reflect"
)

// Rule is one thing that validation looks at.
type Rule struct {
	Name     string   `json:"name"` // stable, as in [Problem.Rule]
	Severity Severity `json:"severity,omitempty"`
	Summary  string   `json:"summary"` // what holds where the rule finds nothing
	// Wrong and Right are files of a fleet repository, each after a line
	// "-- path --", or a description in angle brackets.
	Wrong string `json:"wrong"`
	Right string `json:"right"`
	// Advice is what a [Loader] does not look at, because it takes the
	// planner's arithmetic or the present time: whoever shows problems to a
	// person asks for it. It is always a warning.
	Advice bool `json:"advice,omitempty"`
}

//go:embed rules.yaml
var rulesText []byte

// Rules lists every rule, from a single file to the whole fleet.
func Rules() []Rule {
	doc, problems := readDocument(rulesText)
	if doc == nil {
		panic(fmt.Sprintf("schema: rules.yaml: %v", problems))
	}
	var list struct {
		Rules []Rule `json:"rules"`
	}
	var f filler
	f.fill(reflect.ValueOf(&list).Elem(), doc.value, "")
	if len(f.problems) > 0 {
		panic(fmt.Sprintf("schema: rules.yaml: %v", f.problems[0].err))
	}
	for i := range list.Rules {
		if list.Rules[i].Severity == "" {
			list.Rules[i].Severity = SeverityError
		}
	}
	return list.Rules
}

// Rule names; they are a contract with whoever filters by them.
const (
	ruleSyntax       = "yaml-syntax"
	ruleEmpty        = "yaml-empty"
	ruleMultiple     = "yaml-multiple-documents"
	ruleDuplicate    = "yaml-duplicate-key"
	ruleAlias        = "yaml-alias"
	ruleTag          = "yaml-tag"
	ruleKey          = "yaml-key"
	ruleNumber       = "yaml-number"
	ruleTooLarge     = "yaml-too-large"
	ruleTooDeep      = "yaml-too-deep"
	ruleKind         = "wrong-kind"
	ruleUnknownField = "unknown-field"
	ruleMissingField = "missing-field"
	ruleType         = "wrong-type"
	ruleValue        = "wrong-value"
	ruleRange        = "out-of-range"
	ruleForm         = "wrong-form"
	ruleSize         = "wrong-size"
	ruleTooMany      = "too-many-problems"

	ruleExtension         = "file-extension"
	ruleMisplaced         = "misplaced-document"
	ruleStrayFile         = "stray-file"
	rulePath              = "hostile-path"
	ruleNotRegular        = "not-a-regular-file"
	ruleName              = "name-not-file-name"
	ruleID                = "bad-name"
	ruleDuplicateID       = "duplicate-id"
	ruleVersion           = "bad-version"
	ruleSelector          = "bad-selector"
	ruleLimit             = "limit-never-works"
	ruleOverlap           = "policy-overlap"
	ruleLine              = "unknown-release-line"
	ruleTarget            = "target-without-release"
	rulePin               = "pin-without-release"
	ruleRollback          = "rollback-without-release"
	ruleRollbackTarget    = "rollback-from-target"
	ruleSpelling          = "version-spelled-twice"
	ruleOwnVersion        = "own-version-without-release"
	ruleOverlayConflict   = "overlay-conflict"
	ruleSourcePath        = "source-path"
	ruleSourceMissing     = "source-missing"
	ruleSourceKind        = "source-not-a-file"
	ruleSourceSize        = "source-too-large"
	ruleLFS               = "source-lfs-pointer"
	ruleTemplateSyntax    = "template-syntax"
	ruleTemplateForbidden = "template-forbidden"
	ruleTemplateRender    = "template-render"
	ruleTemplateSize      = "template-too-large"
	ruleDevicePath        = "device-path"
	ruleTemplatePath      = "template-in-device-path"
	ruleProtected         = "device-path-protected"
	rulePathClash         = "device-path-clash"
	ruleContent           = "file-content"
	ruleBase64            = "bad-base64"
	ruleSealed            = "bad-secret"
	ruleIncomplete        = "incomplete-spec"
	ruleApplication       = "application-form"
	ruleQuadletFile       = "quadlet-file"
	ruleQuadletClash      = "quadlet-clash"
	ruleQuadletContent    = "quadlet-content"
	ruleQuadletMissing    = "quadlet-missing"
	ruleNothingRuns       = "application-runs-nothing"
	ruleComposeFile       = "compose-file"
	ruleComposeEnv        = "compose-variable"
	ruleHealth            = "health-never-judged"
	ruleProgram           = "agent-program"
	ruleImage             = "image-without-tag"
	ruleKube              = "kube-images"
	ruleUnitName          = "unit-name"
	ruleUnitProtected     = "unit-protected"
	ruleUnitState         = "unit-cannot-be"
	ruleUnitSyntax        = "unit-syntax"
	ruleUnitUnread        = "unit-unread"
	ruleHook              = "hook-cannot-start"
	ruleCondition         = "hook-never-due"
	ruleMonitor           = "monitor-never-tells"
	ruleSplit             = "split-command"
	ruleSecret            = "secret-in-vars"
	ruleNoPolicy          = "device-without-policy"
	ruleNoDevice          = "policy-without-device"
	ruleBigFolder         = "large-folder"
	ruleBigPayload        = "large-source"
	ruleBigFleet          = "large-fleet"
	ruleSpecSize          = "spec-too-large"
	ruleZone              = "unknown-time-zone"
	ruleFreezeOrder       = "freeze-never-holds"
	ruleWaveName          = "duplicate-wave"
	ruleWaveNobody        = "wave-without-device"
	ruleWaveShadowed      = "wave-unreachable"
	ruleWaveShort         = "wave-never-done"
	ruleCanary            = "canary-without-model"
	ruleGroupLabel        = "budget-without-label"
)
