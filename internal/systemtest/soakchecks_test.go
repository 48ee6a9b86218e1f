//go:build system

package systemtest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// problem is noted and shown at once; the soak goes on.
func (s *soak) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) < 50 && !slices.Contains(s.problems, text) {
		s.problems = append(s.problems, text)
		s.Logf("%v: PROBLEM: %s", time.Since(s.began).Round(time.Second), text)
	}
}

func (s *soak) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

func (s *soak) counted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	for what, n := range s.counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	return fmt.Sprintf("%d status commits, at most %d of %d gateways and %d of %d sensors in flight; %s",
		s.history.seen, s.history.peak["gateways"], gatewayLimit, s.history.peak["sensors"], sensorLimit, strings.Join(parts, ", "))
}

// startedNow reads on and gives the devices that began with a version.
func (s *soak) startedNow(l *line, version string) []string {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.started(l.name, version)
}

// check reads what is new on the status branch.
func (s *soak) check() {
	s.mu.Lock()
	err := s.history.check()
	s.mu.Unlock()
	if err != nil {
		s.problem("%v", err)
	}
}

// traced are the devices that ran the check of a version; a trace's attempts
// only rise.
func (s *soak) traced(l *line, version string) []string {
	var ids []string
	for _, d := range s.devices {
		data, err := os.ReadFile(s.path("disk", "traces", d.id))
		if err != nil {
			continue
		}
		var last int64
		ran := false
		for entry := range strings.Lines(string(data)) {
			number, v, _ := strings.Cut(strings.TrimSpace(entry), " ")
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil || n < last {
				s.problem("%s ran attempt %q behind attempt %d", d.id, number, last)
			}
			last = n
			ran = ran || v == version && d.line == l
		}
		if ran {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// until waits for the status branch; what does not come ends the soak.
func (s *soak) until(what string, limit time.Duration, cond func(status) error) {
	s.Helper()
	s.waitUpTo(limit, what, func() error {
		time.Sleep(500 * time.Millisecond)
		now, err := s.now()
		if err != nil {
			return err
		}
		return cond(now)
	})
}

// settle waits until every device is on its line's target, and looks at the
// devices themselves.
func (s *soak) settle(what string, limit time.Duration) {
	s.Helper()
	s.until(what, limit, func(now status) error {
		for _, d := range s.devices {
			if err := now.is(d.id, "Current", d.line.target); err != nil {
				return err
			}
		}
		return nil
	})
	for _, d := range s.devices {
		for p, want := range map[string]string{
			"etc/edge/release": d.line.target + "\n", "etc/edge/name": d.id + "\n",
			"etc/edge/payload": strings.Repeat(d.line.target+" ", 20_000),
		} {
			if got, err := os.ReadFile(filepath.Join(d.root, p)); err != nil || string(got) != want {
				s.problem("%s on %s: %s holds %.30q, %v", d.id, d.line.target, p, got, err)
			}
		}
		if tools, _ := filepath.Glob(filepath.Join(d.root, "opt/edge/v*")); len(tools) != 1 {
			s.problem("%s on %s has %v", d.id, d.line.target, tools)
		}
	}
}

// watch holds every commit of the status branch against the promises.
func (s *soak) watch(ctx context.Context) {
	for pause(ctx, 500*time.Millisecond) {
		s.check()
	}
	s.check()
}

// sample measures a moment at which everything is at rest.
func (s *soak) sample(round int) {
	s.tidyRepository()
	v := map[string]int64{"status commits": int64(s.seen())}
	s.bench.mu.Lock()
	daemon := s.procs["serve-http"]
	s.bench.mu.Unlock()
	u, err := daemon.usage()
	if err != nil {
		s.problem("the daemon over http: %v", err)
		return
	}
	v["daemon over http: memory"], v["daemon over http: descriptors"], v["daemon over http: threads"] = u.anon, int64(u.files), int64(u.threads)
	stores, _ := filepath.Glob(s.path("disk", "state-serve-http", "*", "fleet.git"))
	for _, store := range stores {
		v["daemon over http: packs of its copy"] += int64(countPacks(store))
	}
	e := extentOf(s.path("disk", "state-serve-http"))
	v["daemon over http: state folder"], v["daemon over http: state folder "] = e.kib, int64(e.files)
	v["local daemon, often killed: state"] = extentOf(s.path("disk", "state-serve-local")).kib
	n := int64(0)
	for _, d := range s.devices {
		state := extentOf(filepath.Join(d.root, "var/lib/gitopsd"))
		v["agents' own state"] += state.kib
		v["agents' own state "] += int64(state.files)
		v["what was managed"] += int64(extentOf(filepath.Join(d.root, "etc"), filepath.Join(d.root, "opt")).files)
		if d.mortal {
			continue
		}
		u, err := d.proc.usage()
		if err != nil {
			s.problem("%s: %v", d.id, err)
			continue
		}
		n++
		v["agents, never killed: memory, mean"] += u.anon
		v["agents, never killed: memory, most"] = max(v["agents, never killed: memory, most"], u.anon)
		v["agents, never killed: descriptors"] = max(v["agents, never killed: descriptors"], int64(u.files))
		v["agents, never killed: threads"] = max(v["agents, never killed: threads"], int64(u.threads))
	}
	v["agents, never killed: memory, mean"] /= max(n, 1)
	v["temporary folder"] = int64(extentOf(s.path("tmp")).files)
	e = extentOf(s.bare)
	v["repository after git gc"], v["repository after git gc "] = e.kib, int64(e.files)
	s.took.add(time.Since(s.began), v)
	s.Logf("%v: round %d: %d status commits, daemon %d KiB %d fds %d packs, agents %d KiB, repository %d KiB", time.Since(s.began).Round(time.Second), round,
		v["status commits"], u.anon, u.files, v["daemon over http: packs of its copy"], v["agents, never killed: memory, mean"], e.kib)
}

func (s *soak) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.seen
}

// judge looks at what only the end shows.
func (s *soak) judge() {
	s.check()
	s.traced(nil, "")
	for _, d := range s.devices {
		// Where a power cut left one, the next update takes it away.
		for _, p := range leftovers(s.bench, d.root) {
			if info, err := os.Stat(p); err == nil && time.Since(info.ModTime()) > time.Minute {
				s.problem("%s was left behind", p)
			}
		}
		aside := 0
		_ = filepath.WalkDir(filepath.Join(d.root, "var/lib/gitopsd"), func(p string, _ fs.DirEntry, _ error) error {
			if strings.Contains(p, ".unreadable-") {
				aside++
			}
			return nil
		})
		if aside > 0 {
			s.problem("%s has %d state files that could not be read", d.id, aside)
		}
	}
	for _, p := range leftovers(s.bench, filepath.Join(s.bare, "refs")) {
		if info, err := os.Stat(p); err == nil && time.Since(info.ModTime()) > time.Minute {
			s.problem("%s was left behind", p)
		}
	}
	for name, p := range s.procs {
		if text := p.text(); strings.Contains(text, "panic:") || strings.Contains(text, "fatal error:") {
			s.problem("%s has crashed:\n%s", name, p.tail(40))
		}
		if !p.running() && (name == "serve-http" || !strings.HasPrefix(name, "serve")) {
			s.problem("%s has ended: %v", name, p.err)
		}
	}
}

// countGoroutines ends a daemon and agents to count their goroutines.
func (s *soak) countGoroutines(daemon string, devices ...*soaked) map[string]int {
	counts := map[string]int{}
	n, err := s.procs[daemon].goroutines()
	if err != nil {
		s.problem("%v", err)
	}
	counts[daemon] = n
	for _, d := range devices {
		n, err := d.proc.goroutines()
		if err != nil {
			s.problem("%v", err)
		}
		counts[d.id] = n
	}
	return counts
}

func goroutineTable(fresh, end map[string]int) string {
	var lines []string
	for name, n := range fresh {
		lines = append(lines, fmt.Sprintf("goroutines of %s when it has just come to rest: %d", name, n))
	}
	for name, n := range end {
		lines = append(lines, fmt.Sprintf("goroutines of %s after all of it: %d", name, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
