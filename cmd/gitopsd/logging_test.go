package main

import (
	"bytes"
	"log"
	"strings"
	"testing"
)

// What a library says past the log, as net/http does of a server that answers
// unasked, is a line of the log: of its format, and without a secret.
func TestLibrariesSpeakThroughTheLog(t *testing.T) {
	out, flags := log.Writer(), log.Flags()
	t.Cleanup(func() { log.SetOutput(out); log.SetFlags(flags) })
	var b bytes.Buffer
	logger, err := newLogger(&redactingWriter{w: &b}, "json", "")
	if err != nil {
		t.Fatal(err)
	}
	hearLibraries(logger)
	log.Printf("Unsolicited response received from %s", "https://gw:hush@git.example/fleet.git")
	got := b.String()
	if !strings.HasPrefix(got, `{"time":`) || !strings.Contains(got, `"level":"WARN","msg":"Unsolicited response received from `) || strings.Contains(got, "hush") {
		t.Errorf("the log has %q", got)
	}
}
