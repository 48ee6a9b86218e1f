package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gitopsd/gitopsd/internal/agentsocket"
	"github.com/gitopsd/gitopsd/schema"
)

// evil has what steers a terminal, turns text around, or looks like a line of
// the program's own.
const evil = "x\x1b]0;owned\x07\x1b[2J\u202e\u0085\r\n\u2028\u009b31mversion v9\x00\x7f"

// steering are the characters of evil that no output may have. A line break is
// judged by what follows it.
const steering = "\x1b\x07\u202e\u0085\r\u2028\u009b\x00\x7f"

// stuff makes every text in a value hostile, and every list and pointer hold
// something.
func stuff(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		stuff(v.Elem())
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				stuff(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			stuff(v.Index(0))
			stuff(v.Index(1))
		}
	case reflect.String:
		v.SetString(evil)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// hostileAgent answers at the socket of a root.
func hostileAgent(t *testing.T, root string, answer func(r agentsocket.Request) []agentsocket.Reply) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(agentsocket.Path(root)), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", agentsocket.Path(root))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadBytes('\n')
			var r agentsocket.Request
			_ = json.Unmarshal(line, &r)
			enc := json.NewEncoder(conn)
			for _, one := range answer(r) {
				_ = enc.Encode(one)
			}
			conn.Close()
		}
	}()
}

// What fleet content made the agent say never steers the terminal of who asks.
func TestAnswersOfTheAgentAreHarmless(t *testing.T) {
	root, err := os.MkdirTemp("", "a") // short enough for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	var phase schema.Phase
	hostileAgent(t, root, func(r agentsocket.Request) []agentsocket.Reply {
		var all agentsocket.Reply
		stuff(reflect.ValueOf(&all).Elem())
		all.Standing.Report.Phase = phase
		if phase == "" {
			return []agentsocket.Reply{{Error: evil}}
		}
		all.Error, all.Comparison.Changes[0].Hidden = "", ""
		all.Ran.HandOver = false // or it is waited for who takes over
		if r.Do == agentsocket.DoRunNow {
			return []agentsocket.Reply{{Fetched: all.Fetched}, {Ran: all.Ran}}
		}
		return []agentsocket.Reply{all}
	})
	for _, phase = range []schema.Phase{"", evil, schema.PhaseUpdated, schema.PhaseObserving, schema.PhaseWaiting, schema.PhaseDegraded, schema.PhaseError, schema.PhaseRollingBack, schema.PhaseStarting, schema.PhaseRebooting} {
		for _, args := range [][]string{{"status"}, {"explain"}, {"diff"}, {"diff", "--current"}, {"status", "-o", "json"}, {"explain", "-o", "json"}, {"diff", "-o", "json"}, {"run-now", "--wait"}, {"hold", "--reason", "x"}, {"unhold"}, {"snooze", "1h", "--reason", "x"}, {"snooze", "--end"}} {
			harmless(t, append(append([]string{"agent"}, args...), "--root", root)...)
		}
	}
}

func harmless(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	run(context.Background(), args, strings.NewReader(""), &out, &errs, nil)
	for _, text := range []string{out.String(), errs.String()} {
		if i := strings.IndexAny(text, steering); i >= 0 || strings.Contains(text, "\nversion v9") || strings.Contains(text, "\n31mversion v9") {
			t.Errorf("%q: a control character at %d of\n%q", args, i, text)
		}
	}
	return out.String()
}

// Nor does what stands on a machine that is imported.
func TestImportedTextsAreHarmless(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/evil": evil, "etc/\x1b[2J\u202ename": "x\n", "etc/containers/systemd/web/web.container": "[Container]\nImage=" + evil + "\n",
		"etc/containers/systemd/web/\x1b[2J.container": "[Container]\nImage=x\n", "etc/systemd/system/\u202e.service": "[Service]\n", "etc/shown": "x \u009b\x7f\u2028 y\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"--file", "/etc/evil"}, {"--file", "/etc/\x1b[2J\u202ename"}, {"--file", "/etc/shown"}, {"--application", "web"}, {"--application", evil}, {"--unit", "\u202e.service"}, {"--unit", evil}, {"--file", "/" + evil},
	} {
		harmless(t, append([]string{"agent", "import", "--device", "gw-1", "--root", root}, args...)...)
	}
}
