package schema

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
)
