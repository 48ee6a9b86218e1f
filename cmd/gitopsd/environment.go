package main

import (
	"io"
	"os"
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
