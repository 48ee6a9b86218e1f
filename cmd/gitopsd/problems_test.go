package main

import (
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

// Warnings are listed below their title, which says what they are.
func TestWarningTextSaysItOnce(t *testing.T) {
	p := schema.Problem{File: "devices/a: warning: b.yaml", Line: 3, Rule: "large-folder", Severity: schema.SeverityWarning, Message: "it is full", Hint: "move some"}
	if got, want := warningText(p), "devices/a: warning: b.yaml:3: it is full [large-folder] (move some)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
