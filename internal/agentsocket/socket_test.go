package agentsocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitopsd/gitopsd/reconcile"
	"github.com/gitopsd/gitopsd/schema"
)

// silent is a control that never answers.
type silent struct{}

func (silent) Look(ctx context.Context) (schema.Delivery, string, error) {
	<-ctx.Done()
	return schema.Delivery{}, "", ctx.Err()
}
func (silent) Report(context.Context, *schema.Report) error { return errors.New("not now") }
func (silent) Answers(context.Context) error                { return errors.New("not now") }

// served runs an agent whose poll hangs, with its socket below a root.
func served(t *testing.T, root string) (end func()) {
	t.Helper()
	agent, err := reconcile.New(reconcile.Config{Device: "gw-1", Root: root, Control: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(Config{Agent: agent, Root: root, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(ctx) })
	wg.Go(func() { _ = agent.Run(ctx) })
	return func() {
		cancel()
		wg.Wait()
		agent.Close()
	}
}

func one(t *testing.T, root string, r Request) (Reply, error) {
	t.Helper()
	var reply Reply
	err := Ask(t.Context(), root, r, func(got Reply) bool { reply = got; return true })
	return reply, err
}

// An address of a unix socket holds about a hundred bytes, a path many more.
func TestAnswersWhileTheWorkHangs(t *testing.T) {
	for _, root := range []string{t.TempDir(), filepath.Join(t.TempDir(), strings.Repeat("long", 40))} {
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := one(t, root, Request{Do: DoStatus}); !errors.Is(err, ErrNobody) {
			t.Errorf("before there is an agent: %v", err)
		}
		end := served(t, root)
		reply, err := one(t, root, Request{Do: DoStatus})
		if err != nil || reply.Standing == nil || reply.Standing.Report.Metadata.Name != "gw-1" {
			t.Errorf("status: %+v, %v", reply, err)
		}
		if reply, err := one(t, root, Request{Do: DoHold, Reason: "mine"}); err != nil || reply.Done == nil {
			t.Errorf("hold: %+v, %v", reply, err)
		}
		if data, err := os.ReadFile(filepath.Join(root, "var/lib/gitopsd/hold")); err != nil || string(data) != "mine\n" {
			t.Errorf("the hold is %q, %v", data, err)
		}
		if reply, err := one(t, root, Request{Do: DoUnhold}); err != nil || reply.Done == nil || !reply.Done.Was {
			t.Errorf("unhold: %+v, %v", reply, err)
		}
		if reply, err := one(t, root, Request{Do: DoSnooze, For: schema.Duration(time.Hour)}); err != nil || reply.Done == nil || reply.Done.Until == nil {
			t.Errorf("snooze: %+v, %v", reply, err)
		}
		if _, err := one(t, root, Request{Do: DoSnooze, For: -1}); err == nil {
			t.Error("a negative snooze is one")
		}
		if reply, err := one(t, root, Request{Do: DoDiff}); err != nil || reply.Comparison == nil {
			t.Errorf("diff: %+v, %v", reply, err)
		}
		if _, err := one(t, root, Request{Do: "dance"}); err == nil || !strings.Contains(err.Error(), `does not know "dance"`) {
			t.Errorf("what it does not know: %v", err)
		}
		end()
		if _, err := os.Lstat(Path(root)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	}
}

// dial opens a connection and says nothing yet.
func dial(t *testing.T, root string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", Path(root))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestWhatIsNoRequest(t *testing.T) {
	root := t.TempDir()
	defer served(t, root)()
	for text, want := range map[string]string{
		"\n": "the request is not one", "[]\n": "the request is not one", "{}\n": "does not know", `{"for": "many"}` + "\n": "the request is not one",
		strings.Repeat("{", 2*requestLimit): "", // cut off without an answer
	} {
		conn := dial(t, root)
		_, _ = io.Copy(conn, strings.NewReader(text)) // the other side may have hung up
		answer, _ := io.ReadAll(conn)
		if !bytes.Contains(answer, []byte(want)) || want == "" && len(answer) > 0 {
			t.Errorf("%.20q is answered %q, want %q", text, answer, want)
		}
	}
}

// Who holds connections open keeps nobody else from asking for long, and makes
// the agent hold no more than a few.
func TestTooManyAreLetGo(t *testing.T) {
	root := t.TempDir()
	defer served(t, root)()
	var open []net.Conn
	for range maxRequests {
		open = append(open, dial(t, root))
	}
	// Accepted in their order: this one is beyond the last slot.
	extra := dial(t, root)
	if data, err := io.ReadAll(extra); len(data) > 0 {
		t.Errorf("one too many is answered %q, %v", data, err)
	}
	if _, err := one(t, root, Request{Do: DoStatus}); !errors.Is(err, ErrNobody) {
		t.Errorf("one too many: %v", err)
	}
	for _, c := range open {
		c.Close()
	}
	deadline := time.Now().Add(lineLimit)
	for {
		if _, err := one(t, root, Request{Do: DoStatus}); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the slots stay taken: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// Who goes away while waiting for a poll is forgotten, and the agent can end.
func TestWaitingForAPollThatHangs(t *testing.T) {
	root := t.TempDir()
	end := served(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- Ask(ctx, root, Request{Do: DoRunNow}, func(Reply) bool { return true }) }()
	if _, err := one(t, root, Request{Do: DoStatus}); err != nil {
		t.Errorf("status beside it: %v", err)
	}
	cancel()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("who went away: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		done <- Ask(context.Background(), root, Request{Do: DoRunNow}, func(Reply) bool { return true })
	}()
	if _, err := one(t, root, Request{Do: DoStatus}); err != nil {
		t.Errorf("status beside it: %v", err)
	}
	end()
	if err := <-done; !errors.Is(err, reconcile.ErrEnded) {
		t.Errorf("an agent that ended has polled: %v", err)
	}
}

// What an earlier agent left, and what else stands there, is no hindrance; a
// link out of the root is not followed.
func TestPlaceOfTheSocket(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(Path(root)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(Path(root), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := one(t, root, Request{Do: DoStatus}); !errors.Is(err, ErrNobody) {
		t.Errorf("a file in its place: %v", err)
	}
	served(t, root)()

	root, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "run")); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Config{Root: root}); err == nil {
		t.Error("a link led out of the root")
	}
	if list, _ := os.ReadDir(outside); len(list) > 0 {
		t.Errorf("outside there is %v", list)
	}
}

// A group that the device does not know keeps the agent's own user from nothing.
func TestGroups(t *testing.T) {
	for group, mode := range map[string]os.FileMode{"": modeOwner, "no-such-group": modeOwner, strconv.Itoa(os.Getgid()): modeGroup} {
		root := t.TempDir()
		s, err := Listen(Config{Root: root, Group: group, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatalf("group %q: %v", group, err)
		}
		if info, err := os.Lstat(Path(root)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("group %q: %v, %v; want mode %o", group, info, err, mode)
		}
		s.listen.Close()
	}
}

func TestTold(t *testing.T) {
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Do: DoHold, Reason: "mine"}, "[to hold reason mine]"},
		{Request{Do: DoSnooze, For: schema.Duration(time.Hour)}, "[to snooze for 1h]"},
		{Request{Do: DoWake}, "[to end the snooze]"},
	} {
		if got := fmt.Sprint(told(c.r)); got != c.want {
			t.Errorf("%+v is logged as %s, want %s", c.r, got, c.want)
		}
	}
}
