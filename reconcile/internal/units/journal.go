package units

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/reconcile/internal/hooks"
	"github.com/gitopsd/gitopsd/schema"
)

const (
	// journalLines is how much of a unit's own end is told, in lines: a trace
	// with the runs before it. A failure is bounded in bytes too.
	journalLines = 60
	// journalEntries are looked at for these: podman and systemd write a dozen
	// of each start of a container.
	journalEntries = 300
	// journalBytes are kept of the entries, with the names of their fields.
	journalBytes = 256 << 10
	// journalLimit is for a journal on a slow card, in seconds.
	journalLimit = 20
)

// Starts are those of units whose words are asked for: what they said in an
// earlier attempt would be taken for the cause of this one's end.
type Starts struct {
	Units   []string
	Since   time.Duration // all words from then on, on [Clock], …
	Running []string      // … and of these invocations, which may be older, …
	Ended   []string      // … but for these: a program that is stopped may complain
}

// Clock is the one that the journal writes into its entries, and nobody sets;
// 0 where there is none, which leaves out no entry.
func Clock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Journal gives the end of what the programs of units have said in starts of
// this boot, for a failure's output; "" where nothing can be had.
func Journal(ctx context.Context, of Starts) string {
	if len(of.Units) == 0 { // which journalctl takes for all that there are
		return ""
	}
	argv := []string{"journalctl", "--no-pager", "--quiet", "--all", "--output=json",
		"--output-fields=MESSAGE,SYSLOG_IDENTIFIER,PODMAN_EVENT,_SYSTEMD_INVOCATION_ID,INVOCATION_ID",
		"--boot", fmt.Sprintf("--lines=%d", journalEntries)}
	for _, unit := range of.Units {
		argv = append(argv, "--unit="+unit)
	}
	out, err := hooks.Output(ctx, argv, "/", nil, journalLimit, journalBytes)
	if err != nil {
		return ""
	}
	return ownWords(out, of)
}

// entry is one of the journal, as journalctl writes it.
type entry struct {
	At         string          `json:"__MONOTONIC_TIMESTAMP"` // microseconds
	Message    json.RawMessage `json:"MESSAGE"`
	Identifier json.RawMessage `json:"SYSLOG_IDENTIFIER"`
	Event      json.RawMessage `json:"PODMAN_EVENT"`
	Start      json.RawMessage `json:"_SYSTEMD_INVOCATION_ID"`
	StartOf    json.RawMessage `json:"INVOCATION_ID"` // of the unit that systemd speaks of
}

// has says whether an entry is of these starts.
func (of *Starts) has(e *entry) bool {
	start := e.Start
	if len(e.StartOf) > 0 { // systemd has an invocation of its own
		start = e.StartOf
	}
	if id := strings.Trim(string(start), `"`); id != "" {
		switch {
		case slices.Contains(of.Ended, id):
			return false
		case slices.Contains(of.Running, id):
			return true
		}
	}
	at, err := strconv.ParseInt(e.At, 10, 64)
	return err == nil && at >= of.Since.Microseconds()
}

// text is its message without control characters: a string, or bytes where
// that is no plain text.
func (e *entry) text() string {
	var s string
	if json.Unmarshal(e.Message, &s) != nil {
		var codes []uint16 // not []byte, which is a string in JSON
		if json.Unmarshal(e.Message, &codes) != nil {
			return ""
		}
		b := make([]byte, len(codes))
		for i, c := range codes {
			b[i] = byte(c)
		}
		s = strings.ToValidUTF8(string(b), "\uFFFD")
	}
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, colour.ReplaceAllString(s, "")), " \n")
}

// ownWords are those of the program itself, the end of them, with what systemd
// says of an end that the program does not know of; where it said nothing, what
// systemd says of its end.
func ownWords(journal string, of Starts) string {
	var own, ends []string
	for line := range strings.SplitSeq(journal, "\n") {
		var e entry
		if json.Unmarshal([]byte(line), &e) != nil || !of.has(&e) {
			continue // the first may be cut
		}
		text, from := e.text(), string(e.Identifier)
		switch {
		case text == "" || len(e.Event) > 0 || from == `"conmon"` || containerNoise.MatchString(text):
		case from != `"systemd"`:
			own = append(own, text)
		case routine.MatchString(text):
		case plainEnd.MatchString(text):
			ends = append(ends, text)
		default:
			own = append(own, text)
		}
	}
	if len(own) == 0 {
		own = ends
	}
	return strings.Join(own[max(0, len(own)-journalLines):], "\n")
}

var (
	// colour is how a program writes for a terminal.
	colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	// containerNoise is what podman and conmon write beside the program: the id
	// of a container, and conmon's trouble with its own files.
	containerNoise = regexp.MustCompile(`^(?:[0-9a-f]{64}$|\[?conmon[: ])`)
	// routine is what systemd says of every start and stop.
	routine = regexp.MustCompile(`^(?:Starting|Started|Stopping|Stopped|Closed|Listening|Reloading|Reloaded) |: (?:Deactivated successfully\.|Consumed |Scheduled restart job)`)
	// plainEnd is what systemd says of a program that ended by itself: the unit's
	// state has it, and the program knows better why.
	plainEnd = regexp.MustCompile(`^Failed to start |: (?:Main process exited, code=exited|Control process exited, code=exited|Failed with result 'exit-code'|Start request repeated too quickly)`)
)

// jobFailure makes a failure of what [Manager.Do] says of one job.
func (c *Controller) jobFailure(ctx context.Context, err error, b begun) error {
	var j *JobError
	if !errors.As(err, &j) {
		return failed("", err)
	}
	return c.unitFailure(ctx, j.class(), j.Unit, b, j)
}

// unitFailure tells what became of a unit, with the end of its journal.
func (c *Controller) unitFailure(ctx context.Context, class schema.FailureClass, unit string, b begun, err error) error {
	said := c.journal(ctx, Starts{Units: []string{unit}, Since: b.at, Ended: b.ended})
	return &failure.Error{Class: class, Component: component, Element: unit, Output: said, Err: err}
}
