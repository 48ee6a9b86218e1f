package agentsocket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/gitopsd/gitopsd/reconcile"
)

// replyLimit bounds an answer in bytes: a comparison with all its contents
// stays below it.
const replyLimit = 32 << 20

// compareLimit is for what podman's generator and systemd-analyze are asked on a
// slow board.
const compareLimit = 5 * time.Minute

// ErrNobody means that no agent answers at the socket.
var ErrNobody = errors.New("no agent answers")

// Ask sends a request and gives each line of the answer to got, until that says
// that it has enough, or the last one came. With an error of the agent in the
// answer, that is the error; [reconcile.ErrEnded] where it ended before it was
// done.
func Ask(ctx context.Context, root string, r Request, got func(Reply) (enough bool)) error {
	var conn net.Conn
	err := inFolder(root, func(name string) error {
		var d net.Dialer
		dial, cancel := context.WithTimeout(ctx, lineLimit)
		defer cancel()
		var err error
		conn, err = d.DialContext(dial, "unix", name)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w at %s", ErrNobody, Path(root))
	case err != nil:
		return fmt.Errorf("ask the agent at %s: %w", Path(root), cause(err))
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := ask(conn, r, got); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}

// cause leaves out the addresses, which may lead through an open folder.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func ask(conn net.Conn, r Request, got func(Reply) bool) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(lineLimit)); err != nil {
		return err
	}
	if _, err := conn.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("%w: the connection ended (%w)", ErrNobody, cause(err)) // one too many, for example
	}
	switch r.Do {
	case DoRunNow:
		err = conn.SetDeadline(time.Time{}) // an update takes its time
	case DoDiff:
		err = conn.SetDeadline(time.Now().Add(compareLimit))
	}
	if err != nil {
		return err
	}
	in := bufio.NewReader(io.LimitReader(conn, replyLimit))
	for lines := 0; ; lines++ {
		line, err := in.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && lines > 0:
			return nil
		case err != nil && lines == 0:
			return fmt.Errorf("%w: the connection ended (%w)", ErrNobody, cause(err))
		case err != nil:
			return fmt.Errorf("%w, in the middle of its answer (%w)", reconcile.ErrEnded, cause(err))
		}
		var reply Reply
		if err := json.Unmarshal(line, &reply); err != nil {
			return fmt.Errorf("read the agent's answer: %w", err)
		}
		switch reply.Error {
		case "":
		case reconcile.ErrEnded.Error():
			return reconcile.ErrEnded
		default:
			return errors.New(reply.Error)
		}
		if got(reply) {
			return nil
		}
	}
}
