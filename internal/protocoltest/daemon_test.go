package protocoltest

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gitopsd/gitopsd/internal/memremote"
	"github.com/gitopsd/gitopsd/internal/sweep"
)

// daemon is one daemon with its state folder.
type daemon struct {
	w       *world
	name    string
	actor   *actor
	client  *memremote.Client
	inbox   *memremote.Client
	state   string // folder; "" = none
	running *sweep.Daemon

	// What it knows of silence, as far as that can be told from outside: never
	// less than it does.
	series    time.Time         // start of its unbroken series of passes, or before that
	lastPass  time.Time         // zero = it remembers none
	firstPass int               // point of the first one that it remembers
	known     map[string]moment // device → the report that it has read last, and when it had; nil = no pass went through

	news   int           // of which it knows, see [undo]
	skew   time.Duration // of its wall clock
	accept bool          // a person says that the clock is right
	read   view          // what it knows of the operators
}

func (w *world) addDaemon(name string) {
	d := &daemon{w: w, name: name}
	d.actor = &actor{name: name, pass: d.pass, drop: func() { d.running = nil }}
	w.actors = append(w.actors, d.actor)
	w.daemons = append(w.daemons, d)
	d.client = w.client(d.actor, w.repo, nil)
	w.lagging(d.actor, d.client, d.readOf)
	if w.inbox != w.repo {
		d.inbox = w.client(d.actor, w.inbox, nil)
		w.lagging(d.actor, d.inbox, d.readOf)
	}
	if w.onDisk {
		d.state = filepath.Join(w.dir, name)
	}
}

// daemonAtWork is the one that has the token; nil = a device, or nobody.
func (w *world) daemonAtWork() *daemon {
	for _, d := range w.daemons {
		if d.actor == w.token {
			return d
		}
	}
	return nil
}

func (d *daemon) pass(ctx context.Context) error {
	w := d.w
	w.now = w.now.Add(time.Second)
	d.news = w.ghost.news
	if d.running == nil {
		running, err := sweep.New(d.config())
		if err != nil {
			return err
		}
		d.running = running
		if d.state == "" {
			d.forgets()
		}
	}
	if d.lastPass.IsZero() {
		d.firstPass = w.points
	}
	if d.lastPass.IsZero() || w.now.Sub(d.lastPass) > silence {
		d.series = w.now
	}
	d.lastPass = w.now
	began := w.points
	done, err := d.running.Once(ctx)
	d.lastPass = w.now // it may have begun anew meanwhile
	if err == nil && len(done.Stops) == 0 {
		d.reads(began)
	}
	return err
}

// forgets is the loss of all that a daemon remembers of silence.
func (d *daemon) forgets() { d.lastPass, d.known, d.actor.blurred = time.Time{}, nil, false }

// reads notes what was there to be read when a pass began that went through.
func (d *daemon) reads(began int) {
	if d.known == nil {
		d.known = map[string]moment{}
	}
	for id, dev := range d.w.ghost.devices {
		if said := dev.lastSaid.point; len(dev.reports) > 0 && said < began && d.known[id].point != said {
			d.known[id] = moment{d.w.now, said}
		}
	}
}

// heard is the latest time at which a daemon can have heard of a device;
// known is false where that may be right now.
func (d *daemon) heard(id string) (at time.Time, known bool) {
	dev := d.w.ghost.device(id)
	switch k, read := d.known[id]; {
	case d.actor.blurred || len(dev.reports) == 0:
		return at, false
	case read && k.point == dev.lastSaid.point:
		return k.at, true
	case d.known == nil && dev.lastSaid.point < d.firstPass: // what it reads first counts from when it was written
		return dev.lastSaid.at, true
	}
	return at, false
}

func (d *daemon) config() sweep.Config {
	w := d.w
	cfg := sweep.Config{
		Remote: &viewer{d.client, d}, Branch: "main", State: d.state, OwnVersion: "v0.1.0",
		Now:    func() time.Time { return w.now.Add(d.skew) },
		Uptime: func() (time.Duration, string, error) { return w.now.Sub(epoch) + time.Hour, "boot-1", nil },
	}
	cfg.Accept.Clock = d.accept
	if d.inbox != nil {
		cfg.Reports = d.inbox
	}
	if w.trace != nil {
		cfg.Logger = slog.New(slog.NewTextHandler(w.trace, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.String("by", d.name)
			}
			return a
		}}))
	}
	return cfg
}

// kill ends a daemon as power does: what it would have written to its state
// folder afterwards is not there.
func (d *daemon) kill() {
	saved := map[string][]byte{}
	d.eachState(func(file string) {
		if data, err := os.ReadFile(file); err == nil {
			saved[file] = data
		}
	})
	d.w.scheduler.kill(d.actor)
	d.eachState(func(file string) { _ = os.Remove(file) }) // and written again below
	for file, data := range saved {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			panic(err)
		}
	}
}

func (d *daemon) eachState(f func(file string)) {
	if d.state == "" {
		return
	}
	_ = filepath.WalkDir(d.state, func(p string, e fs.DirEntry, err error) error { // absent before the first pass
		if err == nil && e.Type().IsRegular() {
			f(p)
		}
		return nil
	})
}

// damage makes a daemon's state folder unreadable, or takes it away.
func (d *daemon) damage(n int) {
	d.kill()
	d.forgets()
	d.eachState(func(file string) {
		switch n % 2 {
		case 0:
			_ = os.Remove(file)
		case 1:
			_ = os.WriteFile(file, []byte("{"), 0o600)
		}
	})
}
