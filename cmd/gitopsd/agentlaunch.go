package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/gitopsd/gitopsd/reconcile"
)

// launchVariable is how the program of the package tells the one that it starts
// in its place what it is. Programs of all versions read it.
const launchVariable = "GITOPSD_LAUNCHED"

// launched is what that variable holds.
type launched struct {
	PID     int    `json:"pid"` // of this process; another one has it from its parent
	SHA256  string `json:"sha256"`
	Package string `json:"package"` // path of the program of the package
	// Trouble and Refused are those of [reconcile.Program].
	Trouble string `json:"trouble,omitempty"`
	Refused string `json:"refused,omitempty"`
}

// launch has the program run that should be the agent: this one, or another
// that takes the place of this process and keeps its number, so that whoever
// started it sees no end. Nothing that goes wrong here keeps the agent down.
func (a *app) launch(root string, logger *slog.Logger) launched {
	var l launched
	if json.Unmarshal([]byte(a.env[launchVariable]), &l) == nil && l.PID == os.Getpid() {
		return l
	}
	l = launched{PID: os.Getpid()}
	var err error
	if l.Package, err = os.Executable(); err != nil {
		logger.Warn("this program cannot be found, and no other one can take over", "error", err)
		return l
	}
	launcher, err := reconcile.OpenLauncher(root, nil)
	if err != nil {
		return l // the agent will say so
	}
	defer launcher.Close()
	for {
		one := launcher.Next()
		l.SHA256, l.Trouble, l.Refused = one.SHA256, one.Trouble, one.Refused
		if one.Path == "" {
			if l.Trouble != "" {
				logger.Error("the program of the package is the agent, although another one should be", "because", l.Trouble)
			}
			return l
		}
		launcher.Refused(one, a.become(one.Path, &l))
	}
}

// become has another program take the place of this process; it returns only
// when that cannot be.
func (a *app) become(path string, l *launched) error {
	env := []string{}
	for name, value := range a.env {
		if name != launchVariable {
			env = append(env, name+"="+value)
		}
	}
	if l != nil {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		env = append(env, launchVariable+"="+string(text))
	}
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, append([]string{os.Args[0]}, a.args...), env))
}

// handOver has the program of the package choose again.
func (a *app) handOver(l launched) error {
	return withHint(a.become(l.Package, nil), "install the package anew: its program starts all others")
}

// program is what an agent knows of the program that it is, nil where no other
// one could take over.
func (a *app) program(l launched, launchedIn, root string, logger *slog.Logger) *reconcile.Program {
	if l.Package == "" || filepath.Clean(launchedIn) != filepath.Clean(root) {
		return nil
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		logger.Warn("the watchdog's time cannot be read", "error", err)
	}
	p := &reconcile.Program{
		SHA256: l.SHA256, Trouble: l.Trouble, Refused: l.Refused,
		Watched: every > 0 && a.env["NOTIFY_SOCKET"] != "",
		Check:   append(append([]string{}, a.args...), "--"+flagCheck),
	}
	for name, value := range a.env {
		if strings.HasPrefix(name, "GITOPSD_") && name != launchVariable {
			p.Env = append(p.Env, name+"="+value)
		}
	}
	return p
}

// flagCheck has a program look at what it would work with as the agent.
const flagCheck = "check"

// checkState reads the agent's state, as an agent would that takes over.
func checkState(c reconcile.Config) error {
	v, err := reconcile.OpenView(c)
	if errors.Is(err, reconcile.ErrNoState) {
		return nil
	}
	if err != nil {
		return err
	}
	defer v.Close()
	for _, trouble := range v.Standing().Trouble {
		return fmt.Errorf("the agent's state cannot be read: %s", trouble)
	}
	return nil
}

// rootAsked is the root as far as it is known before any configuration is read.
func (a *app) rootAsked(cmd *cobra.Command) string {
	if flag := cmd.Flags().Lookup("root"); flag != nil && flag.Changed {
		return flag.Value.String()
	}
	return or(a.env[variable("root")], "/")
}
