package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// httpRemote speaks git's smart http: gitprotocol-http(5). What a server can
// do is asked once and remembered, so that a poll is a single small POST.
type httpRemote struct {
	at    endpoint
	creds Credentials
	log   *slog.Logger

	mu       sync.Mutex
	client   *http.Client
	tlsSum   [sha256.Size]byte
	base     string       // URL of the repository, after redirects
	fetchV2  capabilities // nil = not asked yet, or the server has no v2
	pushCaps capabilities // nil = not asked yet
	warned   bool
}

const (
	// dialTimeout bounds the connection alone, so that a dead address does
	// not use up the deadline of the whole operation.
	dialTimeout = 20 * time.Second
	// idleTimeout is longer than the usual interval of a minute, so that a
	// poll finds its connection open.
	idleTimeout = 150 * time.Second
	// maxErrorText bounds what is read of an error page, in bytes.
	maxErrorText = 1 << 10
	maxRedirects = 5

	serviceFetch = "git-upload-pack"
	servicePush  = "git-receive-pack"
)

func newHTTPRemote(at endpoint, creds Credentials, log *slog.Logger) *httpRemote {
	u := at.scheme + "://" + at.host + at.path
	return &httpRemote{at: at, creds: creds, log: log, base: u}
}

func (h *httpRemote) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.client != nil {
		h.client.CloseIdleConnections()
		h.client = nil
	}
}

// connect gives the client, a new one when the TLS files have changed.
func (h *httpRemote) connect() (*http.Client, error) {
	cfg, sum, err := h.creds.tlsConfig()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.client != nil && h.tlsSum == sum {
		return h.client, nil
	}
	if h.client != nil {
		h.client.CloseIdleConnections()
	}
	if h.at.scheme == "http" && h.creds.given(h.at) && !h.warned && !isLoopback(h.at.host) {
		h.warned = true
		h.log.Warn("credentials are sent over plain http, readable on the way", "repo", h.at.String())
	}
	h.tlsSum = sum
	h.client = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig:     cfg,
			TLSHandshakeTimeout: dialTimeout,
			DisableCompression:  true,
			MaxIdleConnsPerHost: 2,
			IdleConnTimeout:     idleTimeout,
			// HTTP/2 buys nothing for one request at a time and costs an idle
			// agent memory: a TLSNextProto that is not nil turns it off.
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
		CheckRedirect: h.checkRedirect,
	}
	return h.client, nil
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// checkRedirect lets a GET follow, and never carries credentials to another
// origin. A redirected POST would lose its body: its answer is the error.
func (h *httpRemote) checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return fail(kindNetwork, "the server redirects more than %d times", maxRedirects)
	}
	same := strings.EqualFold(req.URL.Host, first.URL.Host) && req.URL.Scheme == first.URL.Scheme
	if !same && h.creds.given(h.at) {
		return fail(kindRefused, "the server redirects to %s, where the credentials do not belong", originOf(req.URL)).
			hint("use the new address as the repository URL if it is right")
	}
	if first.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fail(kindRefused, "the server redirects from https to %s", req.URL.Scheme)
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return fail(kindRefused, "the server redirects to %s", sanitize(req.URL.Scheme, 20))
	}
	return nil
}

func originOf(u *url.URL) string { return sanitize(u.Scheme+"://"+u.Host, 200) }

// request is one http request of git's.
type request struct {
	service string
	body    []byte // nil = GET info/refs
	v2      bool
	replay  bool // nothing changes on the server: it may be sent again on a stale connection
}

// do sends a request and gives an answer that is git's. A 401 is answered by
// reading the credentials again, once.
func (h *httpRemote) do(ctx context.Context, r request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := h.send(ctx, r)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusUnauthorized && attempt == 0 && h.creds.given(h.at) {
			discard(resp)
			continue
		}
		if err := h.check(resp, r); err != nil {
			discard(resp)
			return nil, withoutSecrets(err, resp.Request)
		}
		return resp, nil
	}
}

func (h *httpRemote) send(ctx context.Context, r request) (*http.Response, error) {
	client, err := h.connect()
	if err != nil {
		return nil, err
	}
	return h.sendBy(ctx, client, r)
}

func (h *httpRemote) sendBy(ctx context.Context, client *http.Client, r request) (*http.Response, error) {
	h.mu.Lock()
	base := h.base
	h.mu.Unlock()
	method, target, body := http.MethodPost, base+"/"+r.service, io.Reader(bytes.NewReader(r.body))
	if r.body == nil {
		// From the name that was given, so that a redirect is never for good.
		method, target, body = http.MethodGet, h.at.scheme+"://"+h.at.host+h.at.path+"/info/refs?service="+r.service, nil
	}
	if h.at.query != "" {
		sep := "?"
		if r.body == nil {
			sep = "&"
		}
		target += sep + h.at.query
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fail(kindNotFound, "the repository URL cannot be used")
	}
	req.Header.Set("User-Agent", agentName)
	if r.body != nil {
		req.Header.Set("Content-Type", "application/x-"+r.service+"-request")
		req.Header.Set("Accept", "application/x-"+r.service+"-result")
	} else {
		req.Header.Set("Cache-Control", "no-cache")
	}
	if r.v2 {
		req.Header.Set("Git-Protocol", "version=2")
	}
	if r.replay {
		// Not sent: it tells net/http that a POST may be repeated on a fresh
		// connection when a kept one turns out to be closed.
		req.Header["X-Idempotency-Key"] = nil
	}
	if err := h.creds.authorize(req, h.at); err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, h.connectionError(ctx, err)
	}
	return resp, nil
}

// discard ends an answer; what little is left is read so that the connection
// stays usable.
func discard(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 16<<10))
	resp.Body.Close()
}

// advert asks what the server has; it also finds out where redirects lead.
func (h *httpRemote) advert(ctx context.Context, service string, want func(string) bool, keepAll bool) (*listing, error) {
	resp, err := h.do(ctx, request{service: service, v2: service == serviceFetch, replay: true})
	if err != nil {
		return nil, err
	}
	defer discard(resp)
	l, err := readAdvert(newPktReader(resp.Body), service, want, keepAll)
	if err != nil {
		return nil, withoutSecrets(timedOut(ctx, err), resp.Request)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if resp.Request != nil && resp.Request.URL != nil {
		u := *resp.Request.URL
		if path, ok := strings.CutSuffix(u.EscapedPath(), "/info/refs"); ok {
			h.base = u.Scheme + "://" + u.Host + path
		}
	}
	switch {
	case service == servicePush:
		h.pushCaps = l.caps
	case l.v2:
		h.fetchV2 = l.caps
	default:
		h.fetchV2 = nil
	}
	return l, nil
}

func (h *httpRemote) upload(ctx context.Context, ask question, decide func(*listing) (*fetchRequest, error), sink func(io.Reader) error) error {
	h.mu.Lock()
	caps := h.fetchV2
	h.mu.Unlock()
	known := caps != nil
	want := ask.choose()
	var l *listing
	if !known {
		var err error
		if l, err = h.advert(ctx, serviceFetch, want, ask.byHash); err != nil {
			return err
		}
		caps = l.caps
		if !l.v2 {
			return h.uploadV0(ctx, l, decide, sink)
		}
	}
	err := h.uploadV2(ctx, ask, caps, decide, sink)
	var e *Error
	if !known || !errors.As(err, &e) || ctx.Err() != nil {
		return err
	}
	if e.kind == kindNetwork || e.kind == kindRefused || e.kind == kindNotFound {
		// It may be another server than the one that was asked, or an older
		// one since: it is asked again.
		h.mu.Lock()
		h.fetchV2 = nil
		h.mu.Unlock()
	}
	if e.misread {
		return h.upload(ctx, ask, decide, sink)
	}
	return err
}

// post sends a request of upload-pack and gives its answer to read.
func (h *httpRemote) post(ctx context.Context, body []byte, v2 bool, read func(*pktReader) error) error {
	resp, err := h.do(ctx, request{service: serviceFetch, body: body, v2: v2, replay: true})
	if err != nil {
		return err
	}
	defer discard(resp)
	err = withoutSecrets(timedOut(ctx, read(newPktReader(resp.Body))), resp.Request)
	var e *Error
	if errors.As(err, &e) && e.kind == kindNetwork {
		c := *e
		c.misread = true
		return &c
	}
	return err
}

func (h *httpRemote) uploadV2(ctx context.Context, ask question, caps capabilities, decide func(*listing) (*fetchRequest, error), sink func(io.Reader) error) error {
	l := &listing{refs: map[string]oid{}, v2: true}
	if (len(ask.prefixes) > 0 && !ask.byHash) || ask.head {
		err := h.post(ctx, encodeLsRefs(ask.prefixes, ask.head, caps), true, func(p *pktReader) (err error) {
			l, err = readLsRefs(p, ask.choose())
			return err
		})
		if err != nil {
			return err
		}
	}
	l.caps = caps
	req, err := decide(l)
	if err != nil || req == nil {
		return err
	}
	return h.post(ctx, encodeFetch2(req, caps), true, func(p *pktReader) error { return readFetch2(p, sink) })
}

func (h *httpRemote) uploadV0(ctx context.Context, l *listing, decide func(*listing) (*fetchRequest, error), sink func(io.Reader) error) error {
	req, err := decide(l)
	if err != nil || req == nil {
		return err
	}
	return h.post(ctx, encodeFetch0(req, l.caps), false, func(p *pktReader) error {
		return readFetch0(p, req, l.caps, sink)
	})
}

// push leaves out the listing of refs once the server's capabilities are
// known: receive-pack over http compares the old values that the commands
// carry, whoever has read them when.
func (h *httpRemote) push(ctx context.Context, makePush func(capabilities) (*pushRequest, error)) (*pushResult, error) {
	h.mu.Lock()
	caps := h.pushCaps
	h.mu.Unlock()
	if caps == nil {
		l, err := h.advert(ctx, servicePush, func(string) bool { return false }, false)
		if err != nil {
			return nil, err
		}
		caps = l.caps
	}
	p, err := makePush(caps)
	if err != nil {
		return nil, err
	}
	body := append(encodePush(p.cmds, caps, p.atomic), p.pack...)
	resp, err := h.do(ctx, request{service: servicePush, body: body})
	if err == nil {
		defer discard(resp)
		var res *pushResult
		if res, err = readPush(resp.Body, caps); err == nil {
			return res, nil
		}
		err = withoutSecrets(err, resp.Request)
	}
	h.mu.Lock()
	h.pushCaps = nil
	h.mu.Unlock()
	return nil, timedOut(ctx, err)
}

// answers asks on a connection of its own: one that is kept goes on where a
// firewall lets no new one through, or where the name leads elsewhere by now.
func (h *httpRemote) answers(ctx context.Context) error {
	kept, err := h.connect()
	if err != nil {
		return err
	}
	own := kept.Transport.(*http.Transport).Clone()
	own.DisableKeepAlives = true
	resp, err := h.sendBy(ctx, &http.Client{Transport: own, CheckRedirect: kept.CheckRedirect}, request{service: serviceFetch, v2: true})
	if err != nil {
		return err
	}
	discard(resp)
	return nil
}
