package main

import (
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/gitopsd/gitopsd/internal/view"
)

// environment is the process's environment as a value, so that a command can
// be run with another one.
type environment map[string]string

func newEnvironment(list []string) environment {
	env := environment{}
	for _, kv := range list {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	return env
}

// given are the variables that gitopsd sets for hooks and never reads, since a
// hook may start it, and the one for the program that takes its place.
var given = []string{
	"GITOPSD_ATTEMPT", "GITOPSD_CHANGED_FILES", "GITOPSD_FROM", "GITOPSD_REBOOT_PENDING",
	"GITOPSD_ROLLING_BACK", "GITOPSD_RUN", "GITOPSD_TO", launchVariable,
}

// warnOfUnknownVariables names variables that look like settings and are
// none: a misspelled one would be passed over in silence.
func (a *app) warnOfUnknownVariables() {
	known := []string{variable(flagConfig)}
	for _, s := range serveSettings().list {
		known = append(known, variable(s.flag))
	}
	for _, s := range agentSettings().list {
		if s.flag != "" {
			known = append(known, variable(s.flag))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.env)) {
		if !strings.HasPrefix(name, "GITOPSD_") || slices.Contains(known, name) || slices.Contains(given, name) {
			continue
		}
		text := "warning: the variable " + clean(name) + " is no setting"
		if near := nearest(name, known); near != "" {
			text += "; did you mean " + near + "?"
		}
		a.sayln("%s", text)
	}
}

// unlimitedWidth is used where output goes to a file or a pipe: nothing is
// cut there.
const unlimitedWidth = 0

// look says how a table should look on this output: its width, and whether it
// may have colours.
func (a *app) look() view.Look {
	width, _, terminal := terminalSize(a.out)
	if !terminal {
		return view.Look{Width: unlimitedWidth}
	}
	// https://no-color.org: any value that is not empty turns colours off.
	return view.Look{Width: width, Color: a.env["NO_COLOR"] == "" && a.env["TERM"] != "dumb"}
}

// terminalSize is the size of the terminal that output goes to, if it does.
func terminalSize(w io.Writer) (width, height int, terminal bool) {
	if r, ours := w.(*results); ours {
		w = r.Writer
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		// A terminal that cannot tell is as wide as terminals once were.
		return 80, 0, true
	}
	return width, height, true
}
