package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gitopsd/gitopsd/reconcile/internal/progress"
)

const (
	// largest is what a program may have in bytes: several times what gitopsd
	// has, and little enough for a small disk.
	largest = 256 << 20
	// stall is how long nothing may come, before it is asked for anew.
	stall = time.Minute
	// breaks is how often a connection may end in the middle of one fetch.
	breaks = 10
	// fetchLimit is for a program over a very slow line.
	fetchLimit = 2 * time.Hour
	// pause is between a broken connection and the next one.
	pause = 2 * time.Second
)

// errTooLarge is what a program is that no agent has.
var errTooLarge = fmt.Errorf("it has more than the %d MiB that an agent may have", largest>>20)

// Fetch reads what a URL gives into a function, which judges it and may be
// called once. Redirections are followed, also from https to http: what counts
// is the sum of what came.
func Fetch(ctx context.Context, from string, into func(io.Reader) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchLimit, fmt.Errorf("it took longer than %s", fetchLimit))
	defer cancel()
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		DialContext:         (&net.Dialer{Timeout: stall}).DialContext,
		TLSHandshakeTimeout: stall, ResponseHeaderTimeout: stall,
	}
	r := &resumed{ctx: ctx, url: from, client: &http.Client{Transport: transport}, stall: stall, pause: pause}
	defer r.close()
	if err := r.open(); err != nil {
		return err
	}
	return into(r)
}

// resumed is the body of a URL, as if its connection never broke.
type resumed struct {
	ctx    context.Context // of one fetch, within which it lives
	url    string
	client *http.Client
	stall  time.Duration
	pause  time.Duration

	body   io.ReadCloser
	cancel context.CancelFunc
	quiet  *time.Timer // ends a connection on which nothing comes
	read   int64
	again  int64 // bytes of this connection that were read on an earlier one
	whole  int64 // -1 = not told
	broken int
}

// open asks for what is not yet read.
func (r *resumed) open() error {
	progress.Within(r.ctx, 3*stall) // to connect, to shake hands, to be answered
	ctx, cancel := context.WithCancel(r.ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		cancel()
		return err
	}
	req.Header.Set("User-Agent", "gitopsd")
	req.Header.Set("Accept-Encoding", "identity") // a part of it must be a part of the program
	if r.read > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", r.read))
	}
	res, err := r.client.Do(req)
	if err != nil {
		cancel()
		return r.why(err)
	}
	r.again = 0
	switch {
	case res.StatusCode == http.StatusOK && r.read > 0:
		r.again = r.read // who knows no ranges gives all of it
	case res.StatusCode == http.StatusPartialContent && r.read > 0:
	case res.StatusCode != http.StatusOK:
		err = fmt.Errorf("the answer is %s", res.Status)
	case res.ContentLength > largest:
		err = errTooLarge
	default:
		r.whole = res.ContentLength
	}
	if err != nil {
		cancel()
		return errors.Join(err, res.Body.Close())
	}
	r.body, r.cancel, r.quiet = res.Body, cancel, time.AfterFunc(r.stall, cancel)
	return nil
}

// why tells the end of a fetch from that of one connection.
func (r *resumed) why(err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	var told *url.Error
	if errors.As(err, &told) {
		return told.Err // who asked knows for what
	}
	return err
}

func (r *resumed) close() {
	if r.body != nil {
		r.quiet.Stop()
		r.cancel()
		_ = r.body.Close() // what was read is judged by its sum
		r.body = nil
	}
}

func (r *resumed) Read(p []byte) (int, error) {
	for {
		n, err := 0, error(nil)
		if r.body == nil {
			err = r.open()
		}
		if err == nil {
			progress.Within(r.ctx, 2*stall)
			r.quiet.Reset(r.stall)
			n, err = r.body.Read(p)
		}
		skipped := min(r.again, int64(n))
		r.again -= skipped
		n = copy(p, p[skipped:n])
		r.read += int64(n)
		ended := errors.Is(err, io.EOF) && (r.whole < 0 || r.read >= r.whole)
		switch {
		case r.read > largest:
			return n, errTooLarge
		case err == nil && n > 0:
			return n, nil
		case err == nil:
			continue // with what is new
		case ended:
			return n, io.EOF
		}
		r.close()
		if r.broken++; r.broken > breaks || r.ctx.Err() != nil {
			return n, r.why(fmt.Errorf("after %d bytes and %d connections: %w", r.read, r.broken, err))
		}
		select {
		case <-r.ctx.Done():
		case <-time.After(r.pause):
		}
		if n > 0 {
			return n, nil
		}
	}
}
