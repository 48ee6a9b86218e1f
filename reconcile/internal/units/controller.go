package units

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/disk"
	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

// component is the word of failures for units.
const component = "units"

// Payloads gives the bytes of "sha256:<hex>".
type Payloads func(digest string) ([]byte, error)

// Config of a Controller.
type Config struct {
	Root    *disk.Root
	State   string                                     // folder below the root: "/var/lib/gitopsd"
	Connect func(ctx context.Context) (Manager, error) // nil = [Connect]
	// Scratch is a folder of the host in which new units are looked at;
	// "" = /run/gitopsd/verify.
	Scratch string
	Warn    func(error)      // told what a person should know but stops nothing; nil = nobody
	Now     func() time.Time // nil = time.Now
	// Made lists the units that other parts of a spec make, as applications do;
	// nil = none.
	Made func(spec *schema.Spec) map[string]bool
	// Had says whether an application that is on the device makes a unit; nil =
	// none does.
	Had func(unit string) bool
	// Anew says whether somebody else starts a unit anew after [Controller.Finish];
	// nil = nobody.
	Anew func(unit string) bool
	// Journal is [Journal]; nil = that.
	Journal func(ctx context.Context, of Starts) string
	// Steady is how long a unit that was started must stay so; 0 = 3 seconds.
	Steady time.Duration
}

// defaultSteady is when most programs that cannot work have ended: those that
// find no file or no port do so at once.
const defaultSteady = 3 * time.Second

// Controller manages the units of a spec; what they were before stands in
// units.json.
type Controller struct {
	root    *disk.Root
	state   string
	connect func(ctx context.Context) (Manager, error)
	scratch string
	warn    func(error)
	now     func() time.Time
	steady  time.Duration
	made    func(spec *schema.Spec) map[string]bool
	had     func(unit string) bool
	anew    func(unit string) bool
	journal func(ctx context.Context, of Starts) string
	rec     *record
	saved   *record // what is on disk
	warned  string  // of what is missing for looking at units, last
}

// New reads what units were before. A record that cannot be read is set aside
// with its date; the error is for a disk on which not even that can be done.
func New(c Config) (*Controller, error) {
	if c.Root == nil || c.State == "" {
		return nil, errors.New("units: root and state folder are needed")
	}
	ctl := &Controller{
		root: c.Root, state: path.Clean(c.State), connect: c.Connect, scratch: c.Scratch,
		warn: c.Warn, now: c.Now, steady: c.Steady, journal: c.Journal, made: c.Made, had: c.Had, anew: c.Anew,
	}
	if ctl.made == nil {
		ctl.made = func(*schema.Spec) map[string]bool { return nil }
	}
	if ctl.had == nil {
		ctl.had = func(string) bool { return false }
	}
	if ctl.anew == nil {
		ctl.anew = func(string) bool { return false }
	}
	if ctl.connect == nil {
		ctl.connect = Connect
	}
	if ctl.journal == nil {
		ctl.journal = Journal
	}
	if ctl.scratch == "" {
		ctl.scratch = "/run/gitopsd/verify"
	}
	if ctl.warn == nil {
		ctl.warn = func(error) {}
	}
	if ctl.now == nil {
		ctl.now = time.Now
	}
	if ctl.steady == 0 {
		ctl.steady = defaultSteady
	}
	if err := ctl.load(); err != nil {
		return nil, err
	}
	return ctl, nil
}

// nothing says that neither a spec nor an earlier one has to do with units.
func (c *Controller) nothing(spec *schema.Spec) bool {
	return c.rec.empty() && len(spec.Units) == 0 && len(notifyOf(spec)) == 0
}

func notifyOf(spec *schema.Spec) map[string]notify {
	all := map[string]notify{}
	for p, f := range spec.Files {
		if f != nil && len(f.Restart)+len(f.Reload) > 0 {
			all[p] = notify{Restart: f.Restart, Reload: f.Reload}
		}
	}
	return all
}

// goal is what one unit is to be.
type goal struct {
	name    string
	wanted  bool  // by the spec
	content bool  // the spec has its file
	ours    bool  // nothing made it before us
	lost    bool  // what made it before us is not there any more
	made    bool  // by an application of the spec
	enabled *bool // nil = as it is
	state   string
}

// gone: the unit goes with its files.
func (g *goal) gone() bool { return g.ours && !g.wanted }

// goals are those of a spec's units, and of those that an earlier spec had
// named: they become what they were. Sorted by name.
func (c *Controller) goals(spec *schema.Spec, rec *record) []goal {
	names := slices.Collect(maps.Keys(rec.Before))
	for name, u := range spec.Units {
		if u != nil && rec.Before[name] == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	made := c.made(spec)
	all := make([]goal, len(names))
	for i, name := range names {
		g := goal{name: name, made: made[name]}
		if u := spec.Units[name]; u != nil {
			g.wanted, g.content, g.enabled, g.state = true, u.IsSet(), u.Enabled, u.State
		}
		if b := rec.Before[name]; b != nil {
			g.ours = b.Missing
			g.back(b)
		}
		all[i] = g
	}
	return all
}

// back fills in what an earlier spec has set and this one does not.
func (g *goal) back(b *before) {
	no := false
	switch {
	case g.gone():
		g.enabled, g.state = &no, schema.UnitStopped
		return
	case !g.wanted && b.masked():
		g.state = schema.UnitMasked
	}
	if g.enabled == nil && b.Enabled {
		if g.enabled = b.enabled(); g.enabled == nil && b.Missing {
			g.enabled = &no
		}
	}
	if g.state == "" && b.State {
		switch {
		case b.masked() && !g.content:
			g.state = schema.UnitMasked
		case b.Running:
			g.state = schema.UnitStarted
		default:
			g.state = schema.UnitStopped
		}
	}
}

// meets fits the goal of a unit that the spec does not name to how it is now. One
// that an application makes is the application's, once our file is out of its way.
// What has lost its file, with a package or with the image, can be neither enabled
// nor started.
func (g *goal) meets(s *State) {
	switch {
	case g.wanted:
	case g.made && s.Fragment != filePath(g.name):
		g.ours, g.enabled, g.state = false, nil, ""
	case !g.ours && s.Missing() && !s.Masked():
		g.lost, g.enabled = true, nil
		if g.state == schema.UnitStarted {
			g.state = ""
		}
	}
}

func names(gs []goal) []string {
	all := make([]string, len(gs))
	for i := range gs {
		all[i] = gs[i].name
	}
	return all
}

// unmasks says whether the link to nothing must go: somebody wants the unit to
// run or to have a file, or it was us who made the link.
func (g *goal) unmasks(s *State, b *before) bool {
	if !s.Masked() || s.maskedForGood() || g.state == schema.UnitMasked {
		return false
	}
	return g.content || g.state == schema.UnitStarted || (g.enabled != nil && *g.enabled) || b == nil || !b.masked()
}

// runs says whether a unit is as "started" wants it: it runs, it has run, or
// its own file says that it does not run here.
func runs(s *State, b *before) bool {
	switch {
	case s.Running(), s.Unmet:
		return true
	case !s.Oneshot:
		return false
	}
	return (b != nil && b.Ran) || (s.Ran && s.Result == "success")
}

// enabledAs says whether a unit's links are as wanted.
func enabledAs(want bool, s *State) bool {
	switch s.File {
	case "enabled":
		return want
	case "enabled-runtime": // until the next boot
		return false
	}
	return !want // no unit asks for it
}

// failed makes a failure of what went wrong with one unit.
func failed(name string, err error) error {
	var f *failure.Error
	if err == nil || errors.As(err, &f) || errors.Is(err, context.Canceled) {
		return err
	}
	return failure.Retryable(component, name, "%w", err)
}

// with does something with systemd.
func (c *Controller) with(ctx context.Context, do func(m Manager) error) error {
	m, err := c.connect(ctx)
	if err != nil {
		return failed("", err)
	}
	defer m.Close()
	return do(m)
}
