package agentsocket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/gitopsd/gitopsd/reconcile"
)

const (
	// maxRequests is how many are answered at one time; people are few.
	maxRequests = 8
	// requestLimit bounds a request in bytes; a reason is a line.
	requestLimit = 8 << 10
	// lineLimit is for one line of either side to come or go: who asks is on
	// the same machine.
	lineLimit = 10 * time.Second
)

// Config of a Server.
type Config struct {
	Agent  *reconcile.Agent
	Root   string // "" = "/"
	Group  string // of the device, which may ask beside the agent's user; "" = none
	Logger *slog.Logger
}

// Server answers for a running agent.
type Server struct {
	cfg    Config
	listen *net.UnixListener
	slots  chan struct{}
}

// Listen makes the socket in the place of one that an earlier agent has left.
// It is called under the lock of the root.
func Listen(c Config) (*Server, error) {
	if c.Root == "" {
		c.Root = "/"
	}
	l, err := listen(c.Root)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", Path(c.Root), err)
	}
	if c.Group != "" {
		if err := giveGroup(c.Root, c.Group); err != nil {
			c.Logger.Warn("the group is not let in, only the agent's own user", "group", c.Group, "error", err)
		}
	}
	return &Server{cfg: c, listen: l, slots: make(chan struct{}, maxRequests)}, nil
}

// Serve answers until ctx ends, removes the socket, and returns when the last
// answer is given.
func (s *Server) Serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { _ = unlink(s.cfg.Root) }() // the next agent removes what is left
	stop := context.AfterFunc(ctx, func() { s.listen.Close() })
	defer stop()
	for {
		conn, err := s.listen.AcceptUnix()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				s.cfg.Logger.Warn("nobody at the device is answered any more until the next start", "error", err)
			}
			return
		}
		select {
		case s.slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-s.slots }()
				s.answer(ctx, conn)
			})
		default:
			conn.Close() // the one that asks says that nobody answered
		}
	}
}

// answer serves one connection.
func (s *Server) answer(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := conn.SetReadDeadline(time.Now().Add(lineLimit)); err != nil {
		return
	}
	in := bufio.NewReaderSize(io.LimitReader(conn, requestLimit), 1024)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return // who asks has gone, or never asked
	}
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		_ = s.reply(conn, Reply{Error: fmt.Sprintf("the request is not one: %v", err)}) // who sends such may not read
		return
	}
	s.serve(ctx, cancel, conn, r)
}

func (s *Server) reply(conn *net.UnixConn, r Reply) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(lineLimit)); err != nil {
		return err
	}
	_, err = conn.Write(append(data, '\n'))
	return err
}

func (s *Server) serve(ctx context.Context, cancel func(), conn *net.UnixConn, r Request) {
	out, err := Reply{}, error(nil)
	switch r.Do {
	case DoStatus:
		standing := s.cfg.Agent.Standing()
		out.Standing = &standing
	case DoDiff:
		out.Comparison, err = s.compare(ctx, r.Current)
	case DoRunNow:
		out.Ran, err = s.runNow(ctx, cancel, conn)
	default:
		out.Done, err = s.note(r)
	}
	if err != nil {
		out = Reply{Error: err.Error()}
	}
	if err := s.reply(conn, out); err != nil {
		s.cfg.Logger.Debug("an answer did not arrive", "to", r.Do, "error", err)
	}
}

func (s *Server) compare(ctx context.Context, current bool) (*reconcile.Comparison, error) {
	v, err := s.cfg.Agent.View()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	return v.Compare(ctx, current, false)
}

// runNow ends early when the one that asked has gone.
func (s *Server) runNow(ctx context.Context, cancel func(), conn *net.UnixConn) (*reconcile.Ran, error) {
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = conn.Read(make([]byte, 1)) // it says nothing more: this returns when it goes
		cancel()
	}()
	defer func() {
		_ = conn.SetReadDeadline(time.Now()) // have the goroutine end
		<-gone
	}()
	ran, err := s.cfg.Agent.PollNow(ctx, func(f reconcile.Fetched) error { return s.reply(conn, Reply{Fetched: &f}) })
	if errors.Is(err, context.Canceled) {
		err = reconcile.ErrEnded // who has gone is told nothing
	}
	if err != nil {
		return nil, err
	}
	return &ran, nil
}

// note writes down what the agent is told, and has it look.
func (s *Server) note(r Request) (*Done, error) {
	n, err := s.cfg.Agent.Notes()
	if err != nil {
		return nil, err
	}
	defer n.Close()
	d, err := Take(n, r)
	if err != nil {
		return nil, err
	}
	s.cfg.Logger.Info("told by a person at the device", told(r)...)
	s.cfg.Agent.LookAround()
	return d, nil
}

// told is a request as the log has it, in a person's words.
func told(r Request) []any {
	said := []any{"to", r.Do}
	if r.Do == DoWake {
		said = []any{"to", "end the snooze"}
	}
	if r.For != 0 {
		said = append(said, "for", r.For.String())
	}
	if r.Reason != "" {
		said = append(said, "reason", r.Reason)
	}
	return said
}

// Take writes down a request to hold, unhold, snooze or wake. Where no agent
// answers, the next one to start obeys.
func Take(n *reconcile.Notes, r Request) (*Done, error) {
	d, err := &Done{}, error(nil)
	switch r.Do {
	case DoHold:
		err = n.Hold(r.Reason)
	case DoUnhold:
		d.Was, err = n.Unhold()
	case DoSnooze:
		var one *reconcile.Snooze
		if one, err = n.Snooze(time.Duration(r.For), r.Reason); err == nil {
			until := one.Until()
			d.Until = &until
		}
	case DoWake:
		d.Was, err = n.Wake()
	default:
		return nil, fmt.Errorf("this agent does not know %q", r.Do)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}
