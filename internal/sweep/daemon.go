package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gitopsd/gitopsd/schema"
)

const (
	// DefaultInterval is between two passes: one small request a minute is
	// within what hosting services ask for.
	DefaultInterval = time.Minute

	// maxRaces bounds how often one pass starts over because somebody else
	// moved the status branch; two daemons seldom need more than two.
	maxRaces = 5

	// raceDelay is the longest wait before starting over, drawn at random so
	// that two daemons do not collide again in step.
	raceDelay = 500 * time.Millisecond

	// repairEvery is how often all delivery refs are compared, for what
	// somebody else did to them.
	repairEvery = time.Hour
)

// Config says what a daemon serves. Remote is the only field without a
// default.
type Config struct {
	Remote  Remote // the fleet repository
	Reports Remote // where devices push their reports; nil = the fleet repository

	Branch       string // the source branch; "" = follow the remote's HEAD
	StatusBranch string // "" = schema.DefaultStatusBranch
	DeviceRefs   string // prefix of delivery refs; "" = schema.DefaultDeviceRefs
	ReportRefs   string // prefix of report refs; "" = schema.DefaultReportRefs

	// State is the daemon's own folder for this repository: when devices were
	// last heard from, since when it watches, and the clock. "" keeps that in
	// memory, so that a restart starts counting silence anew.
	State      string
	OwnVersion string        // what an empty targetVersion means
	Interval   time.Duration // between passes; 0 = DefaultInterval

	Now func() time.Time // nil = time.Now
	// Uptime is the time since boot, suspension included, and which boot it
	// was. nil = CLOCK_BOOTTIME and the kernel's boot id.
	Uptime func() (boottime time.Duration, bootID string, err error)

	WatchPath string // a local repository whose changes make the next pass come at once; "" = none
	// Swept hears of every pass that was done, from the goroutine of the pass:
	// it must not wait. nil = nobody is told.
	Swept func(Pass)
	// Progress is told that the work goes on, and within which time it will be
	// told again: if it is not, the daemon hangs. nil = nobody asks.
	Progress func(within time.Duration)
	Accept   Accept       // what a person has accepted, for the first pass
	Logger   *slog.Logger // nil = silent
}

// Accept holds what a person accepts of that which otherwise stops a pass.
// It counts for the first complete pass only.
type Accept struct {
	Rewrite    string // the new head of a rewritten source branch (at least 7 digits of it)
	StatusLoss string // the source commit from which the lost status branch is rebuilt
	Clock      bool   // the clock is right as it is now
}

// acceptMinDigits is the shortest abbreviation of a hash that names a commit.
const acceptMinDigits = 7

func accepts(given, hash string) bool {
	return len(given) >= acceptMinDigits && strings.HasPrefix(hash, strings.ToLower(given))
}

// Move is what became of one attempt of one device in a pass.
type Move struct {
	Device  string         `json:"device"`
	Attempt int64          `json:"attempt"`
	Version string         `json:"version"`
	Outcome schema.Outcome `json:"outcome,omitempty"`
	Because string         `json:"because,omitempty"`
}

// Pass is what one pass did.
type Pass struct {
	Head         string             `json:"head"`         // of the source branch, as it was found; "" = there is none
	SourceCommit string             `json:"sourceCommit"` // that the fleet was planned by
	StatusCommit string             `json:"statusCommit"` // the tip afterwards
	Committed    bool               `json:"committed"`
	Assigned     []Move             `json:"assigned"`
	Ended        []Move             `json:"ended"`
	Recalled     []Move             `json:"recalled"`
	Stops        []schema.Condition `json:"stops"`   // why nothing new is assigned; empty = the pass went through
	Refused      map[string]string  `json:"refused"` // delivery refs that the server did not take, and what it said
	Lost         int                `json:"lost"`    // races lost before this pass went through
}

// Daemon sweeps one fleet repository.
type Daemon struct {
	cfg    Config
	log    *slog.Logger
	branch string // resolved; "" = not known yet
	loader *schema.Loader
	state  *state

	announced *announced

	status  *Status      // as read or written last; nil = not read yet
	loaded  *loadedFleet // the head loaded last, valid or not
	valid   *loadedFleet // the fleet planned by last
	reports map[string]*reportView
	memory  memory
	brake   brake

	delivered  map[string]string    // device → value of its delivery ref, where known
	unsure     map[string]bool      // devices whose delivery has to be looked at
	refused    map[string]string    // deliveries that a server keeps refusing: ref → its words
	blind      map[string]time.Time // commits of deliveries that could not be read, and since when
	repairedAt time.Time            // of the last look at all delivery refs; zero = never, or no longer sure
	rest       *rest                // the last pass, if it had nothing to do
	firstRead  bool                 // the reports were read once
	accept     Accept
	duplicates map[string]bool   // devices that two installations were logged of
	said       map[string]string // what was logged last, by subject, so that nothing is said twice
	meantIDs   map[string]string // what the name of an unknown device is likely to mean, by meantAt
	meantAt    string            // source commit
}

// New makes a daemon and reads its state folder; nothing is fetched yet.
func New(cfg Config) (*Daemon, error) {
	if cfg.Remote == nil {
		return nil, errors.New("sweep: no repository is configured")
	}
	if cfg.Reports == nil {
		cfg.Reports = cfg.Remote
	}
	setDefault(&cfg.StatusBranch, schema.DefaultStatusBranch)
	setDefault(&cfg.DeviceRefs, schema.DefaultDeviceRefs)
	setDefault(&cfg.ReportRefs, schema.DefaultReportRefs)
	if err := cfg.checkPlaces(cfg.Branch); err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Uptime == nil {
		cfg.Uptime = kernelUptime
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	st, err := openState(cfg.State, cfg.Now(), cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("read the state folder %s: %w", cfg.State, err)
	}
	return &Daemon{
		cfg:       cfg,
		log:       cfg.Logger,
		branch:    cfg.Branch,
		loader:    &schema.Loader{OwnVersion: cfg.OwnVersion},
		state:     st,
		announced: newAnnounced(),
		reports:   map[string]*reportView{},
		delivered: map[string]string{},
		unsure:    map[string]bool{},
		blind:     map[string]time.Time{},
		refused:   map[string]string{},
		accept:    cfg.Accept,
		said:      map[string]string{},

		duplicates: map[string]bool{},
	}, nil
}

func setDefault(s *string, def string) {
	if *s == "" {
		*s = def
	}
}

// Once does one pass. The error is for what could not be done; a pass that
// stopped for a person's decision has no error but Stops.
func (d *Daemon) Once(ctx context.Context) (Pass, error) {
	for lost := 0; ; lost++ {
		p := newPass(d)
		err := p.run(ctx)
		p.result.Lost = lost
		if err == nil && !p.mute && d.status != nil {
			d.state.watch.Swept = or(d.status.swept(), d.state.watch.Swept)
		}
		if saveErr := d.state.save(); saveErr != nil {
			err = errors.Join(err, fmt.Errorf("write the state folder %s: %w", d.cfg.State, saveErr))
		}
		if err == nil {
			if !p.mute {
				p.sayAccepted(ctx)
				d.accept = Accept{}
			}
			if d.cfg.Swept != nil {
				d.cfg.Swept(p.result)
			}
			return p.result, nil
		}
		if kindOf(err) != kindRace {
			return p.result, err
		}
		if lost+1 >= maxRaces {
			return p.result, fmt.Errorf("the status branch %s moved under %d passes in a row; the next one tries again: %w",
				d.cfg.StatusBranch, maxRaces, err)
		}
		d.log.DebugContext(ctx, "the status branch moved, starting over", keyTry, lost+1)
		if err := sleep(ctx, rand.N(raceDelay)); err != nil {
			return p.result, err
		}
	}
}

func sleep(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Kinds of errors that a pass branches on.
const (
	kindRace     = "race"
	kindRefused  = "refused"
	kindCorrupt  = "corrupt"
	kindNotFound = "not-found"
)

// isBroken says whether an error is of an object that is not there, or not
// what it should be. Asking again does not help then, as it may where a
// server is away or does not know who asks.
func isBroken(err error) bool {
	switch kindOf(err) {
	case kindCorrupt, kindNotFound, kindRefused:
		return true
	}
	return false
}

// kindOf is the word for an error by which a caller decides; "" = unknown.
func kindOf(err error) string {
	var k interface{ Kind() string }
	if errors.As(err, &k) {
		return k.Kind()
	}
	return ""
}

// raceError makes the pass start over with everything fetched again.
type raceError struct{ what string }

func (e *raceError) Error() string { return e.what }
func (e *raceError) Kind() string  { return kindRace }
