package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/apps"
	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/files"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/reconcile/internal/osimage"
	"github.com/gitopsd/gitopsd/reconcile/internal/secrets"
	"github.com/gitopsd/gitopsd/reconcile/internal/units"
	"github.com/gitopsd/gitopsd/schema"
)

// Defaults of [Config].
const (
	DefaultInterval       = time.Minute      // a no-op poll is one small request
	DefaultHeartbeat      = 10 * time.Minute // every push costs the server a listing of all refs
	DefaultBootTimeout    = 10 * time.Minute // slow boards need minutes until their services are up
	DefaultInitialVersion = "v0.0.0"         // sorts below every release, so that the first spec is an upgrade
)

// ProtocolVersion is what this agent speaks with the daemon.
const ProtocolVersion = 1

// Config says whose device this is and where its parts are. Zero values are
// the defaults of the constants.
type Config struct {
	Device         string // id, also the name of its refs
	Root           string // "" = "/"; every path of state and spec is below it
	AgentVersion   string // of this program, for reports and minAgentVersion
	InitialVersion string // reported until a first spec was applied
	Control        Control
	Interval       time.Duration // of polls
	Heartbeat      time.Duration // of reports when nothing changes
	BusyCheck      []string      // argv; exit 0 = idle, anything else (no answer too) = busy
	OS             *schema.OSConfig
	BootTimeout    time.Duration // from a boot until post-actions must have succeeded
	Protected      []string      // further paths that no spec may touch: the agent's configuration and keys
	Identities     []string      // files with the keys that open the secrets of specs
	// Warnings are those of the agent's own configuration now, for reports and
	// for whoever asks beside the work; nil = there are none.
	Warnings func() []string
	Now      func() time.Time
	// Uptime is the time since boot, which nobody can set; whatever is waited
	// for is counted on it. nil = the kernel's, or, where Now is given, one
	// that goes with it.
	Uptime func() time.Duration
	Logger *slog.Logger
	// Progress is told that the work goes on, and within which time it will
	// be told again: if it is not, the agent hangs. nil = nobody asks.
	Progress func(within time.Duration)
	// Step is asked before every operation that changes the disk; tests crash
	// and fail with it.
	Step func(op, path string) error
	// ReadStep is the same for operations that read.
	ReadStep func(op, path string) error

	// Program is what this process runs; nil = no other one can take over.
	Program *Program

	Driver osimage.Driver // in place of the programs that OS names; tests boot with it
	// Systemd reaches the service manager; nil = the one of this device, where
	// the root is the device's own and there is one.
	Systemd func(ctx context.Context) (units.Manager, error)
}

// ErrLocked means that another agent works on the same root.
var ErrLocked = errors.New("another agent is running on this root")

// ErrRebooting is what [Agent.Run] returns after it has started a reboot.
var ErrRebooting = errors.New("a reboot was started")

// Result is what one pass came to.
type Result struct {
	// Exit is 0 when the work is done, there was none, or it is deferred; 1
	// when it failed, was rolled back, or a retry is due.
	Exit int
	// Summary is one line for a person.
	Summary string
	// Rebooting says that a reboot was started; the work goes on after it.
	Rebooting bool
	// HandOver says that another program is to go on, as [ErrHandOver] does.
	HandOver bool

	idle   bool // there was nothing to do
	gaveUp bool // although the newest attempt was no success
}

// Agent is the agent of one device.
type Agent struct {
	cfg Config
	log *slog.Logger
	clock
	jitter  func() float64 // in [0,1)
	control Control
	root    *disk.Root
	scratch *disk.Root // of a view; nil = the state has a place for it
	texts   secrets.Texts
	files   *files.Controller
	apps    *apps.Controller
	units   *units.Controller // nil where there is no systemd
	os      osimage.Driver    // nil where none is configured
	osTo    string            // version that the image being prepared stands for
	bootID  string
	store   *store
	reports *reporter

	live     live
	doc      docSeen
	shown    shown
	asks     asks
	revision string            // of the delivery ref, as polled last
	payloads map[string][]byte // of the newest delivery, until they are on disk

	eager        bool          // a single pass waits for no retry
	resumed      bool          // this process has taken up what an earlier one left
	nextRollback time.Duration // uptime at which an incomplete rollback is tried again
	rollbackWait time.Duration
	unwatched    bool  // tests of the loop's time do without file notification
	watchedOf    int64 // attempt whose folders are watched
	folders      []string
	told         step    // in the log, last
	silence      ongoing // control does not answer
	unannounced  ongoing // what is to begin cannot
	waiting      ongoing
	noState      ongoing // state cannot be kept
	stateMark    int     // writes of state that had worked before it
	noWayBack    ongoing
	noRepair     ongoing
	noSnooze     ongoing
	looked       bool // for drift, since the start
	drift        []string
	unitStates   []schema.UnitState // as they were last looked at
	monitors     monitors
	driftReason  string
	applications []schema.ApplicationState // of the current spec, as they were seen last
	wouldChange  *schema.WouldChange       // replaced, never changed; nil = not compared
}

// live is what the agent does right now; it is not on disk.
type live struct {
	phase   schema.Phase
	stage   string
	reason  string
	attempt int64 // of a document that waits without being desired
	busy    string
	hold    *schema.Reason
}

// docSeen is what matters of the newest document after it was considered.
type docSeen struct {
	attempt  int64
	recalled int64
	settle   *schema.Duration
	problem  string // why it is not acted on
}

// New opens the root, takes the lock and reads the state, repairing what is
// unreadable. It returns [ErrLocked] when another agent holds the root.
func New(c Config) (*Agent, error) {
	if c.Device == "" || c.Control == nil {
		return nil, errors.New("an agent needs a device id and a control")
	}
	c.setDefaults()
	root, err := disk.Open(c.Root, disk.Options{Step: c.steps(), ReadStep: c.ReadStep})
	if err != nil {
		return nil, fmt.Errorf("open the root %s: %w", c.Root, err)
	}
	a := &Agent{cfg: c, jitter: rand.Float64, control: c.Control, root: root, asks: asks{signal: make(chan struct{}, 1)}}
	a.log = slog.New(&discreet{Handler: c.Logger.Handler(), texts: &a.texts})
	if a.os = c.Driver; a.os == nil {
		a.os = osimage.New(c.Root, c.OS)
	}
	a.bootID = a.readBootID()
	a.clock = clock{now: c.Now, up: c.Uptime, boot: cmp.Or(a.bootID, processBoot())}
	a.store, err = openStore(root, c.InitialVersion, a.clock, a.log)
	if err == nil {
		err = a.openRecords()
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	a.rememberSecrets()
	if err := hooks.Sweep(root); err != nil {
		a.log.Warn("what an earlier start told its hooks could not be removed", "error", err)
	}
	if _, err := hooks.Local(root); err != nil {
		a.log.Warn("a hook of the device itself cannot be read; until that is mended, no update begins here", "error", err)
	}
	loadBallast(root, a.freeDisk())
	a.reports = newReporter(a.control, a.store.seq, a.clock, a.log, a.jitter, c.Heartbeat, a.freeDisk)
	a.changed()
	return a, nil
}

// stepLimit is how long one step without a limit of its own may take: the
// largest file on the slowest card, beside a question to control.
const stepLimit = 10 * time.Minute

// steps tells of every change of the disk as progress.
func (c *Config) steps() func(op, path string) error {
	if c.Progress == nil {
		return c.Step
	}
	return func(op, path string) error {
		c.Progress(stepLimit)
		if c.Step == nil {
			return nil
		}
		return c.Step(op, path)
	}
}

func (c *Config) setDefaults() {
	if c.Root == "" {
		c.Root = "/"
	}
	if abs, err := filepath.Abs(c.Root); err == nil {
		c.Root = abs
	}
	if c.InitialVersion == "" {
		c.InitialVersion = DefaultInitialVersion
	}
	if c.Interval <= 0 {
		c.Interval = DefaultInterval
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.BootTimeout <= 0 {
		c.BootTimeout = DefaultBootTimeout
	}
	switch {
	case c.Uptime != nil:
	case c.Now == nil:
		c.Uptime = kernelUptime()
	default:
		now := c.Now
		c.Uptime = func() time.Duration { return now().Sub(time.Unix(0, 0)) }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// openRecords also serves after the state was lost at run time: what the
// controllers remember must be what is on disk.
func (a *Agent) openRecords() error {
	if err := errors.Join(a.openFiles(), a.openApplications()); err != nil {
		return err
	}
	return a.openUnits()
}

func (a *Agent) openFiles() error {
	fc, err := files.New(files.Config{
		Root: a.root, State: stateDir, Protected: a.cfg.Protected, Identities: a.cfg.Identities, Texts: &a.texts, Current: a.store.currentSpec, Now: a.now,
		Warn: func(err error) { a.log.Warn("managed files", "error", err) },
	})
	if err != nil {
		return fmt.Errorf("open the record of managed files: %w", err)
	}
	a.files = fc
	return nil
}

func (a *Agent) openApplications() error {
	ac, err := apps.New(apps.Config{
		Root: a.root, State: stateDir, Scratch: a.scratch, Uptime: a.up, Now: a.now,
		Connect: a.cfg.Systemd,
		Warn:    func(err error) { a.log.Warn("applications", "error", err) },
		Pulls:   a.pulls,
		Made:    func(p string) bool { return a.files.Made(p) }, // of the controller that there is by then
		Goes:    func(unit string) bool { return a.units != nil && a.units.Ours(unit) },
	})
	a.apps = ac
	return err
}

// Close releases the root. It writes nothing.
func (a *Agent) Close() error {
	var errs []error
	if a.store != nil {
		errs = append(errs, a.store.close())
	}
	errs = append(errs, a.root.Close())
	return errors.Join(errs...)
}

// Capabilities lists what this agent can do on every device, in the words of
// specs: with an os driver of that name, or none. What else a device has, such
// as podman, adds more.
func Capabilities(driver string) []string {
	caps := []string{"confirm", "directories", "files", "hooks", "hooks.if", "onDevice", schema.NeedsObserve, "requires", "resources.disk", "resources.memory", "resources.monitors"}
	if driver != "" {
		caps = append(caps, "os", "os."+driver)
	}
	slices.Sort(caps)
	return caps
}

func (a *Agent) capabilities() []string {
	driver := ""
	if a.os != nil {
		driver = a.os.Name()
	}
	caps := Capabilities(driver)
	if a.apps != nil && a.apps.Quadlets() { // a view has none
		caps = append(caps, "applications.quadlet")
	}
	if a.apps != nil && a.apps.Compose() {
		caps = append(caps, "applications.compose")
	}
	if a.units != nil {
		caps = append(caps, "units")
	}
	if len(a.cfg.Identities) > 0 {
		caps = append(caps, schema.NeedsSecret)
	}
	if p := a.cfg.Program; p != nil && p.Watched {
		caps = append(caps, "agent")
	}
	slices.Sort(caps)
	return caps
}

// kernelBootID names the running boot on every Linux.
const kernelBootID = "/proc/sys/kernel/random/boot_id"

func (a *Agent) readBootID() string {
	if a.os != nil {
		if id, err := a.os.BootID(); err == nil {
			return id
		}
		return ""
	}
	return kernelBoot()
}

// kernelBoot names the running boot; "" where the system does not say.
func kernelBoot() string {
	b, err := os.ReadFile(kernelBootID)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
