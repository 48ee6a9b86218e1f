package main

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptsAtOnce is more than there are processors: scripts mostly wait, for a
// sweep or a poll.
const scriptsAtOnce = "6"

// TestMain lets the scripts run this test binary as gitopsd, in processes of
// its own.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", scriptsAtOnce) // what the command line says goes before it
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
