package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run this test binary as gitopsd, in processes of
// its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gitopsd": main, "gitopsd-measured": measured})
}

// TestScript runs testdata/script/*.txtar. Their own commands are in
// script_test.go.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Setup:               setupScript,
		Cmds:                scriptCommands(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
