package main

import (
	"io"
	"strings"
	"testing"
)

// endless is an input without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

// The first part of a spec is another spec.
func TestSpecIsReadWholeOrNotAtAll(t *testing.T) {
	a := &app{in: endless{}, err: io.Discard}
	if _, err := a.comparedTo(t.Context(), &device{root: t.TempDir()}, "-", false); err == nil || !strings.Contains(err.Error(), "standard input has more than 33554432 bytes") {
		t.Errorf("a spec without an end: %v", err)
	}
}
