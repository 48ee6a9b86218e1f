//go:build system

package systemtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// deadline is what an operation at a stalled server is given.
const deadline = 1500 * time.Millisecond

// stalls wants an operation to end at its deadline, as a timeout, and to
// leave no goroutine behind.
func stalls(t testing.TB, b *bench, what string, op func(timeout time.Duration) error) {
	t.Helper()
	before := runtime.NumGoroutine()
	start := time.Now()
	err := op(deadline)
	took := time.Since(start)
	wantKind(t, what, err, "timeout")
	// Without its own deadline an operation has two minutes.
	if took < deadline/2 || took > deadline+10*time.Second {
		t.Errorf("%s took %v, its deadline was %v", what, took, deadline)
	}
	b.waitUpTo(10*time.Second, what+": the end of its goroutines", func() error {
		if n := runtime.NumGoroutine(); n > before {
			return fmt.Errorf("%d goroutines, %d before", n, before)
		}
		return nil
	})
}

// proxy hands on a connection until the server has sent so many bytes, and is
// silent from then on: nothing more arrives, and nothing is closed.
type proxy struct {
	addr  string
	to    string
	limit atomic.Int64 // < 0: none
	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), to: to}
	p.limit.Store(-1)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.hangUp()
		all.Wait()
	})
	return p
}

// hangUp closes every connection.
func (p *proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) serve(c net.Conn) {
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		c.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, c, s)
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(s, c)
		s.Close()
	})
	both.Go(func() {
		if n := p.limit.Load(); n >= 0 {
			_, _ = io.CopyN(c, s, n)
			// Silent: what the server goes on to say stays here.
			_, _ = io.Copy(io.Discard, s)
		} else {
			_, _ = io.Copy(c, s)
		}
		c.Close()
	})
	both.Wait()
}

// TestSystemSSHStalls: a server or a network that falls silent, at every
// stage of a connection, costs an operation its deadline and no more.
func TestSystemSSHStalls(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	f := newFleet(b, b.dir)
	f.write("a", strings.Repeat("0123456789abcdef\n", 60_000))
	for i := range 200 { // so that the pack is not one small answer
		f.write(fmt.Sprintf("files/%d", i), fmt.Sprintf("%x\n", i*i*i*7919))
	}
	head := f.push("a")
	s := newSSHD(b)
	s.start()
	url := s.url + f.bare
	creds := s.creds()
	fetch := func(url string) func(time.Duration) error {
		return func(timeout time.Duration) error {
			return s.open(url, creds, timeout).Fetch(ctx, sourceRef, head, true)
		}
	}

	// Frozen before its first word: the kernel still takes the connection.
	s.freeze()
	stalls(t, b, "a frozen server", fetch(url))
	stalls(t, b, "a device's question to a frozen server", func(timeout time.Duration) error {
		return s.openDevice(url, creds, timeout).Answers(ctx)
	})
	stalls(t, b, "a device's report to a frozen server", func(timeout time.Duration) error {
		_, err := s.openDevice(url, creds, timeout).Write(ctx, "refs/gitopsd/reports/d1", "", map[string][]byte{"report.yaml": nil})
		return err
	})
	s.thaw()
	if err := fetch(url)(generous); err != nil {
		t.Fatalf("when the server goes on: %v", err)
	}

	// Frozen behind the login: the program that serves git is stopped.
	pids := b.path("stopped.pids")
	s.force = fmt.Sprintf(`echo $$ >> %s; kill -STOP $$; %s`, pids, gitShell)
	s.start()
	t.Cleanup(func() { killListed(t, pids) })
	stalls(t, b, "a git that is stopped", fetch(url))
	stalls(t, b, "a push to a git that is stopped", func(timeout time.Duration) error {
		_, err := s.openDevice(url, creds, timeout).Write(ctx, "refs/gitopsd/reports/d1", "", map[string][]byte{"report.yaml": nil})
		return err
	})
	start := time.Now()
	code, out := b.run(append([]string{"serve", "--once", "--state", b.path("state"), "--timeout", "2s", "--repo", url}, s.flags()...)...)
	if code != 1 || !strings.Contains(out, "before the deadline") || time.Since(start) > 60*time.Second {
		t.Errorf("serve --once ended with %d after %v and said\n%s", code, time.Since(start), out)
	}
	killListed(t, pids)

	// The network falls silent after so many bytes of the server's: in its
	// greeting, in the key exchange, in the login, in the answer, in the pack.
	s.force = gitShell
	s.start()
	p := newProxy(t, s.addr)
	writeFile(t, s.file("known_hosts"), s.knownLines(s.addr, "host_ed25519")+s.knownLines(p.addr, "host_ed25519"), 0o600)
	through := strings.Replace(url, s.addr, p.addr, 1)
	if err := fetch(through)(generous); err != nil {
		t.Fatalf("through the proxy: %v", err)
	}
	for _, bytes := range []int64{0, 10, 700, 1500, 2200, 3000, 4000, 6000} {
		p.limit.Store(bytes)
		stalls(t, b, fmt.Sprintf("a network that is silent after %d bytes", bytes), func(timeout time.Duration) error {
			err := fetch(through)(timeout)
			p.hangUp() // its goroutines are the test's own
			return err
		})
	}
	p.limit.Store(-1)
	if err := fetch(through)(generous); err != nil {
		t.Errorf("when the network is back: %v", err)
	}
	// A connection that is cut is no timeout, and not the server's fault.
	p.limit.Store(3000)
	cut := time.AfterFunc(time.Second, p.hangUp)
	wantKind(t, "a connection that is cut", fetch(through)(generous), "network")
	cut.Stop()
}

// killListed ends the processes of a file, which are stopped.
func killListed(t testing.TB, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return
	}
	for _, text := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(text)
		if err != nil || pid < 2 {
			t.Errorf("%q is no process id", text)
			continue
		}
		// ESRCH: it is gone.
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	os.Remove(file)
}
