package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/failure"
	"github.com/gitopsd/gitopsd/schema"
)

func seconds(n float64) *schema.Duration {
	d := schema.Duration(n * float64(time.Second))
	return &d
}

func sh(script string) *schema.Hook { return &schema.Hook{Run: []string{"/bin/sh", "-c", script}} }

func one(h *schema.Hook) map[string]*schema.Hook { return map[string]*schema.Hook{"h": h} }

func class(err error) schema.FailureClass {
	if err == nil {
		return ""
	}
	return failure.From(err).Class
}

func TestRun_ByOrderThenNameAndStopsAtTheFirstFailure(t *testing.T) {
	root := t.TempDir()
	say := func(name string, order int, end string) *schema.Hook {
		h := sh("echo " + name + " >>said; exit " + end)
		h.Order = order
		return h
	}
	hooks := map[string]*schema.Hook{
		"z": say("z", -1, "0"), "b": say("b", 0, "0"), "a": say("a", 0, "3"), "c": say("c", 1, "1"), "d": say("d", 2, "0"),
	}
	hooks["a"].OnFailure = schema.OnFailureIgnore
	var warned []string
	err := Run(t.Context(), AfterUpdating, hooks, Context{Root: root}, Watch{Warn: func(err error) { warned = append(warned, err.Error()) }})
	said, _ := os.ReadFile(filepath.Join(root, "said"))
	if string(said) != "z\na\nb\nc\n" {
		t.Errorf("ran %q", said)
	}
	f := failure.From(err)
	if f.Class != schema.ClassPermanent || f.Element != "afterUpdating/c" || f.Component != "hooks" {
		t.Errorf("failure %+v", f)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "afterUpdating/a") || !strings.Contains(warned[0], "exit code 3") {
		t.Errorf("warned %q", warned)
	}
	if list, _ := os.ReadDir(filepath.Join(root, "run/gitopsd")); len(list) != 0 {
		t.Errorf("left in /run/gitopsd: %v", list)
	}
}

func TestRun_Classes(t *testing.T) {
	for _, c := range []struct {
		point  Point
		hook   *schema.Hook
		ignore bool
		want   schema.FailureClass
	}{
		{BeforeUpdating, sh("exit 0"), false, ""},
		{BeforeUpdating, sh("exit 75"), false, schema.ClassDeferred},
		{BeforeUpdating, sh("exit 75"), true, schema.ClassDeferred},
		{AfterUpdating, sh("exit 75"), false, schema.ClassPermanent},
		{BeforeUpdating, sh("exit 1"), false, schema.ClassPermanent},
		{BeforeUpdating, sh("exit 1"), true, ""},
		{BeforeUpdating, sh("kill -9 $$"), false, schema.ClassPermanent},
		{BeforeUpdating, sh("sleep 60"), false, schema.ClassRetryable},
		{AfterUpdating, sh("sleep 60"), false, schema.ClassPermanent},
		{AfterRebooting, &schema.Hook{Run: []string{"/no/such/program"}}, false, schema.ClassPermanent},
		{AfterRebooting, &schema.Hook{}, false, schema.ClassPermanent},
		{AfterRebooting, nil, false, schema.ClassPermanent},
		{BeforeRebooting, &schema.Hook{Run: []string{"/etc"}}, false, schema.ClassPermanent},
	} {
		if c.hook != nil {
			c.hook.Timeout = seconds(0.2)
			if c.ignore {
				c.hook.OnFailure = schema.OnFailureIgnore
			}
		}
		if got := class(Run(t.Context(), c.point, one(c.hook), Context{Root: t.TempDir()}, Watch{})); got != c.want {
			t.Errorf("%s %+v: class %q, want %q", c.point, c.hook, got, c.want)
		}
	}
}

func TestRun_Environment(t *testing.T) {
	t.Setenv("GIT_TOKEN", "secret")
	t.Setenv("CREDENTIALS_DIRECTORY", "/run/credentials")
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "srv/app"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := sh(`env | sort >env; cp "$GITOPSD_CHANGED_FILES" changed; pwd >pwd`)
	h.Env = map[string]string{"OWN": "a b\nc", "HOME": "/elsewhere"}
	h.WorkDir = "/srv/app"
	c := Context{Root: root, Device: "gw-1", From: "v1", To: "v2", Attempt: 7, Changed: []string{"/etc/a b", "/etc/c\nd"}, RollingBack: true}
	if err := Run(t.Context(), AfterUpdating, one(h), c, Watch{}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, "srv/app", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	env := read("env")
	for _, want := range []string{
		"GITOPSD_ROOT=" + root, "GITOPSD_DEVICE=gw-1", "GITOPSD_FROM=v1", "GITOPSD_TO=v2", "GITOPSD_ATTEMPT=7", "GITOPSD_REBOOT_PENDING=0",
		"GITOPSD_ROLLING_BACK=1", "OWN=a b", "HOME=/elsewhere", "PATH=" + os.Getenv("PATH"),
		"GITOPSD_CHANGED_FILES=" + root + "/run/gitopsd/changed-files",
	} {
		if !strings.Contains("\n"+env, "\n"+want+"\n") {
			t.Errorf("environment has no %q:\n%s", want, env)
		}
	}
	if strings.Contains(env, "secret") || strings.Contains(env, "CREDENTIALS") {
		t.Errorf("the agent's own environment is handed on:\n%s", env)
	}
	if got := read("changed"); got != "/etc/a b\x00/etc/c\nd\x00" {
		t.Errorf("changed files %q", got)
	}
	if got := strings.TrimSpace(read("pwd")); got != filepath.Join(root, "srv/app") {
		t.Errorf("working folder %s", got)
	}
}

func TestCheck_ResolvesEveryProgram(t *testing.T) {
	root := t.TempDir()
	for name, mode := range map[string]os.FileMode{"opt/ok": 0o755, "opt/plain": 0o644} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/opt/ok", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	run := func(argv ...string) *schema.Hook { return &schema.Hook{Run: argv} }
	in := func(dir string, h *schema.Hook) *schema.Hook { h.WorkDir = dir; return h }
	good := &schema.Hooks{
		BeforeUpdating: map[string]*schema.Hook{"a": run("sh", "-c", ":"), "b": run("/bin/sh"), "c": run("opt/ok"), "d": run("./link")},
		AfterRebooting: map[string]*schema.Hook{"e": in("/opt", run("./ok")), "f": in("opt", run("../../../opt/ok"))},
	}
	if err := Check(root, good); err != nil {
		t.Errorf("good hooks: %v", err)
	}
	if err := Check(root, nil); err != nil {
		t.Errorf("no hooks: %v", err)
	}
	bad := map[string]*schema.Hook{
		"missing": run("/no/such"), "name": run("no-such-program-here"), "plain": run("opt/plain"), "folder": run("/etc"),
		"nothing": run(), "empty": run(""), "nul": run("sh", "a\x00b"), "dir": in("/nowhere", run("sh")), "file": in("/opt/ok", run("sh")),
		"env": {Run: []string{"sh"}, Env: map[string]string{"A=B": ""}}, "own": {Run: []string{"sh"}, Env: map[string]string{"GITOPSD_TO": ""}},
	}
	err := Check(root, &schema.Hooks{BeforeRebooting: bad})
	if class(err) != schema.ClassPermanent {
		t.Fatalf("bad hooks: %v", err)
	}
	for name := range bad {
		if !strings.Contains(err.Error(), "beforeRebooting/"+name+":") {
			t.Errorf("%s is not told: %v", name, err)
		}
	}
}

// TestB97_NothingKeepsAHookHanging: it returns within its time and the grace,
// whatever its children do, and after a timeout none of them is left.
func TestB97_NothingKeepsAHookHanging(t *testing.T) {
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Log("without setsid: its cases are not shown")
	}
	for _, c := range []struct {
		name, script string
		want         schema.FailureClass
		stays        bool // the child of a hook that ended well stays
	}{
		{"background child", "sleep 613 & echo ok", "", true},
		{"pipe", "sleep 613 | cat", schema.ClassPermanent, false},
		{"own session", "setsid sleep 613 & echo ok", "", true},
		{"own session and waits", "setsid sleep 613 & sleep 613", schema.ClassPermanent, false},
		{"orphan session and waits", "(setsid sleep 613 &) ; sleep 613", schema.ClassPermanent, false},
		{"ignores TERM", "(trap '' TERM; sleep 613; sleep 613)", schema.ClassPermanent, false},
		{"all ignore TERM", "trap '' TERM; sleep 613 & while :; do sleep 613; done", schema.ClassPermanent, false},
		{"fails and leaves a child", "sleep 613 & exit 1", schema.ClassPermanent, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			h := sh(c.script)
			h.Timeout = seconds(0.4)
			begin := time.Now()
			err := Run(t.Context(), AfterUpdating, one(h), Context{Root: root}, Watch{})
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if class(err) != c.want {
				t.Errorf("%v, want class %q", err, c.want)
			}
			left := sleepers(t, root)
			for deadline := time.Now().Add(2 * time.Second); !c.stays && len(left) > 0 && time.Now().Before(deadline); left = sleepers(t, root) {
				time.Sleep(10 * time.Millisecond) // the kernel takes a moment to bury them
			}
			if !c.stays && len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
			if c.stays && len(left) == 0 && !strings.Contains(c.script, "setsid") {
				t.Error("the child of a hook that ended well is gone")
			}
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// sleepers finds the processes whose working folder is the test's own root.
func sleepers(t *testing.T, root string) []int {
	t.Helper()
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, l := range links {
		if dir, err := os.Readlink(l); err == nil && dir == root {
			var pid int
			if _, err := fmt.Sscanf(l, "/proc/%d/cwd", &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestRun_StoppedIsNoFailure(t *testing.T) {
	t.Parallel() // it waits for stopGrace
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	h := sh("sleep 613")
	h.OnFailure = schema.OnFailureIgnore
	err := Run(ctx, AfterUpdating, one(h), Context{Root: t.TempDir()}, Watch{})
	var f *failure.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &f) {
		t.Errorf("%v, want the context's own error", err)
	}
}

func TestOutput_IsBoundedText(t *testing.T) {
	err := Run(t.Context(), AfterUpdating, one(sh(`head -c 300000 /dev/zero | tr '\0' x; printf '\033[31mred\377\000 end\n' >&2; exit 4`)), Context{Root: t.TempDir()}, Watch{})
	out := failure.From(err).Output
	if len(out) > maxOutput || len(out) < maxOutput/2 || !strings.HasSuffix(out, "[31mred\uFFFD end") || strings.ContainsRune(out, 0x1b) {
		t.Errorf("%d bytes, ends with %q", len(out), out[max(0, len(out)-40):])
	}
	got, err := Command(t.Context(), []string{"sh", "-c", "echo v1; echo noise >&2"}, t.TempDir(), nil, 5)
	if got != "v1" || err != nil {
		t.Errorf("stdout %q, %v", got, err)
	}
	_, err = Command(t.Context(), []string{"sh", "-c", "echo why >&2; exit 9"}, t.TempDir(), nil, 5)
	var end *Exit
	if !errors.As(err, &end) || end.Code != 9 || end.Output != "why" {
		t.Errorf("%#v", err)
	}
	for _, argv := range [][]string{nil, {""}, {"no-such-program-here"}} {
		if _, err := Command(t.Context(), argv, t.TempDir(), nil, 5); err == nil {
			t.Errorf("%q ran", argv)
		}
	}
}

func TestRun_ProgramWrittenAMomentAgo(t *testing.T) {
	root := t.TempDir()
	p := filepath.Join(root, "fresh")
	if err := os.WriteFile(p, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(p, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(30*time.Millisecond, func() { w.Close() })
	if err := Run(t.Context(), AfterUpdating, one(&schema.Hook{Run: []string{"./fresh"}}), Context{Root: root}, Watch{}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(p, []byte("exit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err = Run(t.Context(), AfterUpdating, one(&schema.Hook{Run: []string{"./fresh"}}), Context{Root: root}, Watch{})
	if class(err) != schema.ClassPermanent || !strings.Contains(err.Error(), "#!") {
		t.Errorf("without an interpreter: %v", err)
	}
}
