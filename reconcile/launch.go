package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/gofrs/flock"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// Program is what a process runs as the agent, as a [Launcher] has chosen it.
type Program struct {
	// SHA256 is that of a program that a spec named, in hex; "" = the process
	// runs the one of the device's package.
	SHA256 string
	// Watched says that somebody ends this process when it hangs, and starts
	// the program of the package when it ends: only then is another one tried.
	Watched bool
	// Trouble is why another program, which should run, does not; Refused is its
	// sum, where it is known and was not that of the package.
	Trouble, Refused string
	// Check are the arguments with which another program looks at what this
	// one works with, and Env what it needs of the environment for that.
	Check, Env []string
}

// Launcher chooses which program is to be the agent, before there is one. It
// asks for little, so that whatever is broken, there is an agent.
type Launcher struct {
	root    *disk.Root
	refused map[string]string // sum → why it could not be started
}

// Launch is what to start.
type Launch struct {
	SHA256 string // of the program; "" = stay what you are, the one of the package
	Path   string // as the host sees it
	// Trouble and Refused are those of [Program].
	Trouble, Refused string
}

// programsLimit bounds agent.json, in bytes.
const programsLimit = 64 << 10

// OpenLauncher opens the agent's state below a root. step is asked before every
// change of the disk; nil = nothing is asked.
func OpenLauncher(dir string, step func(op, path string) error) (*Launcher, error) {
	root, err := disk.Open(dir, disk.Options{Step: step})
	if err != nil {
		return nil, err
	}
	return &Launcher{root: root, refused: map[string]string{}}, nil
}

// Close releases the root.
func (l *Launcher) Close() error { return l.root.Close() }

// Next says what to start. A program on trial is counted on the disk first, and
// given up when it was started too often; without that count it is not started.
// Beside an agent that runs nothing is counted: this process is about to be told
// that it is one too many.
func (l *Launcher) Next() Launch {
	p, err := l.read()
	if err != nil {
		return Launch{Trouble: fmt.Sprintf("which program should run cannot be read: %v", err)}
	}
	var out Launch
	refused := func(version, sum, why string) {
		out = Launch{Trouble: fmt.Sprintf("%s could not be started: %s", versionOf(version), why), Refused: sum}
	}
	if t := p.Trial; t != nil && t.GaveUp == "" {
		free, alone := l.alone()
		defer free()
		if !alone {
			return Launch{}
		}
		one, err := l.try(&p)
		switch {
		case err != nil:
			refused(t.Version, t.SHA256, fmt.Sprintf("its start cannot be counted: %v", err))
		case t.GaveUp == "":
			return one
		}
	}
	if p.Kept == nil {
		return out
	}
	host, why := l.whole(p.Kept.SHA256)
	if why != "" {
		refused(p.Kept.Version, p.Kept.SHA256, why)
		return out
	}
	out.SHA256, out.Path = p.Kept.SHA256, host
	return out
}

// alone takes the lock of the agent. Where there is none to take, it is the agent
// that will say so.
func (l *Launcher) alone() (free func(), ok bool) {
	free = func() {}
	lock := path.Join(stateDir, lockName)
	if info, err := l.root.Lstat(lock); err != nil || !info.Mode().IsRegular() {
		return free, true
	}
	host, err := l.root.HostPath(lock)
	if err != nil {
		return free, true
	}
	f := flock.New(host, flock.SetFlag(os.O_RDWR))
	got, err := f.TryLock()
	return func() { _ = f.Close() }, got || err != nil
}

// try counts a start of the program on trial, or gives it up.
func (l *Launcher) try(p *programs) (Launch, error) {
	t, out, why := p.Trial, Launch{SHA256: p.Trial.SHA256}, ""
	if t.SHA256 != "" {
		out.Path, why = l.whole(t.SHA256)
	}
	switch {
	case why != "":
		t.GaveUp = "it could not be started: " + why
	case t.Starts >= maxStarts:
		t.GaveUp = fmt.Sprintf("it was started %d times, and did not prove itself; journalctl -u gitopsd-agent, on the device, has what it said last", t.Starts)
	default:
		t.Starts++
	}
	return out, l.write(p)
}

// Refused says that a program could not be started, so that the next choice is
// another one.
func (l *Launcher) Refused(one Launch, err error) {
	l.refused[one.SHA256] = err.Error()
}

// whole is where a program lies, or why it cannot be started.
func (l *Launcher) whole(sum string) (host, why string) {
	if why := l.refused[sum]; why != "" {
		return "", why
	}
	is, err := l.root.Sum(programPath(sum))
	if err == nil && is != sum {
		err = errors.New("it is damaged")
	}
	if err == nil {
		host, err = l.root.HostPath(programPath(sum))
	}
	if err != nil {
		return "", err.Error()
	}
	return host, ""
}

func (l *Launcher) read() (programs, error) {
	var p programs
	info, err := l.root.Lstat(programsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = disk.ErrNotRegular
	}
	var b []byte
	if err == nil {
		b, err = l.root.ReadState(programsFile, programsLimit)
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil && !p.valid() {
		err = errors.New("it is not complete")
	}
	if err != nil {
		return programs{}, err // the agent sets it aside
	}
	return p, nil
}

func (l *Launcher) write(p *programs) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return writeState(l.root, programsFile, append(b, '\n'))
}
