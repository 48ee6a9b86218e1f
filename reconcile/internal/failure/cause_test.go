package failure

import (
	"errors"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/schema"
)

const goPanic = `time=2026-11-30T08:50:01.101Z level=INFO msg="edge starts" version=v2.0.0
panic: listen tcp 10.99.0.1:8080: bind: cannot assign requested address

goroutine 1 [running]:
main.main()
	/tmp/build/panic.go:17 +0x1b5
runtime.main()
	/usr/lib/go/src/runtime/panic.go:283 +0x28b`

const podmanPull = `time="2026-11-30T08:41:12Z" level=warning msg="Failed, retrying in 1s ... (1/3). Error: initializing source docker://127.0.0.1:5000/edge:2: pinging container registry 127.0.0.1:5000: Get \"https://127.0.0.1:5000/v2/\": dial tcp 127.0.0.1:5000: connect: connection refused"
time="2026-11-30T08:41:13Z" level=warning msg="Failed, retrying in 1s ... (2/3). Error: initializing source docker://127.0.0.1:5000/edge:2: pinging container registry 127.0.0.1:5000: Get \"https://127.0.0.1:5000/v2/\": dial tcp 127.0.0.1:5000: connect: connection refused"
Error: unable to copy from source docker://127.0.0.1:5000/edge:2: initializing source docker://127.0.0.1:5000/edge:2: pinging container registry 127.0.0.1:5000: Get "https://127.0.0.1:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused`

// cgroups is what podman warns of whatever it is asked for.
const cgroups = "time=\"2026-11-30T11:41:12Z\" level=warning msg=\"Using cgroups-v1 which is deprecated in favor of cgroups-v2. Set environment variable `PODMAN_IGNORE_CGROUPSV1_WARNING` to hide this warning.\""

func TestCause(t *testing.T) {
	for _, c := range []struct{ output, want string }{
		{goPanic, "panic: listen tcp 10.99.0.1:8080: bind: cannot assign requested address"},
		{goPanic + "\n" + strings.ReplaceAll(goPanic, "10.99.0.1", "10.99.0.2"), "panic: listen tcp 10.99.0.2:8080: bind: cannot assign requested address"},
		{podmanPull, podmanPull[strings.LastIndexByte(podmanPull, '\n')+1:]},
		{podmanPull + "\n" + podmanPull[:strings.LastIndexByte(podmanPull, '\n')], podmanPull[strings.LastIndexByte(podmanPull, '\n')+1:]},
		{podmanPull[:strings.IndexByte(podmanPull, '\n')], podmanPull[:strings.IndexByte(podmanPull, '\n')]},
		{"cannot listen on :9090: address already in use\n" + cgroups, "cannot listen on :9090: address already in use"},
		{"shop_db_1 | no room\nshop_web_1 | " + cgroups, "shop_db_1 | no room"},
		{"Error: no such image\n" + cgroups + "\nends", "Error: no such image"},
		{cgroups, cgroups},
		{"time=2026-11-30T08:50:01Z level=WARN msg=\"no line\"\nends with level=warning", "ends with level=warning"},
		{"Traceback (most recent call last):\n  File \"/app/errors.py\", line 3, in <module>\n    s.bind((\"10.99.0.1\", 80))\nOSError: [Errno 99] Cannot assign requested address\nbye", "OSError: [Errno 99] Cannot assign requested address"},
		{"Exception in thread \"main\" java.net.BindException: Address already in use\n\tat java.base/sun.nio.ch.Net.bind0(Native Method)", "Exception in thread \"main\" java.net.BindException: Address already in use"},
		{"2026/11/30 08:50:01 [emerg] 1#1: bind() to 10.99.0.1:80 failed (99: Cannot assign requested address)\nexits now", "2026/11/30 08:50:01 [emerg] 1#1: bind() to 10.99.0.1:80 failed (99: Cannot assign requested address)"},
		{"time=2026-11-30T08:50:01Z level=ERROR msg=\"no such device\" path=/dev/ttyUSB0\ntime=2026-11-30T08:50:01Z level=INFO msg=ends", "time=2026-11-30T08:50:01Z level=ERROR msg=\"no such device\" path=/dev/ttyUSB0"},
		{"{\"level\":\"fatal\",\"msg\":\"no key\"}\n{\"level\":\"info\",\"msg\":\"ends\"}", "{\"level\":\"fatal\",\"msg\":\"no key\"}"},
		{"shop_db_1 | FATAL no room\nshop_web_1 | waits", "shop_db_1 | FATAL no room"},
		{"checks the line\nthe line is down\n", "the line is down"},
		{"0 errors: all is well\nends", "ends"},
		{"\n \n", ""}, {"", ""},
	} {
		if got := Cause(c.output); got != c.want {
			t.Errorf("of\n%s\nthe cause is %q, want %q", c.output, got, c.want)
		}
	}
}

func TestFirstLineTellsTheCause(t *testing.T) {
	said := func(element, what, output string) error {
		return &Error{Class: schema.ClassRetryable, Component: "applications", Element: element, Err: errors.New(what), Output: output}
	}
	beside := func(output string) error {
		return &Error{Class: schema.ClassPermanent, Component: "applications", Element: "edge", Err: errors.New("it answers 503"), Output: output, Beside: true}
	}
	long := strings.Repeat("no route to the line ", 20) + "at all"
	restarted, pull := said("edge", "it is not healthy: edge.service was restarted, 5 times so far", goPanic), said("edge", "image 127.0.0.1:5000/edge:2: podman ended with exit code 125", podmanPull)
	for _, c := range []struct {
		err   error
		first string
		below string
	}{
		{restarted, "applications edge: panic: listen tcp 10.99.0.1:8080: bind: cannot assign requested address (it is not healthy: edge.service was restarted, 5 times so far)", goPanic},
		{pull, "applications edge: Error: unable to copy from source docker…ontainer registry 127.0.0.1:5000: Get \"https://127.0.0.1:5000/v2/\": dial tcp 127.0.0.1:5000: connect: connection refused (image 127.0.0.1:5000/edge:2: podman ended with exit code 125)", podmanPull},
		{said("edge", "it has failed", "no such file\n"), "applications edge: no such file (it has failed)", ""},
		{said("edge", "it has failed", "Error: token=hunter2hunter2\nends"), "applications edge: Error: token=[removed] (it has failed)", "Error: token=[removed]\nends"},
		{Join(said("a", "no", "starts\nError: one"), said("b", "no", "Error: two\nends")), "applications a: Error: one (no); applications b: Error: two (no)", "starts\nError: one\nError: two\nends"},
		{said("edge", "it has failed", long), "applications edge: " + shortCause(long) + " (it has failed)", long},
		{beside("GET /healthz 503"), "applications edge: it answers 503: GET /healthz 503", ""},
		{beside("ERROR no queue\nGET /healthz 503"), "applications edge: ERROR no queue (it answers 503)", "ERROR no queue\nGET /healthz 503"},
	} {
		if first, below, _ := strings.Cut(c.err.Error(), "\n"); first != c.first || below != c.below {
			t.Errorf("%q\nwant first %q", c.err, c.first)
		}
	}
}
