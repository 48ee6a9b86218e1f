package units

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/gitopsd/gitopsd/reconcile/internal/progress"
)

const (
	// callLimit is for a question to systemd. It answers none while it reads
	// unit files anew, which generators make slow on a small board.
	callLimit = 90 * time.Second
	// jobGrace is how long a job is waited for beyond what its unit allows
	// itself: other jobs may come before it.
	jobGrace = 30 * time.Second
	// longestJob is for units that allow themselves for ever.
	longestJob = 30 * time.Minute
	// lookEvery is how often the connection is looked at while a job runs: with
	// systemd itself gone, no result would come.
	lookEvery = time.Second
)

// systemd is the one of the device, reached without a bus between, so that a
// bus that was stopped or replaced keeps nobody from putting it right.
type systemd struct{ conn *dbus.Conn }

// Connect reaches the systemd of this device, and again where it executes itself
// anew meanwhile. It is [ErrNoSystemd] where there is none.
func Connect(ctx context.Context) (Manager, error) {
	conn, err := connect(ctx, dialSystemd, dialEvery)
	if err != nil {
		return nil, err
	}
	return &lasting{connection: conn, dial: dialSystemd, every: dialEvery}, nil
}

func dialSystemd(ctx context.Context) (connection, error) {
	dial, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	type answer struct {
		conn *dbus.Conn
		err  error
	}
	answers := make(chan answer, 1)
	go func() { // the handshake heeds no context
		// The connection lives longer than the dialing.
		conn, err := dbus.NewSystemdConnectionContext(context.WithoutCancel(ctx))
		answers <- answer{conn, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoSystemd, a.err)
		}
		return &systemd{a.conn}, nil
	case <-dial.Done():
		go func() {
			if a := <-answers; a.err == nil {
				a.conn.Close()
			}
		}()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w within %v", ErrNoSystemd, callLimit)
	}
}

func (s *systemd) Close() { s.conn.Close() }

func (s *systemd) lost(err error) bool {
	var said godbus.Error
	return !s.conn.Connected() || (!errors.As(err, &said) && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)))
}

// call bounds one question.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	progress.Within(ctx, 2*callLimit)
	return context.WithTimeout(ctx, callLimit)
}

func (s *systemd) Reload(ctx context.Context) error {
	ctx, cancel := call(ctx)
	defer cancel()
	if err := s.conn.ReloadContext(ctx); err != nil {
		return fmt.Errorf("have systemd read its units anew: %w", err)
	}
	return nil
}

func (s *systemd) Enable(ctx context.Context, name string) error {
	ctx, cancel := call(ctx)
	defer cancel()
	_, _, err := s.conn.EnableUnitFilesContext(ctx, []string{name}, false, false)
	return said("enable", name, err)
}

func (s *systemd) Disable(ctx context.Context, name string) error {
	ctx, cancel := call(ctx)
	defer cancel()
	for _, runtime := range []bool{false, true} {
		if _, err := s.conn.DisableUnitFilesContext(ctx, []string{name}, runtime); err != nil {
			return said("disable", name, err)
		}
	}
	return nil
}

func (s *systemd) Mask(ctx context.Context, name string) error {
	ctx, cancel := call(ctx)
	defer cancel()
	_, err := s.conn.MaskUnitFilesContext(ctx, []string{name}, false, false)
	return said("mask", name, err)
}

func (s *systemd) Unmask(ctx context.Context, name string, runtime bool) error {
	ctx, cancel := call(ctx)
	defer cancel()
	_, err := s.conn.UnmaskUnitFilesContext(ctx, []string{name}, runtime)
	return said("unmask", name, err)
}

func (s *systemd) ResetFailed(ctx context.Context, name string) error {
	ctx, cancel := call(ctx)
	defer cancel()
	err := s.conn.ResetFailedUnitContext(ctx, name)
	if isError(err, noSuchUnit) {
		return nil
	}
	return said("forgive", name, err)
}

// noSuchUnit is systemd's word for a unit that it has not loaded.
const noSuchUnit = "org.freedesktop.systemd1.NoSuchUnit"

func said(what, name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, name, err)
	}
	return nil
}

func (s *systemd) States(ctx context.Context, names ...string) ([]State, error) {
	states := make([]State, len(names))
	for i, name := range names {
		st, err := s.state(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("ask systemd for %s: %w", name, err)
		}
		states[i] = st
	}
	return states, nil
}

func (s *systemd) state(ctx context.Context, name string) (State, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	st := State{Name: name, ID: name}
	if isTemplate(name) { // it is a file and never loaded
		list, err := s.conn.ListUnitFilesByPatternsContext(ctx, nil, []string{name})
		st.Load, st.Active = "not-found", "inactive"
		for _, f := range list {
			if path.Base(f.Path) == name {
				st.Load, st.File, st.Fragment = "loaded", f.Type, f.Path
			}
		}
		return st, err
	}
	p, err := s.conn.GetUnitPropertiesContext(ctx, name)
	if err != nil {
		return st, err
	}
	props := properties(p)
	st.ID, st.Load, st.Active, st.Sub = props.text("Id"), props.text("LoadState"), props.text("ActiveState"), props.text("SubState")
	st.File, st.Fragment = props.text("UnitFileState"), props.text("FragmentPath")
	st.DropIns, st.Triggers = props.list("DropInPaths"), props.list("Triggers")
	st.NeedsReload, _ = p["NeedDaemonReload"].(bool)
	if id, _ := p["InvocationID"].([]byte); len(id) > 0 {
		st.Invocation = fmt.Sprintf("%x", id)
	}
	met, _ := p["ConditionResult"].(bool)
	st.Unmet = props.number("ConditionTimestampMonotonic") > 0 && !met
	if at := props.number("InactiveExitTimestamp"); at > 0 {
		st.LastStart = time.UnixMicro(int64(min(at, math.MaxInt64))) //nolint:gosec // bounded
	}
	kind := interfaces[path.Ext(name)]
	if kind == "" || st.Load == "not-found" || st.Load == "masked" {
		return st, nil
	}
	if p, err = s.conn.GetUnitTypePropertiesContext(ctx, name, kind); err != nil {
		return st, err
	}
	props = properties(p)
	st.Result = props.text("Result")
	if kind != "Service" {
		st.startTimeout, st.stopTimeout = props.span("TimeoutUSec"), props.span("TimeoutUSec")
		return st, nil
	}
	remain, _ := p["RemainAfterExit"].(bool)
	st.Oneshot = props.text("Type") == "oneshot" && !remain
	st.Restarts = int(props.number("NRestarts")) //nolint:gosec // a 32 bit number
	st.Ran = props.number("ExecMainStartTimestampMonotonic") > 0
	st.startTimeout, st.stopTimeout = props.span("TimeoutStartUSec"), props.span("TimeoutStopUSec")
	return st, nil
}

// interfaces are those that know the limits of their units.
var interfaces = map[string]string{".service": "Service", ".socket": "Socket", ".mount": "Mount", ".swap": "Swap"}

// properties are a unit's, as the bus has them.
type properties map[string]any

func (p properties) text(name string) string {
	s, _ := p[name].(string)
	return s
}

func (p properties) list(name string) []string {
	l, _ := p[name].([]string)
	return l
}

func (p properties) number(name string) uint64 {
	switch n := p[name].(type) {
	case uint64:
		return n
	case uint32:
		return uint64(n)
	}
	return 0
}

// span is a limit; one that is infinite is the longest that we wait.
func (p properties) span(name string) time.Duration {
	us := p.number(name)
	if us == 0 || us > uint64(longestJob/time.Microsecond) {
		return longestJob
	}
	return time.Duration(us) * time.Microsecond //nolint:gosec // bounded above
}

// running is a job that systemd has taken.
type running struct {
	job    Job
	result chan string
	limit  time.Duration
}

func (s *systemd) Do(ctx context.Context, jobs ...Job) error {
	var taken []running
	var errs []error
	for _, j := range jobs {
		r, err := s.begin(ctx, j)
		if err != nil {
			errs = append(errs, err)
		} else {
			taken = append(taken, r)
		}
	}
	begun := time.Now()
	for _, r := range taken {
		if err := s.wait(ctx, r, begun); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *systemd) begin(ctx context.Context, j Job) (running, error) {
	r := running{job: j, result: make(chan string, 1)}
	st, err := s.state(ctx, j.Unit)
	if err != nil {
		return r, &JobError{Job: j, Err: err}
	}
	limit := jobGrace
	if st.Load == "loaded" && j.Verb != Stop {
		limit += st.startTimeout
	}
	if j.Verb != Start {
		limit += st.stopTimeout
	}
	r.limit = min(max(limit, 2*jobGrace), longestJob)
	do := map[Verb]func(context.Context, string, string, chan<- string) (int, error){
		Start: s.conn.StartUnitContext, Stop: s.conn.StopUnitContext, Restart: s.conn.RestartUnitContext,
		TryRestart: s.conn.TryRestartUnitContext, TryReload: s.conn.ReloadOrTryRestartUnitContext,
	}[j.Verb]
	if do == nil {
		return r, &JobError{Job: j, Err: errors.New("there is no such verb")}
	}
	bounded, cancel := call(ctx)
	defer cancel()
	if j.Verb == Start || j.Verb == Restart {
		// Earlier starts must not count against this one.
		_ = s.ResetFailed(bounded, j.Unit) // if that cannot be, the start says so
	}
	if _, err := do(bounded, j.Unit, "replace", r.result); err != nil {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if j.Verb == Stop && isError(err, noSuchUnit) {
			r.result <- "done" // what is not there does not run
			return r, nil
		}
		return r, &JobError{Job: j, Err: err}
	}
	return r, nil
}

func isError(err error, name string) bool {
	var e godbus.Error
	return errors.As(err, &e) && e.Name == name
}

// wait gives a [*JobError] for a job that did not end well.
func (s *systemd) wait(ctx context.Context, r running, begun time.Time) error {
	progress.Within(ctx, r.limit+2*callLimit)
	over := time.NewTimer(time.Until(begun.Add(r.limit)))
	defer over.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case result := <-r.result:
			if result == "done" || result == "skipped" { // skipped: there was nothing to reload
				return nil
			}
			return &JobError{Job: r.job, Result: result}
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return &JobError{Job: r.job, Limit: r.limit}
		case <-look.C:
			if !s.conn.Connected() {
				return &JobError{Job: r.job, Err: fmt.Errorf("%w any more", ErrNoSystemd)}
			}
		}
	}
}
