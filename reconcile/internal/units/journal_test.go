package units

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
)

// containerJournal is one start of a quadlet's container whose program panics.
const containerJournal = `systemd|Starting edge.service...
podman event|2026-11-30 08:50:00.812 +0000 UTC m=+0.061 container create 0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9 (image=localhost/edge:2, name=systemd-edge, PODMAN_SYSTEMD_UNIT=edge.service)
conmon|conmon 0a1b2c3d4e5f60718293 <nwarn>: Failed to open cgroups file: /sys/fs/cgroup/system.slice/edge.service/libpod-payload/memory.events
edge|conmon 0a1b2c3d4e5f60718293 <nwarn>: runtime stderr: exec failed
podman event|2026-11-30 08:50:01.002 +0000 UTC m=+0.251 container init 0a1b2c3d4e5f (image=localhost/edge:2, name=systemd-edge)
systemd|Started edge.service.
edge|0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9
systemd-edge|panic: listen tcp 10.99.0.1:8080: bind: cannot assign requested address
systemd-edge|
systemd-edge|goroutine 1 [running]:
systemd-edge|main.main()
systemd-edge|	/tmp/build/main.go:17 +0x1b5
conmon|conmon 0a1b2c3d4e5f60718293 <ninfo>: container 12345 exited with status 2
podman event|2026-11-30 08:50:01.402 +0000 UTC m=+0.051 container died 0a1b2c3d4e5f (image=localhost/edge:2, name=systemd-edge)
podman event|2026-11-30 08:50:01.502 +0000 UTC m=+0.151 container remove 0a1b2c3d4e5f (image=localhost/edge:2, name=systemd-edge)
systemd|edge.service: Main process exited, code=exited, status=2/INVALIDARGUMENT
systemd|edge.service: Failed with result 'exit-code'.
systemd|edge.service: Scheduled restart job, restart counter is at 5.`

// asJSON writes a journal as journalctl does; a line is who, and what.
func asJSON(t *testing.T, journal string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.SplitSeq(journal, "\n") {
		who, what, _ := strings.Cut(line, "|")
		e := map[string]any{"__REALTIME_TIMESTAMP": "1796028600812000", "__MONOTONIC_TIMESTAMP": "94812000", "MESSAGE": what}
		e["SYSLOG_IDENTIFIER"], _, _ = strings.Cut(who, " ")
		if strings.HasSuffix(who, " event") {
			e["PODMAN_EVENT"] = "create"
		}
		if strings.ContainsRune(what, '\x1b') { // then it writes the bytes
			codes := []int{}
			for _, c := range []byte(what) {
				codes = append(codes, int(c))
			}
			e["MESSAGE"] = codes
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

func TestOwnWords(t *testing.T) {
	const panicked = "panic: listen tcp 10.99.0.1:8080: bind: cannot assign requested address\ngoroutine 1 [running]:\nmain.main()\n\t/tmp/build/main.go:17 +0x1b5"
	for _, c := range []struct{ name, journal, want string }{
		{"a container", containerJournal, panicked},
		{"a container that was restarted", containerJournal + "\n" + containerJournal, panicked + "\n" + panicked},
		{"podman itself", "edge|Error: statfs /srv/edge: no such file or directory\nsystemd|edge.service: Control process exited, code=exited, status=125/n/a", "Error: statfs /srv/edge: no such file or directory"},
		{"nothing of its own", "systemd|Starting edge.service...\nsystemd|edge.service: Main process exited, code=exited, status=3/NOTIMPLEMENTED", "edge.service: Main process exited, code=exited, status=3/NOTIMPLEMENTED"},
		{"killed for its memory", "edge|works\nsystemd|edge.service: A process of this unit has been killed by the OOM killer.", "works\nedge.service: A process of this unit has been killed by the OOM killer."},
		{"written for a terminal", "edge|\x1b[31mERROR\x1b[0m no \x07key", "ERROR no key"},
		{"nothing", "", ""},
	} {
		if got := ownWords(asJSON(t, c.journal), Starts{}); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	cut := asJSON(t, containerJournal)[40:]
	if got := ownWords(cut, Starts{}); got != panicked {
		t.Errorf("with a cut first line:\n%s", got)
	}
	if got := failure.Cause(ownWords(asJSON(t, containerJournal), Starts{})); got != "panic: listen tcp 10.99.0.1:8080: bind: cannot assign requested address" {
		t.Errorf("the cause is %q", got)
	}
	const at = `{"__MONOTONIC_TIMESTAMP":"1",`
	if got := ownWords(at+`"MESSAGE":null}`+"\n"+at+`"MESSAGE":[1,2,"x"]}`+"\n"+at+`"MESSAGE":"a","SYSLOG_IDENTIFIER":["x","y"]}`, Starts{}); got != "a" {
		t.Errorf("odd fields give %q", got)
	}
}

// Words of an earlier attempt, and those of a program that is stopped, say
// nothing of why this start failed.
func TestWordsOfAnotherStart(t *testing.T) {
	line := func(at int, start, text string) string {
		return fmt.Sprintf(`{"__MONOTONIC_TIMESTAMP":"%d","_SYSTEMD_INVOCATION_ID":"%s","SYSLOG_IDENTIFIER":"web","MESSAGE":"%s"}`, at, start, text)
	}
	journal := strings.Join([]string{
		line(40_000_000, "a1", "Error: cannot open database"),
		line(50_000_000, "b2", "begins"),
		line(61_000_000, "b2", "Error: stopped while a client was served"),
		`{"__MONOTONIC_TIMESTAMP":"61000001","INVOCATION_ID":"b2","_SYSTEMD_INVOCATION_ID":"99","SYSLOG_IDENTIFIER":"systemd","MESSAGE":"web.service: killed by the OOM killer"}`,
		line(62_000_000, "c3", "listen tcp: address 99999: invalid port"),
		line(63_000_000, "d4", "listen tcp: address 99999: invalid port again"),
	}, "\n")
	for _, c := range []struct {
		name string
		of   Starts
		want string
	}{
		{"since it began", Starts{Since: 62 * time.Second}, "listen tcp: address 99999: invalid port\nlisten tcp: address 99999: invalid port again"},
		{"with a restart", Starts{Since: 60 * time.Second, Ended: []string{"b2", ""}}, "listen tcp: address 99999: invalid port\nlisten tcp: address 99999: invalid port again"},
		{"it ran before", Starts{Since: 64 * time.Second, Running: []string{"d4", ""}}, "listen tcp: address 99999: invalid port again"},
		{"it said nothing", Starts{Since: 64 * time.Second}, ""},
	} {
		if got := ownWords(journal, c.of); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestOwnWordsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "edge|line %d\n", i)
	}
	got := strings.Split(ownWords(asJSON(t, b.String()), Starts{}), "\n")
	if len(got) != journalLines || got[len(got)-1] != "line 199" {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}
