//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Limits. Nothing waits for a fixed time: these end a test that will not come
// out, also on a machine under load.
const (
	waitLimit = 90 * time.Second
	waitEvery = 50 * time.Millisecond
	// endLimit is what a process may take to end after it was asked to.
	endLimit = 20 * time.Second
)

// seeded gives chance; with GITOPSD_SEED it is that of an earlier run.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("GITOPSD_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("GITOPSD_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// unable skips a test that this machine cannot run, or fails it where nothing
// may be skipped.
func unable(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("GITOPSD_NO_SKIP") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// need finds a program, also where only root has a path to.
func need(t testing.TB, program, debian string) string {
	t.Helper()
	if p, err := exec.LookPath(program); err == nil {
		return p
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		p := filepath.Join(dir, program)
		if info, err := os.Stat(p); err == nil && info.Mode()&0o111 != 0 {
			return p
		}
	}
	unable(t, "the program %s is missing (Debian: %s)", program, debian)
	return ""
}

func needRoot(t testing.TB, why string) {
	t.Helper()
	if os.Getuid() != 0 {
		unable(t, "only root can %s", why)
	}
}

// binary builds gitopsd once for all tests of a run.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gitopsd-system-")
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "gitopsd")
	out, err := exec.Command("go", "build", "-o", exe, "github.com/gitopsd/gitopsd/cmd/gitopsd").CombinedOutput()
	if err != nil {
		return exe, fmt.Errorf("build gitopsd: %w\n%s", err, out)
	}
	return exe, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if exe, _ := binary(); exe != "" {
		os.RemoveAll(filepath.Dir(exe))
	}
	os.Exit(code)
}

// bench is where one test works: its folder and what it has started.
type bench struct {
	testing.TB
	dir string
	exe string
	env []string // beside PATH, HOME and TMPDIR

	mounts []string

	mu    sync.Mutex
	procs map[string]*process
}

func newBench(t testing.TB) *bench {
	t.Helper()
	need(t, "git", "git")
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{TB: t, dir: t.TempDir(), exe: exe, procs: map[string]*process{}}
	for _, d := range []string{"home", "tmp", "logs"} {
		if err := os.Mkdir(b.path(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(b.finish)
	return b
}

func (b *bench) path(elem ...string) string {
	return filepath.Join(append([]string{b.dir}, elem...)...)
}

func (b *bench) environ() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.path("home"), "TMPDIR=" + b.path("tmp"), "LC_ALL=C"}, b.env...)
}

// run runs gitopsd to its end, within a minute and a half.
func (b *bench) run(args ...string) (code int, out string) {
	b.Helper()
	cmd := exec.Command(b.exe, args...)
	cmd.Dir, cmd.Env = b.dir, b.environ()
	stuck := time.AfterFunc(waitLimit, func() { _ = cmd.Process.Kill() })
	text, err := cmd.CombinedOutput()
	if !stuck.Stop() {
		b.Errorf("gitopsd %s did not end within %v", strings.Join(args, " "), waitLimit)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.Fatalf("gitopsd %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// process is one gitopsd in the background.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string // file; one for all processes of a name
	done chan struct{}
	err  error // valid after done
}

// start runs gitopsd in the background; its output goes to logs/NAME.log,
// behind that of an earlier process of the name.
func (b *bench) start(name string, args ...string) *process {
	b.Helper()
	p, err := b.launch(name, b.exe, args...)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func (b *bench) launch(name, program string, args ...string) (*process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.procs[name]; old != nil && old.running() {
		return nil, fmt.Errorf("%s is running already", name)
	}
	path := b.path("logs", name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	p := &process{name: name, cmd: exec.Command(program, args...), log: path, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = b.dir, b.environ()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	b.procs[name] = p
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process and its children at once, as a power cut does.
func (p *process) kill() {
	if p.running() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-p.done
}

// end asks the process to end; one that does not is killed.
func (p *process) end() error {
	if p.running() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	timer := time.NewTimer(endLimit)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.kill()
		return fmt.Errorf("%s did not end within %v", p.name, endLimit)
	}
	// What is left of its group, for example a hook's background child.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	return p.err
}

// text is all that processes of this name have printed.
func (p *process) text() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (p *process) tail(lines int) string {
	all := strings.Split(strings.TrimRight(p.text(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// endAll ends what still runs.
func (b *bench) endAll() {
	var all sync.WaitGroup
	for _, p := range b.list() {
		if !p.running() {
			continue // by now its id may be another's
		}
		all.Go(func() {
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			if err := p.end(); err != nil && p.cmd.Path == b.exe {
				b.Errorf("%s did not end cleanly: %v", p.name, err)
			}
		})
	}
	all.Wait()
}

func (b *bench) list() []*process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.procs))
}

// finish ends processes first, then takes away what they worked on.
func (b *bench) finish() {
	b.endAll()
	slices.Reverse(b.mounts)
	for _, dir := range b.mounts {
		// Lazily: whatever still has a file there must not keep the folder.
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			b.Errorf("unmount %s: %v", dir, err)
		}
	}
	if b.Failed() {
		for _, p := range b.list() {
			b.Logf("--- the end of %s.log\n%s", p.name, p.tail(40))
		}
	}
}

// wait asks until cond is content.
func (b *bench) wait(what string, cond func() error) {
	b.Helper()
	b.waitUpTo(waitLimit, what, cond)
}

func (b *bench) waitUpTo(limit time.Duration, what string, cond func() error) {
	b.Helper()
	end := time.Now().Add(limit)
	for {
		err := cond()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%s did not come true within %v: %v", what, limit, err)
		}
		time.Sleep(waitEvery)
	}
}

// waitLog waits for words in what a process prints after the offset.
func (b *bench) waitLog(p *process, from int, words ...string) {
	b.Helper()
	b.wait("the log of "+p.name, func() error {
		text := p.text()
		text = text[min(from, len(text)):]
		for _, w := range words {
			if !strings.Contains(text, w) {
				if !p.running() {
					b.Fatalf("%s has ended without saying %q: %v\n%s", p.name, w, p.err, p.tail(20))
				}
				return fmt.Errorf("%q is not in it:\n%s", w, p.tail(20))
			}
		}
		return nil
	})
}

// tmpfs mounts a small file system at a new folder, until the test ends.
func (b *bench) tmpfs(name, options string) string {
	b.Helper()
	needRoot(b, "mount a file system")
	dir := b.path(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := syscall.Mount("gitopsd-test", dir, "tmpfs", 0, options+",mode=0755"); err != nil {
		unable(b, "cannot mount a tmpfs: %v", err)
	}
	b.mounts = append(b.mounts, dir)
	return dir
}

func remount(b *bench, dir string, readOnly bool) {
	b.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if readOnly {
		flags |= syscall.MS_RDONLY
	}
	b.wait("the remount of "+dir, func() error { // busy while a file is being written
		return syscall.Mount("gitopsd-test", dir, "tmpfs", flags, "")
	})
}

// fill takes all bytes that are left below a folder, and gives the file that
// holds them.
func fill(b *bench, dir string) string {
	b.Helper()
	path := filepath.Join(dir, "ballast-of-the-test")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 4 << 10, 1} {
		block := make([]byte, size)
		for {
			if _, err := f.Write(block); err != nil {
				break
			}
		}
	}
	return path
}

// fillInodes takes all inodes that are left, and gives the folder that holds
// them.
func fillInodes(b *bench, dir string) string {
	b.Helper()
	path := filepath.Join(dir, "inodes-of-the-test")
	if err := os.Mkdir(path, 0o755); err != nil {
		b.Fatal(err)
	}
	for i := 0; ; i++ {
		f, err := os.Create(filepath.Join(path, fmt.Sprint(i)))
		if err != nil {
			return path
		}
		f.Close()
	}
}

func writeFile(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}
