package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/examples"
)

// Config says where the demonstration runs and how it is shown.
type Config struct {
	Keep     bool   // leave the folder behind, to look around in
	Dir      string // "" = a new folder below the system's temporary one; must be empty
	Out, Err io.Writer
	Terminal bool // Out can redraw lines
	Color    bool
	Width    int    // columns of the terminal; 0 = 80
	Height   int    // lines of the terminal; 0 = tall enough for the table
	Exe      string // the gitopsd program to start; "" = this one
}

// Limits of waiting. Each step takes a few seconds; the limit is what a
// machine under load may need before the story counts as not coming out.
const (
	stepLimit = 60 * time.Second
	lookEvery = 60 * time.Millisecond // between two looks at the status branch
)

// show is one run of the demonstration.
type show struct {
	cfg     Config
	dir     string
	began   time.Time
	repo    *fleetRepo
	devices []*device
	procs   *processes
	screen  *screen
	view    view
	differs []string // what did not come out as promised
}

// Run tells the whole story and returns nil if it came out as promised. When
// it did not, or with Keep, the folder stays.
func Run(ctx context.Context, cfg Config) error {
	dir, err := folder(cfg.Dir)
	if err != nil {
		return fmt.Errorf("make a folder for the demonstration: %w", err)
	}
	s := &show{cfg: cfg, dir: dir, began: time.Now()}
	if err = s.prepare(); err != nil {
		err = fmt.Errorf("prepare the demonstration in %s: %w", dir, err)
	} else {
		err = s.run(ctx)
		s.screen.close()
		err = errors.Join(err, s.procs.stop(), s.repo.git.Close())
	}
	interrupted := ctx.Err() != nil
	switch {
	case cfg.Keep || (err != nil && !interrupted):
		fmt.Fprintf(cfg.Out, "\nkept: %s\n", s.dir)
	default:
		if rmErr := os.RemoveAll(s.dir); rmErr != nil {
			err = errors.Join(err, fmt.Errorf("remove the demonstration's folder: %w", rmErr))
		}
	}
	if interrupted {
		return fmt.Errorf("the demonstration was interrupted: %w", context.Cause(ctx))
	}
	return err
}

// prepare makes the folder and everything in it but the processes.
func (s *show) prepare() error {
	exe := s.cfg.Exe
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return fmt.Errorf("find the running program: %w", err)
		}
	}
	dir := s.dir
	for _, sub := range []string{"devices", "logs", "agents", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	var err error
	if s.repo, err = newFleetRepo(filepath.Join(dir, "fleet.git"), examples.FleetRepo()); err != nil {
		return err
	}
	if s.devices, err = provision(dir, s.repo); err != nil {
		return err
	}
	s.procs = newProcesses(exe, dir)
	s.screen = newScreen(s.cfg, s.began)
	return nil
}

// folder gives an empty folder with no symlink in its name, since devices
// and repository are named by it.
func folder(wanted string) (string, error) {
	if wanted == "" {
		dir, err := os.MkdirTemp("", "gitopsd-demo-")
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(dir)
	}
	// Only the folder itself is made: a parent that is missing is a mistake in
	// the name, and would be left behind.
	if err := os.Mkdir(wanted, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	entries, err := os.ReadDir(wanted)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty; name a new folder", wanted)
	}
	abs, err := filepath.Abs(wanted)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// run starts the processes, tells the story and judges it.
func (s *show) run(ctx context.Context) error {
	s.screen.say("a fleet of %d devices in %s", len(s.devices), s.dir)
	if err := s.tell(ctx); err != nil {
		return err
	}
	if err := s.judge(ctx); err != nil {
		return err
	}
	if len(s.differs) > 0 {
		return fmt.Errorf("the story did not come out as promised:\n  %s", strings.Join(s.differs, "\n  "))
	}
	return nil
}

// promise records a difference between what is promised and what came out.
func (s *show) promise(kept bool, format string, args ...any) {
	if !kept {
		s.differs = append(s.differs, fmt.Sprintf(format, args...))
	}
}

// until looks at the status branch until done says so. While it waits, the
// table follows. It fails when a process has ended or the time is up.
func (s *show) until(ctx context.Context, what string, done func(view) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, fmt.Errorf("not within %s", stepLimit))
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		v, err := s.repo.look(ctx, s.view)
		if err != nil {
			return fmt.Errorf("read the status branch while waiting until %s: %w", what, err)
		}
		if v.commit != s.view.commit {
			s.view = v
			s.screen.show(s.title(), s.rows())
		}
		if done(v) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited until %s: %w; the last that is known:\n%s", what, context.Cause(ctx), s.lines())
		case p := <-s.procs.ended:
			return fmt.Errorf("%s ended while waiting until %s: %w", p.name, what, p.failure())
		case <-tick.C:
		}
	}
}

// lines is the table as plain text, for an error, with what the daemon says
// of the fleet.
func (s *show) lines() string {
	var b strings.Builder
	for _, r := range s.rows() {
		fmt.Fprintf(&b, "  %-14s %-8s %-10s %s\n", r.device, r.version, r.state, r.why)
	}
	if s.view.fleet != nil {
		for _, c := range s.view.fleet.Conditions {
			fmt.Fprintf(&b, "  %s: %s; %s\n", c.Type, c.Message, c.Remedy)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
