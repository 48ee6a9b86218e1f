package github

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What GitHub asks of integrations in its best practices and its page on rate
// limits: requests one after the other, a second between two writes, and after
// a refusal no less than a minute.
const (
	writeEvery = time.Second
	leastPause = time.Minute
	// mostPause is the length of the window of the primary limit: nothing that
	// a server means is longer, and a wrong clock must not stop this for days.
	mostPause = time.Hour
	// jitter is the part of a pause by which it is drawn longer at random, so
	// that what waited together does not come back together.
	jitter = 0.1
)

// headerLimited marks an answer that is a refusal because of a limit, for
// whoever turns it into an error.
const headerLimited = "X-Gitopsd-Limited"

// pacer sends one request at a time and waits for as long as the server wants.
type pacer struct {
	next http.RoundTripper
	log  *slog.Logger
	slot chan struct{} // holds one value while a request is on its way

	mu      sync.Mutex
	write   time.Time // no write before
	until   time.Time // nothing at all before
	strikes int       // refusals in a row that named no time
}

func newPacer(next http.RoundTripper, log *slog.Logger) *pacer {
	return &pacer{next: next, log: log, slot: make(chan struct{}, 1)}
}

// RoundTrip waits for its turn and sends one request.
func (p *pacer) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	select {
	case p.slot <- struct{}{}:
		defer func() { <-p.slot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	writes := req.Method != http.MethodGet && req.Method != http.MethodHead
	if err := p.wait(ctx, writes); err != nil {
		return nil, err
	}
	r, err := p.next.RoundTrip(req)
	if writes {
		p.mu.Lock()
		p.write = time.Now().Add(writeEvery)
		p.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	if err := p.learn(r); err != nil {
		return nil, err
	}
	// go-github has a memory of its own of the same headers, which knows
	// neither a least pause nor a clock that is wrong.
	for _, name := range []string{"X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
		r.Header.Del(name)
	}
	return r, nil
}

// wait returns when a request may be sent.
func (p *pacer) wait(ctx context.Context, writes bool) error {
	for {
		p.mu.Lock()
		at := p.until
		if writes && p.write.After(at) {
			at = p.write
		}
		p.mu.Unlock()
		left := time.Until(at)
		if left <= 0 {
			return ctx.Err()
		}
		if end, ok := ctx.Deadline(); ok && end.Before(at) {
			return &apiError{kind: kindLimited, message: "GitHub's rate limit is reached, for another " + left.Round(time.Second).String()}
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// learn takes from an answer how long to wait.
func (p *pacer) learn(r *http.Response) error {
	used := r.Header.Get("X-RateLimit-Remaining") == "0"
	refused := r.StatusCode == http.StatusTooManyRequests
	if r.StatusCode == http.StatusForbidden {
		secondary, err := isSecondary(r)
		if err != nil {
			return err
		}
		refused = used || secondary || r.Header.Get("Retry-After") != ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !refused && !used {
		p.strikes = 0
		return nil
	}
	pause, named := p.named(r)
	if !named {
		// Nobody says for how long; it grows with each refusal.
		pause = leastPause << min(p.strikes, 6)
		p.strikes++
	}
	pause = min(max(pause, leastPause), mostPause)
	pause += time.Duration(rand.Float64() * jitter * float64(pause))
	p.until = time.Now().Add(pause)
	if refused {
		r.Header.Set(headerLimited, "1")
	}
	p.log.Warn("GitHub's rate limit is reached; everything but this goes on", "waits", pause.Round(time.Second).String())
	return nil
}

// named is the pause that the answer names. The end of the window is compared
// with the server's own clock, where it tells.
func (p *pacer) named(r *http.Response) (time.Duration, bool) {
	if after, err := strconv.ParseInt(r.Header.Get("Retry-After"), 10, 64); err == nil && after >= 0 {
		return time.Duration(min(after, int64(mostPause/time.Second))) * time.Second, true
	}
	reset, err := strconv.ParseInt(r.Header.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil || r.Header.Get("X-RateLimit-Remaining") != "0" {
		return 0, false
	}
	now := time.Now()
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		now = date
	}
	return time.Unix(reset, 0).Sub(now), true
}

// isSecondary says whether a refusal is of a secondary limit, which has no
// status of its own. The answer can be read again afterwards.
func isSecondary(r *http.Response) (bool, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return false, err
	}
	r.Body = io.NopCloser(strings.NewReader(string(data)))
	var said struct {
		Message string `json:"message"`
		URL     string `json:"documentation_url"`
	}
	if json.Unmarshal(data, &said) != nil {
		return false, nil
	}
	message := strings.ToLower(said.Message)
	return strings.Contains(message, "secondary rate limit") || strings.Contains(message, "abuse detection") ||
		strings.Contains(said.URL, "secondary-rate-limits"), nil
}
