package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/osimage"
)

// ErrNoState means that no agent has worked on a root yet.
var ErrNoState = errors.New("no agent has worked here yet")

// errReadOnly is what a view says to its own attempt to write.
var errReadOnly = errors.New("this only looks")

// View is what the state on disk says of a device, whether its agent runs or
// not. It takes no lock and changes nothing.
type View struct {
	agent   *Agent
	empty   bool // there is no state
	trouble []string
	scratch string // a folder of the host for what is looked at; "" = there is none
}

// OpenView reads the state below the configured root; Control is not needed.
// It returns [ErrNoState] where there is none.
func OpenView(c Config) (*View, error) {
	v, err := openView(c)
	if err == nil && v.empty {
		return nil, errors.Join(ErrNoState, v.Close())
	}
	return v, err
}

func openView(c Config) (*View, error) {
	c.setDefaults()
	c.Logger = slog.New(slog.DiscardHandler)
	root, err := disk.Open(c.Root, disk.Options{Step: func(string, string) error { return errReadOnly }, ReadStep: c.ReadStep})
	if err != nil {
		return nil, err
	}
	a := &Agent{cfg: c, log: c.Logger, root: root}
	v := &View{agent: a}
	if a.os = c.Driver; a.os == nil {
		a.os = osimage.New(c.Root, c.OS)
	}
	a.bootID = a.readBootID()
	a.clock = clock{now: c.Now, up: c.Uptime, boot: a.bootID}
	a.store = &store{clock: a.clock, root: root, initial: c.InitialVersion, log: c.Logger, seq: &sequence{root: root}}
	if err := v.load(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	a.live.hold = a.holdNow()
	a.live.busy = a.notedBusy()
	return v, nil
}

// load reads what [store.load] reads, and leaves it as it is.
func (v *View) load() error {
	var (
		ins install
		att attempts
		cur record
		des record
		pen pending
		pro programs
	)
	s, found := v.agent.store, 0
	for _, one := range []struct {
		file  string
		into  any
		valid func() bool
		took  func()
	}{
		{installFile, &ins, ins.valid, func() { s.seq.set(ins) }},
		{attemptsFile, &att, att.valid, func() { att.Work.adopt(s.clock); s.attempts = att }},
		{currentFile, &cur, cur.reportable, func() { cur.OK = s.adopt(cur.OK, cur.OKAt); s.current = cur }},
		{desiredFile, &des, des.reportable, func() { s.desired = &des }},
		{pendingFile, &pen, func() bool { return true }, func() { pen.adopt(s.clock); s.pending = &pen }},
		{programsFile, &pro, pro.valid, func() { s.programs = pro }},
	} {
		b, err := s.bytes(one.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("read the state: %w", err)
		}
		if found++; err == nil {
			err = json.Unmarshal(b, one.into)
		}
		if err == nil && !one.valid() {
			err = fmt.Errorf("%s is not complete", one.file)
		}
		if err != nil {
			v.trouble = append(v.trouble, oneLine(err.Error()))
			continue
		}
		one.took()
	}
	v.empty = found == 0
	if s.current.Version == "" {
		s.current.Version = s.initial
	}
	if s.desired != nil && s.desired.Attempt <= s.attempts.highest() {
		s.desired = nil // it has ended, and only its file is still there
	}
	return nil
}

// Close releases the root, and what was put aside to look at.
func (v *View) Close() error {
	errs := []error{v.agent.root.Close()}
	if v.agent.scratch != nil {
		errs = append(errs, v.agent.scratch.Close())
	}
	if v.scratch != "" {
		errs = append(errs, os.RemoveAll(v.scratch))
	}
	return errors.Join(errs...)
}

// Standing is how the device stands, as far as the disk says.
func (v *View) Standing() Standing {
	s := v.agent.standing(v.agent.report())
	s.Trouble = v.trouble
	return s
}

// openRecords reads what is managed. What has to be written to be looked at
// goes elsewhere than where a running agent has its own.
func (v *View) openRecords() error {
	a := v.agent
	scratch := v.openScratch()
	if err := errors.Join(a.openFiles(), a.openApplications()); err != nil {
		return err
	}
	err := scratch
	if err == nil {
		err = a.openUnits()
	}
	if err != nil {
		v.trouble = append(v.trouble, oneLine("units and applications cannot be looked at: "+err.Error()))
	}
	return nil
}

func (v *View) openScratch() (err error) {
	if v.scratch != "" || !v.agent.hasSystemd() {
		return nil
	}
	if v.scratch, err = os.MkdirTemp("", "gitopsd-diff-"); err != nil {
		return err
	}
	v.agent.scratch, err = disk.Open(v.scratch, disk.Options{})
	return err
}

// View reads the agent's own state beside its work; whoever opens it closes
// it.
func (a *Agent) View() (*View, error) {
	c := a.cfg
	c.Step, c.Progress = nil, nil
	return OpenView(c)
}
