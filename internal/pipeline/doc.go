// Package pipeline holds the tests of what runs in the pipelines of others:
// the GitHub Action (action.yml with ci/github), the GitLab template
// (ci/gitlab.yml), the hook for pre-commit, and the workflow that gitopsd init
// writes.
//
// It tests no forge: a runner is played as far as these files need one, by
// what GitHub and GitLab document of theirs, and knows the few expressions
// that action.yml uses. What validate and plan print is tested beside them.
//
// Start with `go test -tags system ./internal/pipeline`; what looks at the
// files alone is among the fast tests.
//
// A test uses loopback and its own temporary folder. Where a tool is missing it
// says so and is skipped; with GITOPSD_NO_SKIP set that is a failure.
package pipeline
