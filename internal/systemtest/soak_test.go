//go:build system

package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/internal/gitserver"
)

// The soak's fleet: every agent is a process of its own, with a root of its
// own, as on as many machines.
const (
	gateways, sensors = 30, 20
	// Of the agents, every second is killed now and then, every fifth talks
	// http, and every tenth has a small disk that is full at times.
	mortal, overHTTP, small = 2, 5, 10

	gatewayLimit, sensorLimit = 4, 2
	gatewayFailures           = 1 // failureLimit

	keptReleases = 6 // of each policy; operators remove the older ones
	smallDisk    = "size=8m,nr_inodes=600"
)

// defaultSoak is for `make soak` without SOAK_MINUTES.
const defaultSoak = 20 * time.Minute

// soak is fifty agents and two daemons on one repository, and all that goes
// wrong around them.
type soak struct {
	*fleet
	server  *gitserver.Server
	random  *rand.Rand
	began   time.Time
	history *history
	took    samples
	line    map[string]*line
	devices []*soaked

	mu       sync.Mutex // of what the chaos shares with the story
	problems []string
	counts   map[string]int
}

// line is one policy with its releases.
type line struct {
	name     string
	limit    int
	failures int
	number   int
	versions []string
	target   string
}

// soaked is one device.
type soaked struct {
	id, root string
	args     []string
	line     *line
	mortal   bool
	small    bool
	proc     *process
}

// TestSoak is run by `make soak`.
func TestSoak(t *testing.T) {
	length := defaultSoak
	if v := os.Getenv("SOAK_MINUTES"); v != "" {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || n <= 0 {
			t.Fatalf("SOAK_MINUTES is %q, want a number of minutes", v)
		}
		length = time.Duration(n * float64(time.Minute))
	}
	needRoot(t, "mount the small disks")
	seed := uint64(time.Now().UnixNano())
	s := newSoak(t, rand.New(rand.NewPCG(seed, 1)))
	t.Logf("%d devices, two daemons, %v; seed %d", len(s.devices), length, seed)

	// The first release, in peace, and how many goroutines a process has that
	// has just come to rest.
	s.release(s.line["gateways"], true)
	s.release(s.line["sensors"], true)
	s.push("the first releases")
	s.startAll()
	s.settle("the first releases", 4*time.Minute)
	one := s.devices[mortal-1]
	fresh := s.countGoroutines("serve-local", one)
	s.startDaemon("serve-local")
	one.proc = s.start(one.id, one.args...)

	ctx, stop := context.WithCancel(t.Context())
	var chaos sync.WaitGroup
	chaos.Go(func() { s.watch(ctx) })
	chaos.Go(func() { s.kills(ctx) })
	chaos.Go(func() { s.pressure(ctx) })
	chaos.Go(func() { s.outages(ctx) })
	calm := func() { stop(); chaos.Wait() }
	defer calm() // where the story ends early
	s.story(length)
	calm()
	s.judge()

	end := s.countGoroutines("serve-http", s.devices[0], s.devices[overHTTP-1], s.devices[small-1])
	text, problems := s.took.table()
	t.Logf("\n%s%s\n%s", text, s.counted(), goroutineTable(fresh, end))
	for name, n := range end {
		// A process that has run for long may have a connection more, or a
		// timer; it must not have one for each thing that it has done.
		if most := slices.Max([]int{fresh["serve-local"], fresh[one.id]}) + 10; n > most {
			problems = append(problems, fmt.Sprintf("%s has %d goroutines at the end, at most %d were expected", name, n, most))
		}
	}
	for _, p := range append(s.problems, problems...) {
		t.Error(p)
	}
	s.endAll() // git fsck takes what is written meanwhile for damage
	whole(s.bench, s.bare)
}

func newSoak(t *testing.T, random *rand.Rand) *soak {
	b := newBench(t)
	// In memory: what is measured is this program, not the machine's disk.
	disk := b.tmpfs("disk", "size=4g")
	s := &soak{fleet: newFleet(b, disk), random: random, began: time.Now(), counts: map[string]int{}}
	s.server = gitserver.New(b, disk)
	s.line = map[string]*line{
		"gateways": {name: "gateways", limit: gatewayLimit, failures: gatewayFailures},
		"sensors":  {name: "sensors", limit: sensorLimit},
	}
	s.history = newHistory(s.fleet, map[string]int{"gateways": gatewayLimit, "sensors": sensorLimit})
	if err := os.Mkdir(b.path("disk", "traces"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range gateways + sensors {
		d := &soaked{mortal: i%mortal == mortal-1, small: i%small == small-1, line: s.line["gateways"]}
		if i >= gateways {
			d.line = s.line["sensors"]
		}
		d.id = fmt.Sprintf("%s-%02d", strings.TrimSuffix(d.line.name, "s"), i)
		if d.root = b.path("disk", "roots", d.id); d.small {
			b.tmpfs("disk/roots/"+d.id, smallDisk)
		} else if err := os.MkdirAll(d.root, 0o755); err != nil {
			t.Fatal(err)
		}
		repo := s.bare
		if i%overHTTP == overHTTP-1 {
			repo = s.server.URL + "/fleet.git"
		}
		d.args = []string{"agent", "--device", d.id, "--root", d.root, "--repo", repo, "--interval", "2s", "--heartbeat", "20s", "--timeout", "10s"}
		s.device(d.id, d.line.name)
		s.devices = append(s.devices, d)
	}
	s.took.rows = []growth{
		{"status commits", "of all", nil},
		{"daemon over http: memory", "KiB", grown(25, 8<<10)},
		{"daemon over http: descriptors", "open", plus(6)},
		{"daemon over http: threads", "", plus(8)},
		{"daemon over http: packs of its copy", "files", atMost(2*26 + 2)},
		{"daemon over http: state folder", "KiB", grown(50, 4<<10)},
		{"daemon over http: state folder ", "files", grown(50, 60)},
		{"local daemon, often killed: state", "KiB", grown(50, 512)},
		{"agents, never killed: memory, mean", "KiB", grown(25, 2<<10)},
		{"agents, never killed: memory, most", "KiB", grown(40, 4<<10)},
		{"agents, never killed: descriptors", "most", plus(4)},
		{"agents, never killed: threads", "most", plus(6)},
		{"agents' own state", "KiB", grown(25, 1<<10)},
		{"agents' own state ", "files", grown(25, 100)},
		{"what was managed", "files", plus(0)},
		{"temporary folder", "files", plus(0)},
		{"repository after git gc", "KiB", nil},
		{"repository after git gc ", "files", grown(60, 300)},
	}
	return s
}

func (s *soak) startDaemon(name string) *process {
	repo := s.bare
	if name == "serve-http" {
		repo = s.server.URL + "/fleet.git"
	}
	p, err := s.launch(name, s.exe, "serve", "--repo", repo, "--state", s.path("disk", "state-"+name), "--interval", "2s", "--timeout", "10s")
	if err != nil {
		s.problem("%v", err)
	}
	return p
}

func (s *soak) startAll() {
	for _, name := range []string{"serve-http", "serve-local"} {
		s.startDaemon(name)
	}
	for _, d := range s.devices {
		d.proc = s.start(d.id, d.args...)
	}
}

// release writes the next release of a line and makes it the target. The
// check leaves a trace outside of the device, where no rollback takes it away.
func (s *soak) release(l *line, good bool) string {
	l.number++
	v := fmt.Sprintf("v1.%d.0", l.number)
	end := "exit 0"
	if !good {
		end = "exit 1"
	}
	trace := fmt.Sprintf(`echo "$GITOPSD_ATTEMPT $GITOPSD_TO" >> %s/"$GITOPSD_DEVICE"; %s`, s.path("disk", "traces"), end)
	s.fleet.release(l.name, v, fmt.Sprintf(`onDevice: {retries: 1000, backoff: {base: 1s, cap: 3s}}
confirm: {within: 60s}
files:
  /etc/edge/release: {content: "%[1]s\n", mode: "0640"}
  /etc/edge/name: {source: files/name, template: true}
  /etc/edge/payload: {source: files/%[2]s-%[1]s}
  /opt/edge/%[1]s/tool: {content: "#!/bin/sh\n# %[1]s\n", mode: "0755"}
hooks:
  afterUpdating:
    check: {run: [/bin/sh, -c, %[3]q], timeout: 60s}
`, v, l.name, trace))
	s.write("files/name", "{{ .device.name }}\n")
	s.write("files/"+l.name+"-"+v, strings.Repeat(v+" ", 20_000))
	s.policy(l.name, v, l.limit, l.failures)
	l.versions = append(l.versions, v)
	for len(l.versions) > keptReleases {
		old := l.versions[0]
		l.versions = l.versions[1:]
		for _, p := range []string{"releases/" + l.name + "/" + old + ".yaml", "files/" + l.name + "-" + old} {
			if err := os.Remove(filepath.Join(s.tree, filepath.FromSlash(p))); err != nil {
				s.Fatal(err)
			}
		}
	}
	l.target = v
	s.count("releases")
	return v
}

// story rolls out one release after the other, good and bad, until the time
// is over; the last ones are good.
func (s *soak) story(length time.Duration) {
	gw, sn := s.line["gateways"], s.line["sensors"]
	for round := 0; time.Since(s.began) < length && !s.Failed(); round++ {
		switch round % 4 {
		case 0:
			s.release(gw, true)
			s.push("gateways")
			s.settle("gateways", 4*time.Minute)
		case 1:
			s.release(sn, true)
			s.release(gw, true)
			s.push("both")
			s.settle("both", 4*time.Minute)
		case 2:
			s.bad(gw)
		case 3:
			s.bad(sn)
		}
		s.sample(round)
	}
	s.release(gw, true)
	s.release(sn, true)
	s.push("the last releases")
	s.settle("the last releases", 4*time.Minute)
}

// bad rolls out a release that fails, looks how far it came, and mends it.
func (s *soak) bad(l *line) {
	before := l.target
	v := s.release(l, false)
	s.push(l.name + ": a bad release")
	s.count("bad releases")
	s.until(l.name+" "+v+" is halted", 3*time.Minute, func(now status) error {
		failed := 0
		for _, d := range s.devices {
			if d.line != l {
				continue
			}
			st := now.devices[d.id]
			if st == nil {
				return fmt.Errorf("%s is missing", d.id)
			}
			if a := open(st); a != nil {
				return fmt.Errorf("%s has attempt %d open", d.id, a.Attempt)
			}
			if st.Verdict.Code == "Failed" {
				failed++
			} else if st.Verdict.Code != "Halted" {
				return fmt.Errorf("%s is %s", d.id, st.Verdict.Code)
			}
			if st.Observed == nil || st.Observed.Version != before {
				return fmt.Errorf("%s is not on %s", d.id, before)
			}
		}
		if failed <= l.failures {
			return fmt.Errorf("only %d failed", failed)
		}
		return nil
	})
	// The promise: failureLimit + maxInFlight, by the status branch and by the
	// devices' own traces.
	most := l.failures + l.limit
	byStatus, byTrace := s.startedNow(l, v), s.traced(l, v)
	if len(byStatus) > most || len(byTrace) > most {
		s.problem("%s %s reached %d devices by the status branch, %d by their traces; at most %d were promised", l.name, v, len(byStatus), len(byTrace), most)
	}
	for _, id := range byTrace {
		if !slices.Contains(byStatus, id) {
			s.problem("%s ran %s, and the status branch does not know", id, v)
		}
	}
	s.release(l, true)
	s.push(l.name + ": mended")
	s.settle(l.name+" is mended", 4*time.Minute)
}
