package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"

	"github.com/gofrs/flock"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
)

// Where state stands below the root.
const (
	stateDir     = "/var/lib/gitopsd"
	installFile  = stateDir + "/install.json"
	currentFile  = stateDir + "/current.json"
	desiredFile  = stateDir + "/desired.json"
	attemptsFile = stateDir + "/attempts.json"
	pendingFile  = stateDir + "/pending.json"
	managedFile  = stateDir + "/managed.json" // of the files controller
	payloadDir   = stateDir + "/payload"
	holdFile     = stateDir + "/hold"
	lockName     = "lock"
)

// stateLimit bounds a state file in bytes: a spec with all its inline content
// stays far below it, and reading it must not exhaust a small device.
const stateLimit = 32 << 20

var (
	secret  = disk.Meta{Mode: 0o600, UID: -1, GID: -1} // specs may hold what only root should read
	privDir = disk.Meta{Mode: 0o700, UID: -1, GID: -1}
	openDir = disk.Meta{Mode: 0o755, UID: -1, GID: -1}
)

// store is the state on disk, and what of it is kept in memory: everything
// but the specs, which are read when they are needed.
type store struct {
	clock
	root    *disk.Root
	initial string
	log     *slog.Logger
	lock    *flock.Flock
	// stale is set when a write went wrong in the middle: the disk may say
	// more than memory, so it is read again before anything is decided.
	stale bool
	wrote int     // writes and removals that worked
	gone  ongoing // state that cannot be begun anew
	swept ongoing // temporary files that cannot be removed

	seq      *sequence
	attempts attempts
	current  record  // without its spec
	desired  *record // without its spec; nil when there is none
	pending  *pending
	programs programs
}

func openStore(root *disk.Root, initial string, c clock, log *slog.Logger) (*store, error) {
	s := &store{clock: c, root: root, initial: initial, log: log, seq: &sequence{root: root}}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return s, errors.Join(err, s.close())
	}
	return s, nil
}

// prepare makes the folder and takes the lock.
func (s *store) prepare() error {
	if _, err := s.root.MkdirAll(path.Dir(stateDir), openDir); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	if _, err := s.root.MkdirAll(stateDir, privDir); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	if lock := path.Join(stateDir, lockName); !s.inPlace(lock) {
		if err := s.moveAside(lock); err != nil {
			return err
		}
	}
	name, err := s.root.HostPath(path.Join(stateDir, lockName))
	if err != nil {
		return fmt.Errorf("find the lock: %w", err)
	}
	l := flock.New(name, flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	if !ok {
		return fmt.Errorf("%w (%s is locked)", ErrLocked, name)
	}
	if s.lock != nil {
		s.lock.Unlock() // of a file that is gone
	}
	s.lock = l
	return nil
}

func (s *store) close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Unlock()
}

// verify notices state that was removed while the agent runs and reads again
// what is left; lost says that it did.
func (s *store) verify() (lost bool, err error) {
	for _, p := range []string{installFile, attemptsFile, currentFile} {
		info, err := s.root.Lstat(p)
		switch {
		case err == nil && info.Mode().IsRegular():
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, &stateError{fmt.Errorf("look at %w", err)}
		}
		if s.gone.tell(p, s.up()) {
			s.log.Warn("state is gone; starting over with what is left", "file", p)
		}
		if _, err := s.root.Lstat(path.Join(stateDir, lockName)); errors.Is(err, fs.ErrNotExist) {
			if err := s.prepare(); err != nil {
				return true, err
			}
		}
		return true, s.load()
	}
	s.gone.over(s.up())
	if s.stale {
		return false, s.load()
	}
	if s.desired != nil && s.absent(desiredFile) {
		s.log.Warn("state is gone; what was desired is read again from control", "file", desiredFile)
		s.desired = nil
	}
	if s.pending != nil && s.absent(pendingFile) {
		s.pending = nil
	}
	return false, nil
}

// settle makes last what load is about to rely on: an earlier process may have
// ended before it could sync, and what this one could not sync is written
// again.
func (s *store) settle() error {
	s.seq.mu.Lock() // reports go on meanwhile, and write one of the files
	defer s.seq.mu.Unlock()
	for _, p := range []string{installFile, attemptsFile, currentFile, desiredFile, pendingFile, programsFile} {
		if !s.root.Doubtful(p) {
			continue
		}
		b, err := s.bytes(p)
		switch {
		case err == nil:
			err = writeState(s.root, p, b)
		case errors.Is(err, fs.ErrNotExist):
			err = s.root.Sync(p)
		default:
			err = nil // load sees to it
		}
		if err != nil {
			return &stateError{err}
		}
	}
	if err := s.root.Sync(stateDir); err != nil {
		return &stateError{err}
	}
	return nil
}

// load reads everything. What is unreadable is set aside; where the
// installation, the attempts or the current spec are lost, nothing of before
// is acted on: the installation is a new one.
func (s *store) load() error {
	if err := s.settle(); err != nil {
		return err
	}
	for _, d := range []string{stateDir, payloadDir} {
		if err := s.root.Sweep(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if s.swept.tell(d, s.up()) {
				s.log.Warn("temporary files could not be removed", "folder", d, "error", err)
			}
		}
	}
	var (
		ins install
		att attempts
		cur record
		des record
		pen pending
		pro programs
	)
	var errs []error
	read := func(p string, v any, valid func() bool) bool {
		ok, err := s.read(p, v, valid)
		errs = append(errs, err)
		return ok
	}
	okIns := read(installFile, &ins, ins.valid)
	okAtt := read(attemptsFile, &att, att.valid)
	okCur := read(currentFile, &cur, func() bool { return (cur.Version != "" || cur.Unknown) && cur.reportable() })
	okDes := read(desiredFile, &des, func() bool { return des.Attempt > 0 && len(des.Spec) > 0 && des.reportable() })
	okPen := read(pendingFile, &pen, func() bool { return pen.Image != "" || !pen.Deadline.IsZero() })
	if !read(programsFile, &pro, pro.valid) {
		pro = programs{}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.stale, s.programs = false, pro
	cur.Spec = nil
	des.Spec = nil
	cur.OK = s.adopt(cur.OK, cur.OKAt)
	att.Work.adopt(s.clock)
	pen.adopt(s.clock)
	if !okIns || !okAtt || !okCur {
		fresh := !okIns && !okAtt && !okCur && s.absent(managedFile) && !s.setAside()
		return s.reinstall(att, okAtt, cur, okCur, okDes, fresh)
	}
	if cur.Attempt == 0 && !cur.Unknown {
		cur.Version = s.initial // as configured now
	}
	s.attempts, s.current, s.desired, s.pending = att, cur, nil, nil
	if okPen {
		s.pending = &pen
	}
	if okDes && des.Attempt > att.highest() {
		s.desired = &des
	} else if okDes {
		if err := s.dropDesired(); err != nil {
			s.log.Warn("what an ended attempt desired could not be removed", "error", err)
		}
	}
	s.seq.set(ins)
	return nil
}

// reinstall writes the state of a new installation, keeping what is known of
// the device itself. A change that was on its way is taken back.
func (s *store) reinstall(att attempts, okAtt bool, cur record, okCur, okDes, fresh bool) error {
	if !okCur {
		cur = record{Version: s.initial, Unknown: !fresh}
	}
	if !okAtt {
		att = attempts{Format: attemptsFormat, Observes: s.observed()}
		if okDes && okCur {
			att.Direction = back // perhaps half done: nobody can tell any more
		}
	}
	if att.Direction == forward {
		att.Direction = back
	}
	att.Generation = 0
	att.Work = work{OSFrom: att.Work.OSFrom, Changed: att.Work.Changed}
	id := install{ID: newInstallID()}
	if !okCur {
		if err := s.write(currentFile, cur); err != nil {
			return err
		}
	}
	if err := s.write(attemptsFile, att); err != nil {
		return err
	}
	s.attempts, s.current, s.desired, s.pending = att, cur, nil, nil
	for _, p := range []string{desiredFile, pendingFile} {
		if err := s.remove(p); err != nil {
			return err
		}
	}
	if err := s.seq.begin(id); err != nil {
		return err
	}
	if !fresh {
		s.log.Warn("state was lost: this is a new installation now; it waits for an assignment of its own", "installation", id.ID)
	}
	return nil
}

// saveAttempts writes first and remembers then, so that memory never says
// more than the disk.
func (s *store) saveAttempts(a attempts) error {
	if err := s.write(attemptsFile, a); err != nil {
		return err
	}
	s.attempts = a
	return nil
}

func (s *store) saveDesired(r record) error {
	if err := s.write(desiredFile, r); err != nil {
		return err
	}
	r.Spec = nil
	s.desired = &r
	return nil
}

func (s *store) dropDesired() error {
	if err := s.remove(desiredFile); err != nil {
		return err
	}
	s.desired = nil
	return nil
}

func (s *store) saveCurrent(r record) error {
	if err := s.write(currentFile, r); err != nil {
		return err
	}
	r.Spec = nil
	s.current = r
	return nil
}

func (s *store) savePending(p *pending) error {
	if p == nil {
		if s.pending == nil {
			return nil
		}
		if err := s.remove(pendingFile); err != nil {
			return err
		}
		s.pending = nil
		return nil
	}
	if err := s.write(pendingFile, p); err != nil {
		return err
	}
	c := *p
	s.pending = &c
	return nil
}
