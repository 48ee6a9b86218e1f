//go:build system

package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what one process holds.
type usage struct {
	anon    int64 // KiB of memory that is its own
	files   int   // open descriptors
	threads int
}

// usage reads the kernel's books.
func (p *process) usage() (usage, error) {
	dir := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid))
	data, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return usage{}, err
	}
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return usage{}, err
	}
	u := usage{files: len(fds)}
	for l := range strings.Lines(string(data)) {
		fields := strings.Fields(l)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "RssAnon:":
			u.anon = n
		case "Threads:":
			u.threads = int(n)
		}
	}
	return u, nil
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ `)

// goroutines ends the process with the signal that makes a Go program print
// all of its goroutines, and counts them.
func (p *process) goroutines() (int, error) {
	from := len(p.text())
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGQUIT); err != nil {
		return 0, err
	}
	select {
	case <-p.done:
	case <-time.After(endLimit):
		return 0, fmt.Errorf("%s did not end", p.name)
	}
	text := p.text()[from:]
	n := len(goroutine.FindAllString(text, -1))
	if n == 0 {
		return 0, fmt.Errorf("%s printed no goroutines: %.300q", p.name, text)
	}
	return n, nil
}

// extent is what stands below folders.
type extent struct {
	files int
	kib   int64
}

func extentOf(dirs ...string) extent {
	var e extent
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil // gone meanwhile
			}
			if info, err := d.Info(); err == nil {
				e.files++
				e.kib += info.Sys().(*syscall.Stat_t).Blocks / 2
			}
			return nil
		})
	}
	return e
}

func countPacks(store string) int {
	packs, _ := filepath.Glob(filepath.Join(store, "objects", "pack", "*.pack"))
	return len(packs)
}

// sample is one settled moment.
type sample struct {
	at     time.Duration
	values map[string]int64
}

// growth is a line of the table: what may at most be at the end, of what was.
type growth struct {
	name  string
	unit  string
	limit func(early int64) int64
}

// samples are taken whenever everything has come to rest.
type samples struct {
	rows []growth
	list []sample
}

func (s *samples) add(at time.Duration, values map[string]int64) {
	s.list = append(s.list, sample{at, values})
}

// settledAfter is how many samples belong to the start: caches fill, the first
// rounds are the first of their kind.
const settledAfter = 3

// median of three samples from one on: one may have met a garbage collection.
func (s *samples) median(from int, name string) int64 {
	var v []int64
	for _, one := range s.list[from:min(from+3, len(s.list))] {
		v = append(v, one.values[name])
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// table compares a settled early moment with the end; problems names what has
// grown beyond its limit.
func (s *samples) table() (text string, problems []string) {
	if len(s.list) < settledAfter+4 {
		return "", []string{fmt.Sprintf("only %d rounds came to rest: too few to compare", len(s.list))}
	}
	early, last := settledAfter, len(s.list)-3
	var b strings.Builder
	fmt.Fprintf(&b, "%-38s %12s %12s %12s %12s\n", "", s.list[0].at.Round(time.Second), s.list[early].at.Round(time.Second), s.list[len(s.list)-1].at.Round(time.Second), "limit")
	for _, g := range s.rows {
		was, is := s.median(early, g.name), s.median(last, g.name)
		limit := "-"
		if g.limit != nil {
			most := g.limit(was)
			limit = fmt.Sprint(most)
			if is > most {
				problems = append(problems, fmt.Sprintf("%s grew from %d to %d %s, at most %d was expected", g.name, was, is, g.unit, most))
			}
		}
		fmt.Fprintf(&b, "%-38s %12d %12d %12d %12s\n", g.name+" ("+g.unit+")", s.list[0].values[g.name], was, is, limit)
	}
	return b.String(), problems
}

// plus allows a fixed amount, grown a part in percent and an amount.
func plus(n int64) func(int64) int64 { return func(was int64) int64 { return was + n } }

func grown(percent, n int64) func(int64) int64 {
	return func(was int64) int64 { return was + was*percent/100 + n }
}

func atMost(n int64) func(int64) int64 { return func(int64) int64 { return n } }
